"""The subsystems of the cognitive document as classes: each method is one call into the service of its noun.

Searches take the embedding of the question, as documented, or its text. Embeddings are of the configured model. The
classes read the clock, so use them at the edge only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from memory import conf
from memory.agent_memory import AgentMemory
from memory.agent_tiers import draft_of
from memory.audit import record_audit
from memory.documented.owners import for_user, in_channel, in_channels
from memory.models import Fact, Link, Strategy, ToolInvocation, Turn
from memory.models.statements import Embedding
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.retrieval.graph import Graph
from memory.retrieval.kind_searches import FactHit, StrategyHit, search_facts
from memory.retrieval.search import EntityHit, MemoryQuery, TurnHit, search_entities, search_turns
from memory.services import turns
from memory.services.audit import record_read
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, ResolvedEntity
from memory.services.entities.relate import RelationshipDraft
from memory.services.facts.learn import FactDraft, LearnedFact
from memory.services.memories.store import validate_vector
from memory.services.recall.recall import embed_search_query
from memory.services.strategies.learn import StrategyDraft
from memory.services.tools import InvocationDraft, ToolStats, get_tool_stats

Question = str | Embedding | Sequence[float]
"""What a search is for: a text, or its embedding by the configured model."""


def query_of(owner: Owner, question: Question, top_k: int) -> MemoryQuery:
    """Return the query of a search by text or by embedding. Raises WrongVectorWidth."""
    if isinstance(question, str):
        return embed_search_query(question, top_k=top_k, own=None)
    return embed_search_query("", top_k=top_k, own=validate_vector(owner, model="", vector=question))


class Subsystem:
    """Base of the subsystems: whose memory it is."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner

    def memory_in(self, channel: str) -> AgentMemory:
        """Return the agent's memory in a channel."""
        return AgentMemory(in_channel(self.owner, channel))


class ConversationHistory(Subsystem):
    """The documented episodic memory: turns of conversations with their context."""

    def store_turn(self, turn: Mapping[str, Any], channel: str = GLOBAL_CHANNEL) -> Turn:
        """Store a message (`role`, `content`, …) at the end of its `conversation_id`: log, vector and session."""
        return self.memory_in(channel).store_turn(turn["conversation_id"], turn)

    def store_turn_log(self, turn: Mapping[str, Any], channel: str = GLOBAL_CHANNEL) -> Turn:
        """Store a message in the log without embedding it now; the job `embed` does that."""
        from_log = draft_of(turn)
        return turns.store_turn(
            in_channel(self.owner, channel),
            turn["conversation_id"],
            draft=from_log,
            embedded=embed_texts([]),
            now=timezone.now(),
        )

    def vector_search(
        self,
        query_embedding: Question,
        top_k: int = 10,
        user_id: str | None = None,
        channels: Sequence[str] | None = None,
        time_window_hours: float | None = None,
    ) -> Sequence[TurnHit]:
        """Return the nearest turns of all conversations that the agent takes part in, best first."""
        now, owner = timezone.now(), for_user(in_channels(self.owner, channels), user_id)
        since = None if time_window_hours is None else now - timedelta(hours=time_window_hours)
        query = replace(query_of(owner, query_embedding, top_k), since=since)
        return search_turns(owner, query, now=now).hits

    def get_conversation(self, conversation_id: str) -> list[Turn]:
        """Return the whole log, first turn first. Raises NotFound."""
        return turns.get_conversation(self.owner, conversation_id)

    def get_recent_turns(
        self,
        user_id: str | None = None,
        channels: Sequence[str] | None = None,
        hours: float = 24,
        limit: int | None = None,
    ) -> list[Turn]:
        """Return the latest turns of the last `hours`, newest first; MEMORY_MAX_CONTEXT_MESSAGES by default."""
        owner = for_user(in_channels(self.owner, channels), user_id)
        most = conf.MAX_CONTEXT_MESSAGES if limit is None else limit
        return turns.get_recent_turns(owner, hours=hours, limit=most, now=timezone.now())


