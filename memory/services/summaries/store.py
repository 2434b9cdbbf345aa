"""Episodic memories: what a conversation came to (A3), the episodes of a conversation (A5)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memory.models import EpisodicMemory, Kind
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import OwnVector, store_memories
from memory_project.ids import uuid7


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeDraft:
    """An episode before it is stored. `identity` makes it the same thing again (an import run twice)."""

    conversation_id: str
    summary: str
    key_decisions: Sequence[Any] = ()
    entities_mentioned: Sequence[Any] = ()
    tools_called: Sequence[Any] = ()
    event_time: datetime | None = None
    source: str = "agent"
    identity: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)


def store_episodes(
    owner: Owner, *, drafts: Sequence[EpisodeDraft], embedded: Embedded, now: datetime
) -> list[EpisodicMemory]:
    """Store episodes; returns those that are new. Embed their summaries first (`embed_texts`), outside transactions."""
    rows = [
        EpisodicMemory(
            id=draft.id,
            kind=Kind.EPISODE,
            identity=draft.identity,
            conversation_id=draft.conversation_id,
            text=draft.summary,
            key_decisions=list(draft.key_decisions),
            entities_mentioned=list(draft.entities_mentioned),
            tools_called=list(draft.tools_called),
            event_time=draft.event_time or now,
            source=draft.source,
            metadata=draft.metadata,
        )
        for draft in drafts
    ]
    own = {draft.id: draft.own for draft in drafts if draft.own is not None}
    return store_memories(owner, rows, embedded=embedded, own=own, now=now)


def episodes_of_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> QuerySet[EpisodicMemory]:
    """What a search could return of a conversation, in any channel."""
    visible = EpisodicMemory.objects.visible_to(owner, Kind.EPISODE).live(now).in_conversation(conversation_id)
    rows: QuerySet[EpisodicMemory] = visible  # type: ignore[assignment]
    return rows
