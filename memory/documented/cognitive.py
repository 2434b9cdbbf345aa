"""Names of the cognitive memory: AgentMemory, its subsystems, retrieval, extraction, consolidation and audit."""

from collections.abc import Sequence

from memory.agent_memory import AgentMemory
from memory.agent_tiers import AgentSession as WorkingMemory
from memory.async_memory import AsyncAgentMemory
from memory.documented.owners import for_user, in_channels
from memory.documented.services import ConsolidationWorker
from memory.documented.subsystems import ConversationHistory as EpisodicMemory
from memory.documented.subsystems import MemoryAuditLogger, ProceduralMemory, SemanticMemory
from memory.kinds import kinds_of_types
from memory.models import Conversation, Entity, Fact, Goal, Strategy, Tool, ToolInvocation, Turn, UserProfile
from memory.owner import Owner
from memory.retrieval.candidates import Bundle as MemoryBundle
from memory.retrieval.candidates import Metric as RecallMetrics
from memory.retrieval.queries import Query
from memory.services.entities.learn import EntityDraft
from memory.services.facts.learn import FactDraft
from memory.services.recall.recall import RecallRequest


class MemoryRetriever:
    """Finds what answers a question among memories of all kinds, in the active channel and `_global`.

    `techniques` choose among the ways of finding, as in a recall; none: those of the settings.
    """

    def __init__(self, owner: Owner, techniques: Sequence[str] = ()) -> None:
        self.owner = owner
        self.techniques = techniques

    def retrieve(
        self,
        query: str,
        user_id: str | None = None,
        channels: Sequence[str] | None = None,
        top_k: int = 10,
        include_episodic: bool = True,
        include_semantic: bool = True,
        include_procedural: bool = True,
        time_window_hours: float | None = None,
    ) -> MemoryBundle:
        """Return the memories, the open goals and the user's profile. Raises Unprocessable if no kind is included."""
        kinds = kinds_of_types(episodic=include_episodic, semantic=include_semantic, procedural=include_procedural)
        request = RecallRequest(
            query=Query(text=query, top_k=top_k, kinds=kinds),
            techniques=self.techniques,
            time_window_hours=time_window_hours,
        )
        return AgentMemory(for_user(in_channels(self.owner, channels), user_id)).recall(request)


class RecallLayer(MemoryRetriever):
    """The retriever with named techniques: `hybrid`, `entity_centric`, `query_expansion`, `hyde`, `self_query`, ….

    `Bundle.metrics` has the latency and the number of results of each technique.
    """


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
