"""Names of the three-layer service: asynchronous working memory and Redis manager, episodic memory, ledger, node."""

from memory.async_memory import AsyncInjectionLedger as InjectionLedger
from memory.async_memory import AsyncWorkingMemory as WorkingMemory
from memory.async_memory import RedisManager
from memory.models import EpisodicMemory
from memory.services.prompt_context.build import build_prompt_context as memory_node
from memory.services.recall.recall import search_episodes_by_text as search_episodic_memory

__all__ = [
    "EpisodicMemory",
    "InjectionLedger",
    "RedisManager",
    "WorkingMemory",
    "memory_node",
    "search_episodic_memory",
]
