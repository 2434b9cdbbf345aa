"""Episodic search (A4): what past conversations came to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows

EPISODES = Searched(
    kind=Kind.EPISODE,
    table="episodic_memories",
    columns=("key_decisions", "entities_mentioned", "tools_called"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeHit(Hit):
    """A found episode."""

    kind: ClassVar[Kind] = Kind.EPISODE

    summary: str
    key_decisions: list[Any]
    entities_mentioned: list[Any]
    tools_called: list[Any]


EpisodesFound = Found[EpisodeHit]


def search_episodes(owner: Owner, query: MemoryQuery, *, now: datetime) -> EpisodesFound:
    """The owner's `top_k` episodes nearest to the query (see `search_rows`). One statement."""
    found = search_rows(owner, EPISODES, query, now=now)
    return Found(hits=[make_hit(row) for row in found.hits], degraded=found.degraded)


def make_hit(row: Row) -> EpisodeHit:
    return EpisodeHit(summary=row["text"], **{name: value for name, value in row.items() if name != "text"})
