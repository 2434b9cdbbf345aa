"""Search in memories of one kind: by meaning, and by words for rows without a vector, or all if the query has none.

A `KindSearch` adds what is special to a kind: its hit and its columns. Turns, episodes, entities and learnings, which
need no more than that, are at the end; facts, goals, strategies and context entries are in `kind_searches`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from memory import conf
from memory.kinds import Audience, Kind, spec_of
from memory.models import Memory, PersistentContext, Vector
from memory.models.statements import Embedding, half_vector
from memory.owner import Owner
from memory.retrieval.candidates import NO_USAGE, RecallUsage
from memory.retrieval.retrievers.lexical import bm25_ctes
from memory.retrieval.retrievers.vector import IS_OF_FORMER_MODEL, nearest_ctes
from memory.retrieval.statements import STAND_INS, OwnerShape, Sql, collapse_whitespace, owner_shape, where_sql
from memory.retrieval.visibility import IN_READABLE_CONTEXT, has_contexts, readable_contexts_cte

H = TypeVar("H")
FoundHit = TypeVar("FoundHit", bound="Hit")
Row = dict[str, Any]
MODEL_UNKNOWN = "embedding_model_unknown"
"""The remark of a query whose vector is of a model of which the account has no vectors."""

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

# the planner starts from whichever side is narrower
WANTED_MEMORIES = """
    AND EXISTS (
        SELECT FROM memories AS own
        WHERE own.account_id = %(account_id)s AND own.id = memory_vectors.memory_id AND {further}
    )"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSearch(Generic[FoundHit]):
    """The search in a kind: the class of its hits, and the columns of its own that a hit has.

    `text_field` is the field of a hit that holds the memory's text; empty if it has none. `type_column` holds the
    values of `MemoryQuery.types`; empty if the kind has no types. `condition` is a further SQL condition on the memory,
    which is called `{own}` in it; its parameters are `MemoryQuery.values`.
    """

    hit: type[FoundHit]
    columns: tuple[str, ...]
    text_field: str = "text"
    type_column: str = ""
    condition: str = ""

    @property
    def kind(self) -> Kind:
        return self.hit.kind

    def make_hit(self, row: Row) -> FoundHit:
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
    remarks: Sequence[str] = ()
    """Further reasons for `degraded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A found memory. `similarity` is 1 - cosine distance; None if it was found by words.

    `likelihood` is how likely it helps, from 0 to 1 (`judging`); None if nobody asked.
    """

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
    likelihood: float | None = None

    @property
    def item_key(self) -> str:
        """The key of this memory in the injection ledger."""
        return f"{self.kind.value}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults(Generic[H]):
    """Hits, best first. `degraded` names the reasons why not all were found by meaning; empty if all were.

    `usage` is the cost of a search by a recall. `abstained` is True if all that was found is too unlikely to help.
    """

    hits: Sequence[H]
    degraded: Sequence[str]
    usage: RecallUsage = NO_USAGE
    abstained: bool = False


def search_kind(
    owner: Owner, searched: KindSearch[FoundHit], query: MemoryQuery, *, now: datetime
) -> SearchResults[FoundHit]:
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
    asked = " AND id = ANY(%(contexts)s::uuid[])" if bounds.has_contexts else ""
    # as a condition on rows it would be planned five times
    contexts = PersistentContext.objects.visible_to(shape.owner).active()
    readable = readable_contexts_cte(contexts, [searched.kind], condition=asked)
    rows, vectors = candidate_conditions(shape.owner, searched, width, bounds)
    pending = f"{rows.text} AND embed_after IS NOT NULL"
    if width is None:
        parts = bm25_ctes(rows=rows.text)
        union = "SELECT id, NULL::float8 AS similarity, score FROM scored"
    else:
        parts = f"{nearest_ctes(where=vectors.text, width=width)}, {bm25_ctes(rows=pending)}"
        union = """SELECT memory_id AS id, 1 - distance AS similarity, NULL::float8 AS score FROM nearest
            UNION ALL SELECT id, NULL, score FROM scored WHERE id NOT IN (SELECT memory_id FROM nearest)"""
    is_pending = f"EXISTS (SELECT FROM memories WHERE {pending})"
    is_pending += f" OR {IS_OF_FORMER_MODEL}" if width else ""
    text = f"""
        WITH {readable.text} {parts}, found AS MATERIALIZED ({union})
        SELECT state.pending, similarity, found.score AS bm25, {", ".join((*SHARED_COLUMNS, *searched.columns))}
        FROM (SELECT {is_pending} AS pending) AS state LEFT JOIN (
            found JOIN memories ON memories.account_id = %(account_id)s AND memories.id = found.id
        ) ON true
        ORDER BY similarity DESC NULLS LAST, bm25 DESC NULLS LAST, memories.id"""
    return Sql(
        text=collapse_whitespace(text), parameters={**readable.parameters, **rows.parameters, **vectors.parameters}
    )


