"""Names of the cognitive memory: AgentMemory, its subsystems, retrieval, extraction, consolidation and audit."""

from memory.agent_memory import AgentMemory
from memory.agent_tiers import AgentSession as WorkingMemory
from memory.async_memory import AsyncAgentMemory
from memory.documented.retrieval import MemoryRetriever, RecallLayer
from memory.documented.services import ConsolidationWorker
from memory.documented.subsystems import ConversationHistory as EpisodicMemory
from memory.documented.subsystems import MemoryAuditLogger, ProceduralMemory, SemanticMemory
from memory.models import Conversation, Entity, Fact, Goal, Strategy, Tool, ToolInvocation, Turn, UserProfile
from memory.retrieval.candidates import Bundle as MemoryBundle
from memory.retrieval.candidates import Metric as RecallMetrics
from memory.services.entities.learn import EntityDraft
from memory.services.facts.learn import FactDraft

__all__ = [
    "AgentMemory",
    "AsyncAgentMemory",
    "ConsolidationWorker",
    "Conversation",
    "Entity",
    "EntityDraft",
    "EpisodicMemory",
    "Fact",
    "FactDraft",
    "Goal",
    "MemoryAuditLogger",
    "MemoryBundle",
    "MemoryRetriever",
    "ProceduralMemory",
    "RecallLayer",
    "RecallMetrics",
    "SemanticMemory",
    "Strategy",
    "Tool",
    "ToolInvocation",
    "Turn",
    "UserProfile",
    "WorkingMemory",
]
