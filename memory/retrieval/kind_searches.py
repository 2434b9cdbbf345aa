"""Searches in the kinds that need more than `search` has: context entries, strategies, goals and facts.

Entries of persistent contexts (P5); strategies (X4), those nearest to a task ranked by how often they worked; goals by
meaning, and trees of goals (X6); facts (X3, B3) true now or at another time, as believed now or at another time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from memory.errors import NotFound
from memory.kinds import Kind
from memory.models import Memory
from memory.models.statements import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.search import (
    Hit,
    KindSearch,
    MemoryQuery,
    Row,
    SearchResults,
    interleave_rows,
    search_kind,
    search_rows,
)
from memory.retrieval.statements import collapse_whitespace, where_sql
from memory.scoring import success_rate

RECALLED_FIELDS = (
    *("agent_id", "user_id", "channel", "conversation_id", "event_time"),
    *("similarity", "score", "reasons", "snippet", "snippet_start", "snippet_end"),
)
ENTRY_COLUMNS = (
    *("context_id", "key", "value", "entry_type", "source_type", "memory_type"),
    *("importance", "confidence", "content_version"),
)

READ_ENTRIES = f"""
SELECT id, created_at, metadata, {", ".join(ENTRY_COLUMNS)}
FROM memories WHERE account_id = %s AND kind = 'context_entry' AND id = ANY(%s::uuid[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHit(Hit):
    """A found entry. Without a key, `value` adds nothing to the content.

    `score` and `reasons` come from a recall, its order, and why people see the entry; so does the snippet.
    """

    kind: ClassVar[Kind] = Kind.CONTEXT_ENTRY

    content: str
    context_id: UUID
    key: str
    value: Any
    entry_type: str
    source_type: str
    memory_type: str
    importance: float
    confidence: float
    content_version: int
    score: float = 0.0
    reasons: Sequence[str] = ()
    snippet: str = ""
    snippet_start: int = 0
    snippet_end: int | None = None


EntryResults = SearchResults[EntryHit]
ENTRIES = KindSearch(hit=EntryHit, columns=ENTRY_COLUMNS, text_field="content")


def search_entries(owner: Owner, query: MemoryQuery, *, now: datetime) -> EntryResults:
    """Return, for staff, the `top_k` entries nearest to the query in contexts that the owner may read.

    Archived contexts are left out, and `query.contexts` limits the others (see `search_rows`). One statement. Searches
    of clients are recalls (`services.contexts.search`).
    """
    return search_kind(owner, ENTRIES, query, now=now)


def read_entry_hits(owner: Owner, recalled: Sequence[Candidate]) -> list[EntryHit]:
    """Return the entries that a recall found, in its order, without those deleted since. At most one statement."""
    if not recalled:
        return []
    with binary_cursor() as cursor:
        cursor.execute(READ_ENTRIES, [owner.account_id, [found.id for found in recalled]])
        known = {row["id"]: row for row in fetch_dicts(cursor)}
    return [recalled_entry_hit(found, known[found.id]) for found in recalled if found.id in known]


def recalled_entry_hit(found: Candidate, row: Row) -> EntryHit:
    shared = {name: getattr(found, name) for name in RECALLED_FIELDS}
    return EntryHit(content=found.text, **shared, **row)


MIN_CANDIDATES = 200
CANDIDATES_PER_HIT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyHit(Hit):
    """A found strategy. It is ranked by `score`, its similarity to the task times `success_rate`."""

    kind: ClassVar[Kind] = Kind.STRATEGY

    description: str
    context_pattern: str
    task_type: str
    tool_sequence: list[Any]
    success_count: int
    failure_count: int
    last_used: datetime | None
    score: float

    @property
    def success_rate(self) -> float:
        """The expected success rate (`scoring.success_rate`)."""
        return success_rate(self.success_count, self.failure_count)


StrategyResults = SearchResults[StrategyHit]
STRATEGIES = KindSearch(
    hit=StrategyHit,
    columns=(
        *("description", "context_pattern", "task_type", "tool_sequence"),
        *("success_count", "failure_count", "last_used"),
    ),
    text_field="",
    type_column="task_type",
)


def search_strategies(owner: Owner, query: MemoryQuery, *, now: datetime) -> StrategyResults:
    """Return the `top_k` best of the strategies nearest to the query. `query.types` limits their task types.

    One statement. The nearest 200, or ten times `top_k`, are ranked by similarity x success rate, so that a strategy
    that often works comes before one that is a little nearer. Those found by words (without a vector of their own or of
    the query) are ranked by success rate / rank among them, and alternate with the others.
    """
    candidates = max(MIN_CANDIDATES, CANDIDATES_PER_HIT * query.top_k)
    found = search_rows(owner, STRATEGIES, replace(query, top_k=candidates), now=now)
    best = interleave_rows(rank_strategy_rows(found.hits), query.top_k)
    return SearchResults(hits=[STRATEGIES.make_hit(row) for row in best], degraded=found.degraded)


def rank_strategy_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their `score`. Rows found by meaning and rows found by words are each best first."""
    by_words = [row for row in rows if row["similarity"] is None]
    similarity = {row["id"]: row["similarity"] for row in rows}
    similarity |= {row["id"]: 1 / rank for rank, row in enumerate(by_words, start=1)}
    # a strategy that points away from the task does not get better by failing more often
    scored = [
        row | {"score": max(similarity[row["id"]], 0.0) * success_rate(row["success_count"], row["failure_count"])}
        for row in rows
    ]
    # ties go to the more similar, then to the order of the search
    return sorted(scored, key=lambda row: (-row["score"], -(row["similarity"] or 0)))


MAX_TREE_GOALS = 1_000
MAX_TREE_DEPTH = 100

# the recursion continues only while more rows are wanted: the limit ends it
GOAL_TREE = """
WITH RECURSIVE tree AS (
    SELECT memories.id, NULL::uuid AS parent_id, 0 AS depth FROM memories
    WHERE {visible} AND memories.id = %(root)s
    UNION ALL
    SELECT memories.id, tree.id, tree.depth + 1
    FROM tree JOIN memory_links l ON l.target_id = tree.id AND l.type = 'SUBGOAL_OF' AND l.account_id = %(account)s
    JOIN memories ON memories.id = l.source_id
    WHERE {visible} AND tree.depth < %(deepest)s
), found AS (SELECT * FROM tree LIMIT %(limit)s)
SELECT found.id, found.parent_id, found.depth, text AS description, status, priority, deadline, completed_at
FROM found JOIN memories ON memories.account_id = %(account)s AND memories.id = found.id
ORDER BY depth, priority DESC, deadline ASC NULLS LAST, found.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalHit(Hit):
    """A found goal."""

    kind: ClassVar[Kind] = Kind.GOAL

    description: str
    status: str
    priority: int
    deadline: datetime | None
    completed_at: datetime | None
    result: str


GoalResults = SearchResults[GoalHit]
GOALS = KindSearch(
    hit=GoalHit,
    columns=("status", "priority", "deadline", "completed_at", "result"),
    text_field="description",
    type_column="status",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeGoal:
    """A goal in a tree. The root is at depth 0; its own parent is left out."""

    id: UUID
    parent_id: UUID | None
    depth: int
    description: str
    status: str
    priority: int
    deadline: datetime | None
    completed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalTree:
    """Goals by depth, then in the order of lists. `truncated` is True if there are more, or deeper ones."""

    goals: list[TreeGoal]
    truncated: bool


def read_goal_tree(
    owner: Owner, root_id: UUID, *, max_goals: int = MAX_TREE_GOALS, max_depth: int = MAX_TREE_DEPTH, now: datetime
) -> GoalTree:
    """Return a goal with all goals below it that the owner sees, those nearest to the root first.

    One recursive statement. Raises NotFound.
    """
    visible = where_sql(Memory.objects.visible_to(owner, Kind.GOAL).live(now), prefix="t")
    # one more level and row show whether there are more
    values: dict[str, Any] = {
        "root": root_id,
        "account": owner.account_id,
        "deepest": max_depth + 1,
        "limit": max_goals + 1,
    }
    with binary_cursor() as cursor:
        cursor.execute(collapse_whitespace(GOAL_TREE.format(visible=visible.text)), values | dict(visible.parameters))
        found = [TreeGoal(**row) for row in fetch_dicts(cursor)]
    if not found:
        raise NotFound("There is no such goal.")
    kept = [goal for goal in found if goal.depth <= max_depth][:max_goals]
    return GoalTree(goals=kept, truncated=len(kept) < len(found))


TRUE = """({0}.valid_from IS NULL OR {0}.valid_from <= %(as_of)s::timestamptz)
    AND ({0}.valid_to IS NULL OR {0}.valid_to > %(as_of)s::timestamptz)"""

TRUE_AND_BELIEVED_NOW = f"{{own}}.recorded_at IS NOT NULL AND {{own}}.retracted_at IS NULL AND {TRUE.format('{own}')}"
"""The condition on a fact, which is called `{own}` in it."""

CONFIDENT = "{0}.confidence >= %(min_confidence)s::float8"

# looked up by the primary key, which begins with account and fact
VERSION_BELIEVED_THEN = """known.account_id = %(account_id)s AND known.fact_id = {0}
    AND known.recorded_at <= %(known_at)s::timestamptz
    AND (known.retracted_at IS NULL OR known.retracted_at > %(known_at)s::timestamptz)"""

TRUE_AND_BELIEVED_THEN = f"""EXISTS (
    SELECT FROM fact_versions AS known
    WHERE {VERSION_BELIEVED_THEN.format("{own}.id")} AND {TRUE.format("known")} AND {CONFIDENT.format("known")}
)"""

FACT_COLUMNS = (
    *("confidence", "certainty", "temporal", "status", "valid_from", "valid_to"),
    *("recorded_at", "retracted_at", "source_turn_id"),
)
VERSION_COLUMNS = ("claim", "confidence", "temporal", "valid_from", "valid_to", "recorded_at", "retracted_at")


def believed_column(column: str) -> str:
    """Return a column of the version that was believed then, looked up by key for the few facts that are found."""
    where = VERSION_BELIEVED_THEN.format("memories.id")
    return f"(SELECT known.{column} FROM fact_versions AS known WHERE {where}) AS {column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHit(Hit):
    """A found fact. With `known_at` its claim, confidence, temporal and times are those believed then."""

    kind: ClassVar[Kind] = Kind.FACT

    claim: str
    confidence: float
    certainty: str
    temporal: str
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime | None
    retracted_at: datetime | None
    source_turn_id: UUID | None


TRUE_NOW = KindSearch(
    hit=FactHit,
    columns=FACT_COLUMNS,
    text_field="claim",
    type_column="status",
    condition=f"{TRUE_AND_BELIEVED_NOW} AND {CONFIDENT.format('{own}')}",
)
TRUE_THEN = replace(
    TRUE_NOW,
    columns=("certainty", "status", "source_turn_id", *map(believed_column, VERSION_COLUMNS)),
    condition=TRUE_AND_BELIEVED_THEN,
)
WITH_STATUS = replace(TRUE_NOW, condition=CONFIDENT.format("{own}"))


def search_facts(
    owner: Owner,
    query: MemoryQuery,
    *,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float = 0.0,
    now: datetime,
) -> SearchResults[FactHit]:
    """Return the `top_k` facts nearest to the query that are true at `as_of` as believed at `known_at`, or now.

    One statement (see `search_rows`). With `query.types`, facts of these statuses, whenever they are true. Similarity
    is that of the current text, whatever was believed before.
    """
    values = {"as_of": as_of or now, "known_at": known_at, "min_confidence": min_confidence}
    searched = WITH_STATUS if query.types else TRUE_NOW if known_at is None else TRUE_THEN
    return search_kind(owner, searched, replace(query, values=values), now=now)