def candidate_conditions(
    owner: Owner, searched: KindSearch[Any], width: int | None, bounds: SearchBounds
) -> tuple[Sql, Sql]:
    """Return the conditions on memories and on their vectors, for an owner made of stand-ins."""
    now, model, kind = STAND_INS["now"], STAND_INS["model"], searched.kind
    in_context = has_contexts([kind])
    # memories in contexts are limited by the list of readable contexts, not by the agent
    sees = replace(owner, agent_id="") if in_context else owner
    rows = Memory.objects.visible_to(sees, kind).in_channels(owner).recallable(now)
    vectors = Vector.objects.visible_to(sees, kind).in_channels(owner).live(now).of_model(model, width or 0)
    # knowledge of no user is for every user
    if owner.user_id and spec_of(kind).audience is not Audience.KNOWLEDGE:
        rows, vectors = rows.filter(user_id=owner.user_id), vectors.filter(user_id=owner.user_id)
    of_rows, of_vectors = where_sql(rows, prefix="m"), where_sql(vectors, prefix="v")
    within = f" AND {IN_READABLE_CONTEXT}" if in_context else ""
    wanted, wanted_vectors = f"{WANTED_ROWS}{within}", f"{WANTED_VECTORS}{within}"
    if further := further_condition(searched, bounds):
        wanted += f" AND {further.format(own='memories')}"
        wanted_vectors += WANTED_MEMORIES.format(further=further.format(own="own"))
    return (
        Sql(text=f"{of_rows.text}{wanted}", parameters=of_rows.parameters),
        Sql(text=f"{of_vectors.text}{wanted_vectors}", parameters=of_vectors.parameters),
    )


def further_condition(searched: KindSearch[Any], bounds: SearchBounds) -> str:
    """Return the condition on columns that only memories have, of a memory called `{own}`; empty if there is none."""
    conditions = [
        "{own}.event_time > %(since)s" if bounds.has_window else "",
        f"{{own}}.{searched.type_column} = ANY(%(types)s::text[])" if bounds.has_types else "",
        searched.condition,
    ]
    return " AND ".join(filter(None, conditions))


def interleave_rows(found: Sequence[Row], top_k: int) -> list[Row]:
    """Return the first rows, alternating between those found by meaning and those found by words."""
    present = [row for row in found if row["id"] is not None]
    by_meaning = [row for row in present if row["similarity"] is not None]
    by_words = [row for row in present if row["similarity"] is None]
    alternated: Iterable[Row | None] = chain.from_iterable(zip_longest(by_meaning, by_words))
    first = [row for row in alternated if row is not None][:top_k]
    return [{name: value for name, value in row.items() if name not in ("pending", "bm25")} for row in first]


def degraded_reasons(query: MemoryQuery, found: Sequence[Row]) -> list[str]:
    has_reason = query.vector is not None or MODEL_UNKNOWN in query.remarks
    degraded = [*query.remarks] if has_reason else ["embedder_unavailable", *query.remarks]
    if found and found[0]["pending"]:
        degraded.append("embedding_pending")
    return degraded


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit(Hit):
    """A found turn. `text` is the text that is searched."""

    kind: ClassVar[Kind] = Kind.TURN

    index: int
    role: str
    name: str
    text: str


TurnResults = SearchResults[TurnHit]
TURNS = KindSearch(hit=TurnHit, columns=("index", "role", "name"))


def search_turns(owner: Owner, query: MemoryQuery, *, now: datetime) -> TurnResults:
    """Return the `top_k` turns nearest to the query that the owner may read (see `search_rows`). One statement."""
    return search_kind(owner, TURNS, query, now=now)


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
    hit=EpisodeHit,
    columns=("key_decisions", "entities_mentioned", "tools_called"),
    text_field="summary",
)


def search_episodes(owner: Owner, query: MemoryQuery, *, now: datetime) -> EpisodeResults:
    """Return the owner's `top_k` episodes nearest to the query (see `search_rows`). One statement."""
    return search_kind(owner, EPISODES, query, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityHit(Hit):
    """A found entity. `text` holds its names and description; `event_time` is when it was first seen."""

    kind: ClassVar[Kind] = Kind.ENTITY

    text: str
    name: str
    type: str
    aliases: list[str]
    description: str
    properties: dict[str, Any]
    salience: float


ENTITIES = KindSearch(
    hit=EntityHit,
    columns=("name", "type", "aliases", "description", "properties", "salience"),
    type_column="type",
)


def search_entities(owner: Owner, query: MemoryQuery, *, now: datetime) -> SearchResults[EntityHit]:
    """Return the `top_k` entities nearest to the query that the owner knows (see `search_rows`). One statement.

    `query.types` limits their types. Entities that were merged into others are left out.
    """
    return search_kind(owner, ENTITIES, query, now=now)


# looked up by key, for the few rows that are returned
TEAM = """(
    SELECT team_id FROM persistent_contexts
    WHERE persistent_contexts.id = memories.context_id AND persistent_contexts.account_id = %(account_id)s
) AS team_id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningHit(Hit):
    """A found learning with its current votes. `team_id` is None once its team is dissolved."""

    kind: ClassVar[Kind] = Kind.LEARNING

    insight: str
    team_id: UUID | None
    helpful_count: int
    unhelpful_count: int
    score: float


LearningResults = SearchResults[LearningHit]
LEARNINGS = KindSearch(
    hit=LearningHit,
    columns=(TEAM, "helpful_count", "unhelpful_count", "memories.score"),
    text_field="insight",
)


def search_learnings(owner: Owner, query: MemoryQuery, *, now: datetime) -> LearningResults:
    """Return the `top_k` learnings nearest to the query in contexts that the owner may read and that are not archived.

    `query.contexts` limits the contexts (see `search_rows`). One statement.
    """
    return search_kind(owner, LEARNINGS, query, now=now)
