"""Search in memories of one kind: by meaning, and by words for rows without a vector, or all if the query has none.

This module holds what the kinds share. Each kind's module adds a `KindSearch` (its table, columns and hit) and a search
function.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from memory import conf
from memory.kinds import Audience, Kind, spec_of
from memory.models import Memory, PersistentContext, Vector
from memory.models.binary import Embedding, half_vector
from memory.owner import Owner
from memory.retrieval.retrievers.lexical import bm25_ctes
from memory.retrieval.retrievers.vector import nearest_ctes
from memory.retrieval.statements import STAND_INS, OwnerShape, Sql, collapse_whitespace, owner_shape, where_sql

H = TypeVar("H")
Row = dict[str, Any]

SHARED_COLUMNS = (
    *("memories.id", "agent_id", "user_id", "channel", "conversation_id", "text"),
    *("event_time", "created_at", "metadata"),
)

# empty lists exclude nothing
WANTED_ROWS = """
    AND NOT memories.id = ANY(%(without)s::uuid[]) AND NOT memories.conversation_id = ANY(%(besides)s::text[])"""
WANTED_VECTORS = """
    AND NOT memory_vectors.memory_id = ANY(%(without)s::uuid[])
    AND NOT memory_vectors.conversation_id = ANY(%(besides)s::text[])"""

# vectors have no times: the planner starts from whichever side is narrower
DATED_VECTORS = """
    AND EXISTS (
        SELECT FROM memories AS dated WHERE dated.id = memory_vectors.memory_id
        AND dated.account_id = %(account_id)s AND dated.event_time > %(since)s
    )"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSearch(Generic[H]):
    """The search in a kind: the table of its own columns, those that a hit has, and the class of its hits.

    `text_field` is the field of a hit that holds the memory's text; empty if it has none. `type_column` holds the
    values of `MemoryQuery.types`; empty if the kind has no types. `condition` is a further SQL condition on the kind's
    table, named `own`; its parameters are `MemoryQuery.values`.
    """

    kind: Kind
    hit: Callable[..., H]
    table: str
    columns: tuple[str, ...]
    text_field: str = "text"
    type_column: str = ""
    condition: str = ""

    def make_hit(self, row: Row) -> H:
        text = {self.text_field: row["text"]} if self.text_field else {}
        return self.hit(**text | {name: value for name, value in row.items() if name != "text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBounds:
    """The bounds that a query has. They decide the text of the statement; their values are bound."""

    has_window: bool
    has_contexts: bool
    has_types: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """A query for memories of one kind. `vector` is its embedding by `model`, or None.

    `since` leaves out what happened at that time or before, `without` leaves out ids, `besides` conversations.
    `contexts` and `types` limit the search to these. `values` are the parameters of the kind's own condition.
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
    """A found memory. `similarity` is 1 - cosine distance; None if it was found by words."""

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
        """The key of this memory in the injection ledger."""
        return f"{self.kind.value}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults(Generic[H]):
    """Hits, best first. `degraded` names the reasons why not all were found by meaning; empty if all were."""

    hits: Sequence[H]
    degraded: Sequence[str]


def search_kind(owner: Owner, searched: KindSearch[H], query: MemoryQuery, *, now: datetime) -> SearchResults[H]:
    """Return the `top_k` memories of a kind nearest to the query (see `search_rows`). One statement."""
    found = search_rows(owner, searched, query, now=now)
    return SearchResults(hits=[searched.make_hit(row) for row in found.hits], degraded=found.degraded)


def search_rows(owner: Owner, searched: KindSearch[Any], query: MemoryQuery, *, now: datetime) -> SearchResults[Row]:
    """Return the owner's `top_k` rows of a kind nearest to the query. One statement.

    With a `user_id` only rows of that user, and of knowledge also rows without a user; in the active channel and
    `_global`. Pending rows that share words with the query alternate with rows found by meaning (each list best first),
    since a similarity and a BM25 score cannot be compared.
    """
    bounds = SearchBounds(
        has_window=query.since is not None, has_contexts=bool(query.contexts), has_types=bool(query.types)
    )
    width = query.width if query.vector is not None else None
    statement = build_search_statement(owner_shape(owner), searched, width, bounds)
    found = statement.read_dicts(owner, search_params(query), now=now)
    return SearchResults(hits=interleave_rows(found, query.top_k), degraded=degraded_reasons(query, found))


def search_params(query: MemoryQuery) -> dict[str, Any]:
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
def build_search_statement(
    shape: OwnerShape, searched: KindSearch[Any], width: int | None, bounds: SearchBounds
) -> Sql:
    """Return the statement for owners of this shape and vectors of this width; None searches by words alone.

    With a vector, words are searched for only among pending rows.
    """
    readable = readable_cte(shape.owner, bounds) if is_in_context(searched.kind) else Sql(text="", parameters={})
    rows, vectors = candidate_conditions(shape.owner, searched, width, bounds)
    pending = f"{rows.text} AND embed_after IS NOT NULL"
    if width is None:
        parts = bm25_ctes(rows=rows.text)
        union = "SELECT id, NULL::float8 AS similarity, score FROM scored"
    else:
        parts = f"{nearest_ctes(where=vectors.text, width=width)}, {bm25_ctes(rows=pending)}"
        union = """SELECT memory_id AS id, 1 - distance AS similarity, NULL::float8 AS score FROM nearest
            UNION ALL SELECT id, NULL, score FROM scored WHERE id NOT IN (SELECT memory_id FROM nearest)"""
    text = f"""
        WITH {readable.text} {parts}, found AS MATERIALIZED ({union})
        SELECT state.pending, similarity, found.score AS bm25, {", ".join((*SHARED_COLUMNS, *searched.columns))}
        FROM (SELECT EXISTS (SELECT FROM memories WHERE {pending}) AS pending) AS state LEFT JOIN (
            found JOIN memories ON memories.id = found.id
            JOIN {searched.table} ON {searched.table}.memory_ptr_id = memories.id
        ) ON true
        ORDER BY similarity DESC NULLS LAST, bm25 DESC NULLS LAST, memories.id"""
    return Sql(
        text=collapse_whitespace(text), parameters={**readable.parameters, **rows.parameters, **vectors.parameters}
    )


def is_in_context(kind: Kind) -> bool:
    """Return True if memories of this kind live in persistent contexts."""
    return spec_of(kind).audience is Audience.CONTEXT_READERS


def readable_cte(owner: Owner, bounds: SearchBounds) -> Sql:
    """Return a CTE of the readable contexts. As a condition on rows it would be planned five times."""
    where = where_sql(PersistentContext.objects.visible_to(owner).active(), prefix="c")
    asked = " AND id = ANY(%(contexts)s::uuid[])" if bounds.has_contexts else ""
    text = f"""
        readable AS MATERIALIZED (SELECT array_agg(id) AS ids FROM persistent_contexts WHERE {where.text}{asked}),"""
    return Sql(text=text, parameters=where.parameters)


def candidate_conditions(
    owner: Owner, searched: KindSearch[Any], width: int | None, bounds: SearchBounds
) -> tuple[Sql, Sql]:
    """Return the conditions on memories and on their vectors, for an owner made of stand-ins."""
    now, model, kind = STAND_INS["now"], STAND_INS["model"], searched.kind
    # memories in contexts are limited by the list of readable contexts, not by the agent
    sees = replace(owner, agent_id="") if is_in_context(kind) else owner
    rows = Memory.objects.visible_to(sees, kind).in_channels(owner).recallable(now)
    vectors = Vector.objects.visible_to(sees, kind).in_channels(owner).live(now).of_model(model, width or 0)
    # knowledge of no user is for every user
    if owner.user_id and spec_of(kind).audience is not Audience.KNOWLEDGE:
        rows, vectors = rows.filter(user_id=owner.user_id), vectors.filter(user_id=owner.user_id)
    of_rows, of_vectors = where_sql(rows, prefix="m"), where_sql(vectors, prefix="v")
    dated, dated_vectors = (" AND memories.event_time > %(since)s", DATED_VECTORS) if bounds.has_window else ("", "")
    within = " AND context_id = ANY((SELECT ids FROM readable)::uuid[])" if is_in_context(kind) else ""
    wanted = f"{WANTED_ROWS}{dated}{within}{child_condition(searched, bounds, 'memories.id')}"
    wanted_vectors = (
        f"{WANTED_VECTORS}{dated_vectors}{within}{child_condition(searched, bounds, 'memory_vectors.memory_id')}"
    )
    return (
        Sql(text=f"{of_rows.text}{wanted}", parameters=of_rows.parameters),
        Sql(text=f"{of_vectors.text}{wanted_vectors}", parameters=of_vectors.parameters),
    )


def child_condition(searched: KindSearch[Any], bounds: SearchBounds, memory_id: str) -> str:
    """Return the condition on columns of the kind's own table; empty if there is none."""
    typed = [f"own.{searched.type_column} = ANY(%(types)s::text[])"] if bounds.has_types else []
    conditions = [*typed, *filter(None, [searched.condition])]
    if not conditions:
        return ""
    return f"""
    AND EXISTS (
        SELECT FROM {searched.table} AS own WHERE own.memory_ptr_id = {memory_id} AND {" AND ".join(conditions)}
    )"""


def interleave_rows(found: Sequence[Row], top_k: int) -> list[Row]:
    """Return the first rows, alternating between those found by meaning and those found by words."""
    present = [row for row in found if row["id"] is not None]
    by_meaning = [row for row in present if row["similarity"] is not None]
    by_words = [row for row in present if row["similarity"] is None]
    alternated: Iterable[Row | None] = chain.from_iterable(zip_longest(by_meaning, by_words))
    first = [row for row in alternated if row is not None][:top_k]
    return [{name: value for name, value in row.items() if name not in ("pending", "bm25")} for row in first]


def degraded_reasons(query: MemoryQuery, found: Sequence[Row]) -> list[str]:
    degraded = [] if query.vector is not None else ["embedder_unavailable"]
    if found and found[0]["pending"]:
        degraded.append("embedding_pending")
    return degraded