class SemanticMemory(Subsystem):
    """Entities, facts and the relationships between them."""

    def upsert_entity(self, entity: EntityDraft, channel: str = GLOBAL_CHANNEL) -> ResolvedEntity:
        return self.memory_in(channel).upsert_entity(entity)

    def store_fact(self, fact: FactDraft, channel: str = GLOBAL_CHANNEL) -> LearnedFact:
        """Learn a fact, and end what it contradicts as the account wants it."""
        return self.memory_in(channel).learn_fact(fact)

    def vector_search_facts(
        self,
        query_embedding: Question,
        top_k: int = 10,
        channels: Sequence[str] | None = None,
        min_confidence: float = 0.0,
    ) -> Sequence[FactHit]:
        """Return the nearest facts that are true now, best first."""
        owner, now = in_channels(self.owner, channels), timezone.now()
        query = query_of(owner, query_embedding, top_k)
        return search_facts(owner, query, min_confidence=min_confidence, now=now).hits

    def vector_search_entities(
        self, query_embedding: Question, top_k: int = 10, channels: Sequence[str] | None = None
    ) -> Sequence[EntityHit]:
        """Return the nearest entities, best first."""
        owner = in_channels(self.owner, channels)
        return search_entities(owner, query_of(owner, query_embedding, top_k), now=timezone.now()).hits

    def get_entity_graph(self, entity_ids: Sequence[UUID], depth: int = 1) -> Graph:
        """Return what these are linked to, up to three links away. Raises NotFound."""
        return AgentMemory(self.owner).get_entity_graph(entity_ids, depth)

    def create_relationship(
        self, source_id: UUID, target_id: UUID, rel_type: str, properties: Mapping[str, Any] | None = None
    ) -> Link:
        """Relate two entities; the same relationship again adds its properties."""
        draft = RelationshipDraft(
            source_id=source_id, target_id=target_id, type=rel_type, properties=dict(properties or {})
        )
        return AgentMemory(self.owner).create_relationship(draft)

    def promote_to_global(self, fact_id: UUID, reason: str) -> Fact:
        """Copy the fact to the channel `_global`, and return the copy."""
        return AgentMemory(self.owner).promote_to_global(fact_id, reason)


class ProceduralMemory(Subsystem):
    """Uses of tools, and strategies that worked."""

    def record_invocation(
        self,
        conversation_id: str,
        turn_id: UUID | None,
        tool_name: str,
        tool_input: Any,
        tool_output: Any = None,
        success: bool | None = None,
        latency_ms: int | None = None,
        channel: str = GLOBAL_CHANNEL,
    ) -> ToolInvocation:
        """Record a use of a tool in a turn of a conversation. Raises NotFound for an unknown turn."""
        owner = in_channel(self.owner, channel)
        turn_index = None
        if turn_id is not None:
            turn_index = turns.turns_of_conversation(owner, conversation_id).get(id=turn_id).index
        draft = InvocationDraft(
            conversation_id=conversation_id,
            tool_name=tool_name,
            tool_input=tool_input,
            tool_output=tool_output,
            success=success,
            latency_ms=latency_ms,
            turn_index=turn_index,
        )
        return AgentMemory(owner).record_invocation(draft)

    def learn_strategy(
        self,
        description: str,
        context_pattern: str = "",
        tool_sequence: Sequence[str] = (),
        from_conversation_id: str = "",
        success: bool | None = None,
        channel: str = GLOBAL_CHANNEL,
    ) -> Strategy:
        """Learn a way of doing something, or count one more use of a known one."""
        draft = StrategyDraft(
            description=description,
            context_pattern=context_pattern,
            tool_sequence=tool_sequence,
            conversation_id=from_conversation_id,
            success=success,
        )
        return self.memory_in(channel).learn_strategy(draft)

    def find_strategies(
        self, task_description: str, channels: Sequence[str] | None = None, top_k: int = 5
    ) -> Sequence[StrategyHit]:
        """Return the strategies that fit the task and often succeed, best first."""
        return AgentMemory(in_channels(self.owner, channels)).find_strategies(task_description, top_k=top_k).hits

    def reinforce_strategy(self, strategy_id: UUID, success: bool) -> Strategy:
        """Record how a use of the strategy went. Raises NotFound."""
        return AgentMemory(self.owner).reinforce_strategy(strategy_id, success=success)

    def get_tool_stats(self, task_type: str = "", channel: str = "") -> list[ToolStats]:
        """Return counts, success and latency, tool by tool; of all task types and channels unless they are named."""
        return get_tool_stats(self.owner, task_type=task_type, channel=channel, now=timezone.now())


class MemoryAuditLogger(Subsystem):
    """The audit log, as far as the account's level keeps it. Services write their own entries; this adds others."""

    def log_write(
        self,
        operation: str,
        memory_type: str,
        channel: str = GLOBAL_CHANNEL,
        affected_ids: Sequence[UUID | str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        record_audit(
            in_channel(self.owner, channel),
            operation=operation,
            memory_type=memory_type,
            affected_ids=affected_ids,
            result_count=len(affected_ids),
            metadata=dict(metadata or {}),
        )

    def log_read(
        self, query: str, channels_searched: Sequence[str], result_count: int, latency_ms: int | None = None
    ) -> None:
        record_read(
            self.owner,
            memory_type="semantic",
            affected_ids=[],
            query_text=query,
            target_channels=list(channels_searched),
            result_count=result_count,
            latency_ms=latency_ms,
        )

    def log_promotion(
        self, fact_id: UUID, source_channel: str, reason: str, thresholds: Mapping[str, Any] | None = None
    ) -> None:
        """Record that a fact was copied to `_global`, with the thresholds that it reached."""
        record_audit(
            self.owner,
            operation="promote",
            memory_type="semantic",
            affected_ids=[fact_id],
            target_channels=[GLOBAL_CHANNEL],
            promoted_from_channel=source_channel,
            config_snapshot=dict(thresholds or {}),
            metadata={"reason": reason},
        )
