"""Episodic search (A4): summaries of past conversations."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from memory.kinds import Kind
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, SearchResults, search_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeHit(Hit):
    """A found episode."""

    kind: ClassVar[Kind] = Kind.EPISODE

    summary: str
    key_decisions: list[Any]
    entities_mentioned: list[Any]
    tools_called: list[Any]


EpisodeResults = SearchResults[EpisodeHit]
EPISODES = KindSearch(
    kind=Kind.EPISODE,
    hit=EpisodeHit,
    table="episodic_memories",
    columns=("key_decisions", "entities_mentioned", "tools_called"),
    text_field="summary",
)


def search_episodes(owner: Owner, query: MemoryQuery, *, now: datetime) -> EpisodeResults:
    """Return the owner's `top_k` episodes nearest to the query (see `search_rows`). One statement."""
    return search_kind(owner, EPISODES, query, now=now)
