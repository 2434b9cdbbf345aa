"""Goals as trees, to look at: who is below whom, what is in whose way. Two statements and no more goals than a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Left

from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.models import Goal, Link
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF

PAGE_ROOTS = 50
MOST_GOALS = 500
DEEPEST = 20
MOST_BLOCKERS = 1_000

SHOWN = {
    "open": "NOT {m}.archived AND {g}.status IN ('active', 'blocked')",
    "closed": "NOT {m}.archived",
    "archived": "TRUE",
}
"""Which goals a tree has: those that are open, closed ones too, archived ones too."""

TREE = """
WITH RECURSIVE roots AS (
    SELECT m.id FROM memories m JOIN goals g ON g.memory_ptr_id = m.id
    WHERE m.account_id = %(account_id)s AND m.kind = 'goal' AND {root}
    ORDER BY g.priority DESC, g.deadline NULLS LAST, m.id LIMIT %(roots)s OFFSET %(skipped)s
), tree AS (
    SELECT id, NULL::uuid AS parent_id, 0 AS depth FROM roots
    UNION ALL
    SELECT m.id, t.id, t.depth + 1 FROM tree t
    JOIN memory_links l ON l.account_id = %(account_id)s AND l.target_id = t.id AND l.type = 'SUBGOAL_OF'
    JOIN memories m ON m.id = l.source_id JOIN goals g ON g.memory_ptr_id = m.id
    WHERE t.depth < %(deepest)s AND {shown}
)
SELECT id, parent_id FROM tree LIMIT %(most)s
"""

# a goal whose parent is not shown stands by itself
NO_PARENT_SHOWN = """{shown} AND NOT EXISTS (
    SELECT FROM memory_links l JOIN memories pm ON pm.id = l.target_id JOIN goals pg ON pg.memory_ptr_id = pm.id
    WHERE l.account_id = m.account_id AND l.source_id = m.id AND l.type = 'SUBGOAL_OF' AND {parent_shown}
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGoal:
    """A goal that another one names: in its way, above it, below it."""

    id: UUID
    text: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A goal and those below it. `blockers` are the goals in its way that are open; `parent` is one not shown."""

    goal: Goal
    text: str
    user: str
    is_late: bool
    blockers: Sequence[OtherGoal] = ()
    parent: OtherGoal | None = None
    children: list["Branch"] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """`branches` in the order of their roots; `is_cut`: there are more goals below; `has_more`: further roots."""

    branches: Sequence[Branch]
    is_cut: bool
    has_more: bool


def read_trees(account_id: UUID, *, show: str, page: int, now: datetime) -> Tree:
    """A page of the account's trees, by `show` (see SHOWN), pages counted from 0."""
    shown, parent_shown = SHOWN[show].format(m="m", g="g"), SHOWN[show].format(m="pm", g="pg")
    statement = TREE.format(root=NO_PARENT_SHOWN.format(shown=shown, parent_shown=parent_shown), shown=shown)
    found = walk(statement, account_id=account_id, roots=PAGE_ROOTS + 1, skipped=page * PAGE_ROOTS)
    roots = [goal_id for goal_id, parent_id in found if parent_id is None]
    beyond = set(roots[PAGE_ROOTS:])
    return grow(account_id, found, beyond=beyond, now=now)


def read_tree_below(goal: Goal, *, now: datetime) -> Tree:
    """The goal's own tree, whatever the state of what is below it."""
    statement = TREE.format(root="m.id = %(goal_id)s", shown="TRUE")
    found = walk(statement, account_id=goal.account_id, roots=1, skipped=0, goal_id=goal.pk)
    return grow(goal.account_id, found, beyond=frozenset(), now=now)


def walk(statement: str, **values: Any) -> list[tuple[UUID, UUID | None]]:
    """Goals and the parents that they were reached from, level by level."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {**values, "deepest": DEEPEST, "most": MOST_GOALS + 1})
        found: list[tuple[UUID, UUID | None]] = cursor.fetchall()
    return found


def grow(account_id: UUID, found: Sequence[tuple[UUID, UUID | None]], *, beyond: Iterable[UUID], now: datetime) -> Tree:
    """What was found as branches, without the roots that are `beyond` the page."""
    kept = found[:MOST_GOALS]
    rows = read_goals(account_id, [goal_id for goal_id, _ in kept])
    beside = read_beside(account_id, list(rows))
    branches: dict[UUID, Branch] = {}
    roots: list[Branch] = []
    left_out = set(beyond)
    for goal_id, parent_id in kept:
        if goal_id in left_out or parent_id in left_out or goal_id not in rows:
            left_out.add(goal_id)
            continue
        branch = branches[goal_id] = make_branch(rows[goal_id], beside.get(goal_id, []), parent_id, now)
        (roots if parent_id is None else branches[parent_id].children).append(branch)
    for branch in branches.values():
        branch.children.sort(key=place_of)
    return Tree(branches=roots, is_cut=len(found) > MOST_GOALS, has_more=bool(beyond))


def place_of(branch: Branch) -> tuple[int, bool, float, str]:
    """As lists of goals are ordered: by priority, then deadline."""
    goal = branch.goal
    deadline = goal.deadline.timestamp() if goal.deadline else 0.0
    return -goal.priority, goal.deadline is None, deadline, str(goal.pk)


def make_branch(goal: Any, beside: Sequence[tuple[str, OtherGoal]], parent_id: UUID | None, now: datetime) -> Branch:
    blockers = [other for link_type, other in beside if link_type == BLOCKED_BY and other.status in Goal.OPEN]
    parents = [other for link_type, other in beside if link_type == SUBGOAL_OF and parent_id is None]
    return Branch(
        goal=goal,
        text=shorten(goal.excerpt),
        user=mark_invisible(goal.user_id),
        is_late=goal.completed_at is None and goal.deadline is not None and goal.deadline < now,
        blockers=blockers,
        parent=parents[0] if parents else None,
    )


def read_goals(account_id: UUID, goal_ids: Sequence[UUID]) -> dict[UUID, Any]:
    """By id, with the beginnings of their texts."""
    rows: Any = Goal.objects.filter(account_id=account_id, pk__in=goal_ids)
    lean = rows.defer("text", "metadata", "result").annotate(excerpt=Left("text", EXCERPT_CHARACTERS + 1))
    return {row.pk: row for row in lean}


def read_beside(account_id: UUID, goal_ids: Sequence[UUID]) -> dict[UUID, list[tuple[str, OtherGoal]]]:
    """What the goals name as their parent and as what is in their way, by goal."""
    links = Link.objects.filter(account_id=account_id, source_id__in=goal_ids, type__in=(BLOCKED_BY, SUBGOAL_OF))
    columns = ("source_id", "type", "target_id", Left("target__text", EXCERPT_CHARACTERS + 1), "target__goal__status")
    found: dict[UUID, list[tuple[str, OtherGoal]]] = {}
    for source_id, link_type, *other in links.order_by("id").values_list(*columns)[:MOST_BLOCKERS]:
        found.setdefault(source_id, []).append((link_type, other_goal(*other)))
    return found


def read_related(goal: Goal) -> dict[str, list[OtherGoal]]:
    """The goal's parent, what blocks it and what it blocks; the last two to a limit, the latest links first."""
    of_goal = Link.objects.filter(Q(source_id=goal.pk) | Q(target_id=goal.pk), account_id=goal.account_id)
    links = of_goal.filter(type__in=(BLOCKED_BY, SUBGOAL_OF)).exclude(type=SUBGOAL_OF, target_id=goal.pk)
    ends = [
        (end, f"{end}_id", Left(f"{end}__text", EXCERPT_CHARACTERS + 1), f"{end}__goal__status")
        for end in ("source", "target")
    ]
    columns = [column for end in ends for column in end[1:]]
    found: dict[str, list[OtherGoal]] = {"parents": [], "blockers": [], "blocked": []}
    for link_type, *sides in links.order_by("-id").values_list("type", *columns)[:MOST_BLOCKERS]:
        source, target = other_goal(*sides[:3]), other_goal(*sides[3:])
        name = "parents" if link_type == SUBGOAL_OF else "blockers" if source.id == goal.pk else "blocked"
        found[name].append(source if name == "blocked" else target)
    return found


def other_goal(goal_id: UUID, text: str, status: str | None) -> OtherGoal:
    return OtherGoal(id=goal_id, text=shorten(text), status=status or "")
