"""Trees of goals: subgoals below their parents, with what blocks them.

A page takes a fixed number of statements and shows at most MAX_GOALS goals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.admin.link_ends import own_column
from memory.admin.text import excerpt_of, mark_invisible, text_excerpt
from memory.models import Goal, Link
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.statements import fetch_rows

PAGE_ROOTS = 50
MAX_GOALS = 500
MAX_DEPTH = 20
MAX_LINKS = 1_000

SHOWN_CONDITIONS = {
    "open": "NOT {m}.archived AND {m}.status IN ('active', 'blocked')",
    "closed": "NOT {m}.archived",
    "archived": "TRUE",
}
"""Conditions on the goals of a tree: open ones only, also closed ones, also archived ones."""

TREE = """
WITH RECURSIVE roots AS (
    SELECT m.id FROM memories m
    WHERE m.account_id = %(account_id)s AND m.kind = 'goal' AND {root}
    ORDER BY m.priority DESC, m.deadline NULLS LAST, m.id LIMIT %(roots)s OFFSET %(skipped)s
), tree AS (
    SELECT id, NULL::uuid AS parent_id, 0 AS depth FROM roots
    UNION ALL
    SELECT m.id, t.id, t.depth + 1 FROM tree t
    JOIN memory_links l ON l.account_id = %(account_id)s AND l.target_id = t.id AND l.type = 'SUBGOAL_OF'
    JOIN memories m ON m.account_id = l.account_id AND m.id = l.source_id AND m.kind = 'goal'
    WHERE t.depth < %(max_depth)s AND {shown}
)
SELECT id, parent_id FROM tree LIMIT %(max_goals)s
"""

# a goal whose parent is not shown is a root
NO_PARENT_SHOWN = """{shown} AND NOT EXISTS (
    SELECT FROM memory_links l
    JOIN memories pm ON pm.account_id = l.account_id AND pm.id = l.target_id AND pm.kind = 'goal'
    WHERE l.account_id = m.account_id AND l.source_id = m.id AND l.type = 'SUBGOAL_OF' AND {parent_shown}
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSummary:
    """Another goal that a goal is linked to: its parent, a subgoal, or one that blocks or is blocked."""

    id: UUID
    text: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalBranch:
    """A goal with its subgoals.

    `blockers` are the goals that it waits for and that are not completed; `parent` is set if it is not shown.
    """

    goal: Goal
    text: str
    user: str
    is_late: bool
    blockers: Sequence[GoalSummary] = ()
    parent: GoalSummary | None = None
    children: list["GoalBranch"] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalForest:
    """Branches in the order of their roots. `is_cut` if there are more goals below, `has_more` if more roots follow."""

    branches: Sequence[GoalBranch]
    is_cut: bool
    has_more: bool


def read_trees(account_id: UUID, *, show: str, page: int, now: datetime) -> GoalForest:
    """Return a page of the account's trees. `show` is a key of SHOWN_CONDITIONS; pages count from 0."""
    shown, parent_shown = SHOWN_CONDITIONS[show].format(m="m"), SHOWN_CONDITIONS[show].format(m="pm")
    statement = TREE.format(root=NO_PARENT_SHOWN.format(shown=shown, parent_shown=parent_shown), shown=shown)
    found = walk_tree(statement, account_id=account_id, roots=PAGE_ROOTS + 1, skipped=page * PAGE_ROOTS)
    roots = [goal_id for goal_id, parent_id in found if parent_id is None]
    beyond = set(roots[PAGE_ROOTS:])
    return build_forest(account_id, found, beyond=beyond, now=now)


def read_tree_below(goal: Goal, *, now: datetime) -> GoalForest:
    """Return the tree of one goal, with its subgoals in any state."""
    statement = TREE.format(root="m.id = %(goal_id)s", shown="TRUE")
    found = walk_tree(statement, account_id=goal.account_id, roots=1, skipped=0, goal_id=goal.pk)
    return build_forest(goal.account_id, found, beyond=frozenset(), now=now)


def walk_tree(statement: str, **values: Any) -> list[tuple[UUID, UUID | None]]:
    """Return the ids of goals and of the parents from which they were reached, level by level."""
    return fetch_rows(statement, {**values, "max_depth": MAX_DEPTH, "max_goals": MAX_GOALS + 1})


def build_forest(
    account_id: UUID, found: Sequence[tuple[UUID, UUID | None]], *, beyond: Iterable[UUID], now: datetime
) -> GoalForest:
    """Build the branches of what was found, without the roots that are `beyond` the page."""
    kept = found[:MAX_GOALS]
    rows = read_goals(account_id, [goal_id for goal_id, _ in kept])
    links = read_outgoing_links(account_id, list(rows))
    branches: dict[UUID, GoalBranch] = {}
    roots: list[GoalBranch] = []
    left_out = set(beyond)
    for goal_id, parent_id in kept:
        if goal_id in left_out or parent_id in left_out or goal_id not in rows:
            left_out.add(goal_id)
            continue
        branch = branches[goal_id] = build_branch(rows[goal_id], links.get(goal_id, []), parent_id, now)
        (roots if parent_id is None else branches[parent_id].children).append(branch)
    for branch in branches.values():
        branch.children.sort(key=sort_key)
    return GoalForest(branches=roots, is_cut=len(found) > MAX_GOALS, has_more=bool(beyond))


def sort_key(branch: GoalBranch) -> tuple[int, bool, float, str]:
    """Sort like the list of goals: by priority, then by deadline."""
    goal = branch.goal
    deadline = goal.deadline.timestamp() if goal.deadline else 0.0
    return -goal.priority, goal.deadline is None, deadline, str(goal.pk)


def build_branch(
    goal: Any, links: Sequence[tuple[str, GoalSummary]], parent_id: UUID | None, now: datetime
) -> GoalBranch:
    waits_for = [other for link_type, other in links if link_type == BLOCKED_BY]
    parents = [other for link_type, other in links if link_type == SUBGOAL_OF and parent_id is None]
    return GoalBranch(
        goal=goal,
        text=excerpt_of(goal.text_excerpt),
        user=mark_invisible(goal.user_id),
        is_late=goal.completed_at is None and goal.deadline is not None and goal.deadline < now,
        blockers=[other for other in waits_for if other.status != Goal.Status.COMPLETED],
        parent=parents[0] if parents else None,
    )


def read_goals(account_id: UUID, goal_ids: Sequence[UUID]) -> dict[UUID, Any]:
    """Return goals by id, with excerpts of their texts."""
    rows = Goal.objects.filter(account_id=account_id, pk__in=goal_ids)
    lean = rows.defer("text", "metadata", "result").annotate(text_excerpt=text_excerpt("text"))
    return {row.pk: row for row in lean}


def goal_columns(end: str) -> tuple[Any, ...]:
    """Return the columns of a link that `goal_summary` needs, for the goal at one end ("source" or "target")."""
    return (f"{end}_id", text_excerpt(f"{end}__text"), own_column(end, "status"))


def goal_summary(goal_id: UUID, text: str, status: str | None) -> GoalSummary:
    return GoalSummary(id=goal_id, text=excerpt_of(text), status=status or "")


def read_outgoing_links(account_id: UUID, goal_ids: Sequence[UUID]) -> dict[UUID, list[tuple[str, GoalSummary]]]:
    """Return the parents and the blockers of goals with the type of the link, by goal."""
    links = Link.objects.filter(account_id=account_id, source_id__in=goal_ids, type__in=(BLOCKED_BY, SUBGOAL_OF))
    columns = ("source_id", "type", *goal_columns("target"))
    found: dict[UUID, list[tuple[str, GoalSummary]]] = {}
    for source_id, link_type, *other in links.order_by("id").values_list(*columns)[:MAX_LINKS]:
        found.setdefault(source_id, []).append((link_type, goal_summary(*other)))
    return found


def read_related_goals(goal: Goal) -> dict[str, list[GoalSummary]]:
    """Return the goal's "parents", "blockers" and the goals that it has "blocked", up to MAX_LINKS, latest first."""
    of_goal = Link.objects.filter(Q(source_id=goal.pk) | Q(target_id=goal.pk), account_id=goal.account_id)
    links = of_goal.filter(type__in=(BLOCKED_BY, SUBGOAL_OF)).exclude(type=SUBGOAL_OF, target_id=goal.pk)
    columns = ("type", *goal_columns("source"), *goal_columns("target"))
    found: dict[str, list[GoalSummary]] = {"parents": [], "blockers": [], "blocked": []}
    for link_type, *ends in links.order_by("-id").values_list(*columns)[:MAX_LINKS]:
        source, target = goal_summary(*ends[:3]), goal_summary(*ends[3:])
        name = "parents" if link_type == SUBGOAL_OF else "blockers" if source.id == goal.pk else "blocked"
        found[name].append(source if name == "blocked" else target)
    return found
