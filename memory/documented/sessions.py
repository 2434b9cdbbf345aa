"""Names of the agent memory manager: the asynchronous manager of sessions, its memories and their messages."""

from memory.async_memory import AsyncHybridMemory as HybridMemory
from memory.async_memory import AsyncMemoryManager as MemoryManager
from memory.tiers.session_buffer import AgentMessage

__all__ = ["AgentMessage", "HybridMemory", "MemoryManager"]
