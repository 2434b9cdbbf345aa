"""Search in goals by meaning, and trees of goals (X6)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from memory.errors import NotFound
from memory.kinds import Kind
from memory.models import Memory
from memory.models.binary import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, SearchResults, search_kind
from memory.retrieval.statements import collapse_whitespace, where_sql

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
SELECT found.id, found.parent_id, found.depth, memories.text AS description, goals.status, goals.priority,
    goals.deadline, goals.completed_at
FROM found JOIN memories ON memories.id = found.id JOIN goals ON goals.memory_ptr_id = found.id
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
    kind=Kind.GOAL,
    hit=GoalHit,
    table="goals",
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


def search_goals(owner: Owner, query: MemoryQuery, *, now: datetime) -> GoalResults:
    """Return the owner's `top_k` goals nearest to the query, of the statuses `query.types` (see `search_rows`)."""
    return search_kind(owner, GOALS, query, now=now)


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
