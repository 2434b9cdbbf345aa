"""Recalling for the edges: embeds the query (the one provider call of a read), then searches."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memory.audit import record
from memory.models.binary import Embedding
from memory.owner import Owner
from memory.retrieval.episodes import EpisodeQuery, EpisodesFound, search_episodes
from memory.services.embedding import embed_texts
from memory.services.memories import OwnVector

QUERY_DEADLINE_SECONDS = 2.0


def find_episodes(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: OwnVector | None,
    now: datetime,
    without: Collection[UUID] = (),
) -> EpisodesFound:
    """The owner's episodes nearest to `text`, or to the client's own vector; says when meaning could not be had.

    `without` are ids that shall not come back.
    """
    query = replace(make_query(text, top_k=top_k, own=own), without=tuple(without))
    found = search_episodes(owner, query, now=now)
    record(
        owner,
        operation="retrieve",
        memory_type="episodic",
        affected_ids=[hit.id for hit in found.hits],
        target_channels=list(owner.channels),
        query_text=text,
        result_count=len(found.hits),
    )
    return found


def make_query(text: str, *, top_k: int, own: OwnVector | None) -> EpisodeQuery:
    """A query with its vector: the client's, else the embedder's, else none."""
    if own is not None:
        return EpisodeQuery(text=text, top_k=top_k, model=own.model, width=len(own.vector), vector=own.vector)
    embedded = embed_texts([text], deadline_seconds=QUERY_DEADLINE_SECONDS)
    vector: Embedding | None = embedded.vectors.get(text)
    return EpisodeQuery(text=text, top_k=top_k, model=embedded.model, width=embedded.width, vector=vector)
