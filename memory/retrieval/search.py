"""Search in one kind of memory: by meaning; by words for rows whose vector is pending, or all without a query vector.

What kinds have in common is here; what one has more (its child's table and columns, its hit) stands in its own module.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from memory import conf
from memory.models import Kind, Memory, PersistentContext, Vector
from memory.models.binary import Embedding, binary_cursor, fetch_dicts, half_vector
from memory.models.memory import KNOWLEDGE, OF_CONTEXTS
from memory.owner import Owner
from memory.retrieval.lexical import bm25_ctes
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, bind_owner, shape_of, squeeze, where_of
from memory.retrieval.vectors import nearest_ctes

Row = dict[str, Any]

SHARED_COLUMNS = (
    *("memories.id", "agent_id", "user_id", "channel", "conversation_id", "text"),
    *("event_time", "created_at", "metadata"),
)

# what the query wants none of: nothing, where its lists are empty
WANTED_ROWS = """
    AND NOT memories.id = ANY(%(without)s::uuid[]) AND NOT memories.conversation_id = ANY(%(besides)s::text[])"""
WANTED_VECTORS = """
    AND NOT memory_vectors.memory_id = ANY(%(without)s::uuid[])
    AND NOT memory_vectors.conversation_id = ANY(%(besides)s::text[])"""

# vectors know no times: the planner starts from whichever side is narrower
DATED_VECTORS = """
    AND EXISTS (
        SELECT FROM memories AS dated WHERE dated.id = memory_vectors.memory_id
        AND dated.account_id = %(account_id)s AND dated.event_time > %(since)s
    )"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A kind as it is searched: its child's table, and the columns of it that a row is answered with.

    `type_column` is the one that `MemoryQuery.types` are values of; empty where the kind has no types. `condition` is
    what rows of the child's table, named `own`, must be besides, in SQL whose parameters are `MemoryQuery.values`.
    """

    kind: Kind
    table: str
    columns: tuple[str, ...]
    type_column: str = ""
    condition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Which bounds a query has; they decide the statement's text, their values are bound."""

    has_window: bool
    has_contexts: bool
    has_types: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """What is asked. `vector` is the query's embedding by `model`, or None.

    `since` leaves out what happened at that time or before; `without` are ids not to come back, `besides`
    conversations nothing of which is to. With `contexts`, only what lives in one of them; with `types`, only what is
    of one of them. `values` are the parameters of the kind's own condition, by name.
    """

    text: str
    top_k: int
    model: str
    width: int
    vector: Embedding | None
    exact_rows: int = conf.EXACT_SEARCH_ROWS
    since: datetime | None = None
    without: Sequence[UUID] = ()
    besides: Sequence[str] = ()
    contexts: Sequence[UUID] = ()
    types: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A found memory. `similarity` is 1 - cosine distance, None for one found by its words."""

    kind: ClassVar[Kind]

    id: UUID
    agent_id: str
    user_id: str
    channel: str
    conversation_id: str
    event_time: datetime
    created_at: datetime
    metadata: dict[str, Any]
    similarity: float | None

    @property
    def item_key(self) -> str:
        """Its name in the injection ledger."""
        return f"{self.kind.value}:{self.id}"


H = TypeVar("H")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[H]):
    """Best first. `degraded` names what kept the answer from being by meaning alone; empty when nothing did."""

    hits: Sequence[H]
    degraded: Sequence[str]


def search_rows(owner: Owner, searched: Searched, query: MemoryQuery, *, now: datetime) -> Found[Row]:
    """The owner's `top_k` rows of a kind nearest to the query. One statement.

    With a `user_id` only that user's rows, and of knowledge those without a user; channels: the active one and
    `_global`. Pending rows that share words with the query alternate with those found by meaning (each list best
    first), since a similarity and a BM25 score cannot be compared.
    """
    bounds = Bounds(has_window=query.since is not None, has_contexts=bool(query.contexts), has_types=bool(query.types))
    width = query.width if query.vector is not None else None
    statement = compose(shape_of(owner), searched, width, bounds)
    with binary_cursor() as cursor:
        cursor.execute(statement.text, {**statement.parameters, **bind_owner(owner, now=now), **bind_query(query)})
        found = fetch_dicts(cursor)
    return Found(hits=take_rows(found, query.top_k), degraded=name_degraded(query, found))


def bind_query(query: MemoryQuery) -> dict[str, Any]:
    return {
        "model": query.model,
        "query": query.text,
        "limit": query.top_k,
        "exact_rows": query.exact_rows,
        "since": query.since,
        "without": list(query.without),
        "besides": list(query.besides),
        "contexts": list(query.contexts),
        "types": list(query.types),
        "vector": None if query.vector is None else half_vector(query.vector),
    } | dict(query.values)


@lru_cache(maxsize=1024)
def compose(shape: OwnerShape, searched: Searched, width: int | None, bounds: Bounds) -> Sql:
    """The statement for owners of this shape and vectors of this width, None without one.

    Words are looked for only where meaning cannot find.
    """
    readable = readable_cte(shape.owner, bounds) if searched.kind in OF_CONTEXTS else Sql(text="", parameters={})
    rows, vectors = candidates(shape.owner, searched, width, bounds)
    waiting = f"{rows.text} AND embed_after IS NOT NULL"
    if width is None:
        parts = bm25_ctes(rows=rows.text)
        union = "SELECT id, NULL::float8 AS similarity, score FROM scored"
    else:
        parts = f"{nearest_ctes(where=vectors.text, width=width)}, {bm25_ctes(rows=waiting)}"
        union = """SELECT memory_id AS id, 1 - distance AS similarity, NULL::float8 AS score FROM nearest
            UNION ALL SELECT id, NULL, score FROM scored WHERE id NOT IN (SELECT memory_id FROM nearest)"""
    text = f"""
        WITH {readable.text} {parts}, found AS MATERIALIZED ({union})
        SELECT state.pending, similarity, found.score AS bm25, {", ".join((*SHARED_COLUMNS, *searched.columns))}
        FROM (SELECT EXISTS (SELECT FROM memories WHERE {waiting}) AS pending) AS state LEFT JOIN (
            found JOIN memories ON memories.id = found.id
            JOIN {searched.table} ON {searched.table}.memory_ptr_id = memories.id
        ) ON true
        ORDER BY similarity DESC NULLS LAST, bm25 DESC NULLS LAST, memories.id"""
    return Sql(text=squeeze(text), parameters={**readable.parameters, **rows.parameters, **vectors.parameters})


def readable_cte(owner: Owner, bounds: Bounds) -> Sql:
    """The contexts that a search may look into, worked out once: conditions on rows would be planned five times."""
    where = where_of(PersistentContext.objects.visible_to(owner).active(), prefix="c")
    asked = " AND id = ANY(%(contexts)s::uuid[])" if bounds.has_contexts else ""
    text = f"""
        readable AS MATERIALIZED (SELECT array_agg(id) AS ids FROM persistent_contexts WHERE {where.text}{asked}),"""
    return Sql(text=text, parameters=where.parameters)


def candidates(owner: Owner, searched: Searched, width: int | None, bounds: Bounds) -> tuple[Sql, Sql]:
    """The conditions on memories and on their vectors, for an owner made of stand-ins."""
    now, model, kind = STAND_IN["now"], STAND_IN["model"], searched.kind
    # what lives in contexts is the account's as far as the contexts among `readable` go
    sees = replace(owner, agent_id="") if kind in OF_CONTEXTS else owner
    rows = Memory.objects.visible_to(sees, kind).in_channels(owner).recallable(now)
    vectors = Vector.objects.visible_to(sees, kind).in_channels(owner).live(now).of_model(model, width or 0)
    # knowledge of nobody in particular is for every user
    if owner.user_id and kind not in KNOWLEDGE:
        rows, vectors = rows.filter(user_id=owner.user_id), vectors.filter(user_id=owner.user_id)
    of_rows, of_vectors = where_of(rows, prefix="m"), where_of(vectors, prefix="v")
    dated, dated_vectors = (" AND memories.event_time > %(since)s", DATED_VECTORS) if bounds.has_window else ("", "")
    within = " AND context_id = ANY((SELECT ids FROM readable)::uuid[])" if kind in OF_CONTEXTS else ""
    wanted = f"{WANTED_ROWS}{dated}{within}{of_child(searched, bounds, 'memories.id')}"
    wanted_vectors = f"{WANTED_VECTORS}{dated_vectors}{within}{of_child(searched, bounds, 'memory_vectors.memory_id')}"
    return (
        Sql(text=f"{of_rows.text}{wanted}", parameters=of_rows.parameters),
        Sql(text=f"{of_vectors.text}{wanted_vectors}", parameters=of_vectors.parameters),
    )


def of_child(searched: Searched, bounds: Bounds, memory_id: str) -> str:
    """The condition on what its child's table alone knows of a memory; empty where there is none."""
    typed = [f"own.{searched.type_column} = ANY(%(types)s::text[])"] if bounds.has_types else []
    conditions = [*typed, *filter(None, [searched.condition])]
    if not conditions:
        return ""
    return f"""
    AND EXISTS (
        SELECT FROM {searched.table} AS own WHERE own.memory_ptr_id = {memory_id} AND {" AND ".join(conditions)}
    )"""


def take_rows(found: Sequence[Row], top_k: int) -> list[Row]:
    """The first of each list in turn, meaning first."""
    present = [row for row in found if row["id"] is not None]
    by_meaning = [row for row in present if row["similarity"] is not None]
    by_words = [row for row in present if row["similarity"] is None]
    alternated: Iterable[Row | None] = chain.from_iterable(zip_longest(by_meaning, by_words))
    taken = [row for row in alternated if row is not None][:top_k]
    return [{name: value for name, value in row.items() if name not in ("pending", "bm25")} for row in taken]


def name_degraded(query: MemoryQuery, found: Sequence[Row]) -> list[str]:
    degraded = [] if query.vector is not None else ["embedder_unavailable"]
    if found and found[0]["pending"]:
        degraded.append("embedding_pending")
    return degraded
