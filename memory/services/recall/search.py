"""Searches of one kind for the edges: embeds the query (the one provider call of a read), then searches."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from memory.audit import is_verbose
from memory.models.binary import Embedding
from memory.owner import Owner
from memory.retrieval.episodes import EpisodesFound, search_episodes
from memory.retrieval.queries import LONGEST_QUERY as LONGEST_QUERY
from memory.retrieval.search import MemoryQuery
from memory.retrieval.turns import TurnsFound, search_turns
from memory.services.audit.log import count_elsewhere, record_read
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import OwnVector

QUERY_DEADLINE_SECONDS = 2.0


def find_episodes(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: OwnVector | None,
    now: datetime,
    without: Collection[UUID] = (),
    besides: Collection[str] = (),
) -> EpisodesFound:
    """The owner's episodes nearest to `text`, or to the client's own vector; says when meaning could not be had.

    `without` are ids that shall not come back, `besides` conversations nothing of which shall.
    """
    query = replace(make_query(text, top_k=top_k, own=own), without=tuple(without), besides=tuple(besides))
    found = search_episodes(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k)
    return found


def find_turns(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    time_window_hours: float | None = None,
    own: OwnVector | None = None,
    now: datetime,
) -> TurnsFound:
    """The turns nearest to `text`, or to the client's own vector, in conversations in which the owner takes part.

    With a window, of its last hours up to `now` only. Says when meaning could not be had.
    """
    since = None if time_window_hours is None else now - timedelta(hours=time_window_hours)
    query = replace(make_query(text, top_k=top_k, own=own), since=since)
    found = search_turns(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k)
    return found


def make_query(text: str, *, top_k: int, own: OwnVector | None) -> MemoryQuery:
    """A query with its vector: the client's, else the embedder's, else none."""
    if own is not None:
        return MemoryQuery(text=text, top_k=top_k, model=own.model, width=len(own.vector), vector=own.vector)
    embedded = embed_texts([text], deadline_seconds=QUERY_DEADLINE_SECONDS)
    vector: Embedding | None = embedded.vectors.get(text)
    return MemoryQuery(text=text, top_k=top_k, model=embedded.model, width=embedded.width, vector=vector)


class Hit(Protocol):
    """What every search finds, of whichever kind."""

    @property
    def id(self) -> UUID: ...

    @property
    def channel(self) -> str: ...

    @property
    def similarity(self) -> float | None: ...


def record_search(owner: Owner, text: str, found: Sequence[Hit], *, top_k: int, memory_type: str = "episodic") -> None:
    record_read(
        owner,
        memory_type=memory_type,
        affected_ids=[hit.id for hit in found],
        target_channels=list(owner.channels),
        query_text=text,
        result_count=len(found),
        cross_channel_count=count_elsewhere(owner, [hit.channel for hit in found]),
        metadata=tell_searched(found, top_k=top_k) if is_verbose(owner) else {},
    )


def tell_searched(found: Sequence[Hit], *, top_k: int) -> dict[str, Any]:
    """How many were asked for, and how near each is; null for those found by their words."""
    near = {str(hit.id): hit.similarity for hit in found}
    return {"top_k": top_k, "scores": {each: score and round(score, 4) for each, score in near.items()}}
