"""Searches of one kind of memory, for the edges: embed the text, search, and log the search."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory.audit import is_verbose
from memory.models.binary import Embedding
from memory.owner import Owner
from memory.retrieval.episodes import EpisodeResults, search_episodes
from memory.retrieval.search import Hit, MemoryQuery
from memory.retrieval.turns import TurnResults, search_turns
from memory.services.audit import count_other_channels, record_read
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector

QUERY_DEADLINE_SECONDS = 2.0


def search_episodes_by_text(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: ClientVector | None,
    now: datetime,
    without: Collection[UUID] = (),
    besides: Collection[str] = (),
) -> EpisodeResults:
    """Return the owner's episodes nearest to `text`, or to the client's own vector.

    `without` are ids not to return, `besides` conversations to skip. `degraded` says if meaning could not be compared.
    """
    query = replace(embed_search_query(text, top_k=top_k, own=own), without=tuple(without), besides=tuple(besides))
    found = search_episodes(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k)
    return found


def search_turns_by_text(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    time_window_hours: float | None = None,
    own: ClientVector | None = None,
    now: datetime,
) -> TurnResults:
    """Return the turns nearest to `text`, or to the client's own vector, in conversations of the owner's.

    `time_window_hours` ends at `now`. `degraded` says if meaning could not be compared.
    """
    since = None if time_window_hours is None else now - timedelta(hours=time_window_hours)
    query = replace(embed_search_query(text, top_k=top_k, own=own), since=since)
    found = search_turns(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k)
    return found


def embed_search_query(text: str, *, top_k: int, own: ClientVector | None) -> MemoryQuery:
    """Return a query with its vector: the client's, else the embedder's, else none. The one provider call of a read."""
    if own is not None:
        return MemoryQuery(text=text, top_k=top_k, model=own.model, width=len(own.vector), vector=own.vector)
    embedded = embed_texts([text], deadline_seconds=QUERY_DEADLINE_SECONDS)
    vector: Embedding | None = embedded.vectors.get(text)
    return MemoryQuery(text=text, top_k=top_k, model=embedded.model, width=embedded.width, vector=vector)


def record_search(owner: Owner, text: str, found: Sequence[Hit], *, top_k: int, memory_type: str = "episodic") -> None:
    """Log a search where the audit level keeps reads."""
    record_read(
        owner,
        memory_type=memory_type,
        affected_ids=[hit.id for hit in found],
        target_channels=list(owner.channels),
        query_text=text,
        result_count=len(found),
        cross_channel_count=count_other_channels(owner, [hit.channel for hit in found]),
        metadata=serialize_search_details(found, top_k=top_k) if is_verbose(owner) else {},
    )


def serialize_search_details(found: Sequence[Hit], *, top_k: int) -> dict[str, Any]:
    """Return `top_k` and the similarity of each hit; null for hits found by their words."""
    scores = {str(hit.id): hit.similarity and round(hit.similarity, 4) for hit in found}
    return {"top_k": top_k, "scores": scores}
