"""Search in goals by meaning, and walks down a tree of them (X6)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from memory.errors import NotFound
from memory.models import Kind, Memory
from memory.models.binary import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows
from memory.retrieval.statements import squeeze, where_of

COLUMNS = ("status", "priority", "deadline", "completed_at", "result")
GOALS = Searched(kind=Kind.GOAL, table="goals", columns=COLUMNS, type_column="status")

MOST_IN_TREE = 1_000
DEEPEST = 100

# the recursion goes on only as long as somebody wants more rows: the limit ends it
TREE = """
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


GoalsFound = Found[GoalHit]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeGoal:
    """A goal in a tree. The root is at depth 0, and its parent (if it has one) is not told."""

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
    """Goals by depth, then as lists have them. `truncated`: there are more, or deeper ones."""

    goals: list[TreeGoal]
    truncated: bool


def search_goals(owner: Owner, query: MemoryQuery, *, now: datetime) -> GoalsFound:
    """The owner's `top_k` goals nearest to the query; `query.types` are the statuses wanted (see `search_rows`)."""
    found = search_rows(owner, GOALS, query, now=now)
    return Found(hits=[make_hit(row) for row in found.hits], degraded=found.degraded)


def make_hit(row: Row) -> GoalHit:
    return GoalHit(description=row["text"], **{name: value for name, value in row.items() if name != "text"})


def goal_tree(
    owner: Owner, root_id: UUID, *, most: int = MOST_IN_TREE, deepest: int = DEEPEST, now: datetime
) -> GoalTree:
    """The goal with all that is below it, as far as the owner sees it: the `most` that are nearest to the root.

    One recursive statement. Raises NotFound.
    """
    visible = where_of(Memory.objects.visible_to(owner, Kind.GOAL).live(now), prefix="t")
    # one level and one row more, to know whether there are any
    values: dict[str, Any] = {"root": root_id, "account": owner.account_id, "deepest": deepest + 1, "limit": most + 1}
    with binary_cursor() as cursor:
        cursor.execute(squeeze(TREE.format(visible=visible.text)), values | dict(visible.parameters))
        found = [TreeGoal(**row) for row in fetch_dicts(cursor)]
    if not found:
        raise NotFound("no such goal")
    kept = [goal for goal in found if goal.depth <= deepest][:most]
    return GoalTree(goals=kept, truncated=len(kept) < len(found))
