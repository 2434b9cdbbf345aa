"""Episodic search (A4): what past conversations came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import MemoryQuery, Row, Searched, search_rows

EPISODES = Searched(
    kind=Kind.EPISODE,
    table="episodic_memories",
    columns=("key_decisions", "entities_mentioned", "tools_called"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeHit:
    """A found episode. `similarity` is 1 - cosine distance, None for one found by its words."""

    id: UUID
    agent_id: str
    user_id: str
    channel: str
    conversation_id: str
    summary: str
    key_decisions: list[Any]
    entities_mentioned: list[Any]
    tools_called: list[Any]
    event_time: datetime
    created_at: datetime
    metadata: dict[str, Any]
    similarity: float | None

    @property
    def item_key(self) -> str:
        return f"{Kind.EPISODE.value}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodesFound:
    """Best first. `degraded` names what kept the answer from being by meaning alone; empty when nothing did."""

    hits: Sequence[EpisodeHit]
    degraded: Sequence[str]


def search_episodes(owner: Owner, query: MemoryQuery, *, now: datetime) -> EpisodesFound:
    """The owner's `top_k` episodes nearest to the query (see `search_rows`). One statement."""
    found = search_rows(owner, EPISODES, query, now=now)
    return EpisodesFound(hits=[make_hit(row) for row in found.rows], degraded=found.degraded)


def make_hit(row: Row) -> EpisodeHit:
    return EpisodeHit(summary=row["text"], **{name: value for name, value in row.items() if name != "text"})
