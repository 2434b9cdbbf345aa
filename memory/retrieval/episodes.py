"""Episodic search (A4): by meaning; by words for rows whose vector is pending, or all when there is no query vector."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any
from uuid import UUID

from memory import conf
from memory.models import Kind, Memory, Vector
from memory.models.binary import Embedding, binary_cursor, fetch_dicts, half_vector
from memory.models.memory import DEFAULT_LANGUAGE
from memory.owner import Owner
from memory.retrieval.lexical import bm25_ctes
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, bind_owner, shape_of, squeeze, where_of
from memory.retrieval.vectors import nearest_ctes

COLUMNS = """memories.id, agent_id, user_id, channel, conversation_id, text, key_decisions, entities_mentioned,
    tools_called, event_time, created_at, metadata"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeQuery:
    """What is asked. `vector` is the query's embedding by `model`, or None; `without` are ids not to come back."""

    text: str
    top_k: int
    model: str
    width: int
    vector: Embedding | None
    exact_rows: int = conf.EXACT_SEARCH_ROWS
    without: Sequence[UUID] = ()


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


def search_episodes(owner: Owner, query: EpisodeQuery, *, now: datetime) -> EpisodesFound:
    """The owner's `top_k` episodes nearest to the query. One statement.

    With a `user_id` only that user's episodes; channels: the active one and `_global`. Pending rows that share words
    with the query alternate with those found by meaning (each list best first), since a similarity and a BM25
    score cannot be compared.
    """
    statement = compose(shape_of(owner), query.width if query.vector is not None else None)
    values: dict[str, Any] = bind_owner(owner, now=now) | {
        "model": query.model,
        "query": query.text,
        "language": DEFAULT_LANGUAGE,
        "limit": query.top_k,
        "exact_rows": query.exact_rows,
        "without": list(query.without),
        "vector": None if query.vector is None else half_vector(query.vector),
    }
    with binary_cursor() as cursor:
        cursor.execute(statement.text, {**statement.parameters, **values})
        found = fetch_dicts(cursor)
    return EpisodesFound(hits=take_hits(found, query.top_k), degraded=name_degraded(query, found))


@lru_cache(maxsize=256)
def compose(shape: OwnerShape, width: int | None) -> Sql:
    """The statement for owners of this shape and vectors of this width, None without one.

    Words are looked for only where meaning cannot find.
    """
    rows, vectors = candidates(shape.owner, width)
    waiting = f"{rows.text} AND embed_after IS NOT NULL"
    if width is None:
        parts = bm25_ctes(corpus=rows.text)
        pending = f"EXISTS (SELECT FROM memories WHERE {waiting})"
        union = "SELECT id, NULL::float8 AS similarity, score FROM scored"
    else:
        parts = f"{nearest_ctes(where=vectors.text, width=width)}, {bm25_ctes(corpus=waiting)}"
        pending = "rows > 0"
        union = """SELECT memory_id AS id, 1 - distance AS similarity, NULL::float8 AS score FROM nearest
            UNION ALL SELECT id, NULL, score FROM scored WHERE id NOT IN (SELECT memory_id FROM nearest)"""
    text = f"""
        WITH {parts}, found AS MATERIALIZED ({union})
        SELECT state.pending, similarity, score, {COLUMNS}
        FROM (SELECT {pending} AS pending FROM corpus) AS state LEFT JOIN (
            found JOIN memories ON memories.id = found.id
            JOIN episodic_memories ON episodic_memories.memory_ptr_id = memories.id
        ) ON true
        ORDER BY similarity DESC NULLS LAST, score DESC NULLS LAST, memories.id"""
    return Sql(text=squeeze(text), parameters={**rows.parameters, **vectors.parameters})


def candidates(owner: Owner, width: int | None) -> tuple[Sql, Sql]:
    """The conditions on memories and on their vectors, for an owner made of stand-ins."""
    now, model = STAND_IN["now"], STAND_IN["model"]
    rows = Memory.objects.visible_to(owner, Kind.EPISODE).in_channels(owner).live(now)
    vectors = Vector.objects.visible_to(owner, Kind.EPISODE).in_channels(owner).live(now).of_model(model, width or 0)
    if owner.user_id:
        rows, vectors = rows.filter(user_id=owner.user_id), vectors.filter(user_id=owner.user_id)
    both = (where_of(rows, prefix="m"), "memories.id"), (where_of(vectors, prefix="v"), "memory_vectors.memory_id")
    found = [
        Sql(text=f"{where.text} AND NOT {key} = ANY(%(without)s::uuid[])", parameters=where.parameters)
        for where, key in both
    ]
    return found[0], found[1]


def take_hits(found: Sequence[dict[str, Any]], top_k: int) -> list[EpisodeHit]:
    """The first of each list in turn, meaning first."""
    present = [row for row in found if row["id"] is not None]
    by_meaning = [row for row in present if row["similarity"] is not None]
    by_words = [row for row in present if row["similarity"] is None]
    alternated: Iterable[dict[str, Any] | None] = chain.from_iterable(zip_longest(by_meaning, by_words))
    return [make_hit(row) for row in alternated if row is not None][:top_k]


def make_hit(row: dict[str, Any]) -> EpisodeHit:
    values = {name: value for name, value in row.items() if name not in ("pending", "score", "text")}
    return EpisodeHit(summary=row["text"], **values)


def name_degraded(query: EpisodeQuery, found: Sequence[dict[str, Any]]) -> list[str]:
    degraded = [] if query.vector is not None else ["embedder_unavailable"]
    if found and found[0]["pending"]:
        degraded.append("embedding_pending")
    return degraded
