"""Goals of a packet: the open ones as trees, the most pressing first, and the results of their closed parts."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any
from uuid import UUID

from memory.errors import Unprocessable
from memory.models.goals import Goal
from memory.retrieval.resume import ResumedGoal
from memory.services.prompt_context.layout import format_utc_minute
from memory.services.resume.items import EPOCH, GIVEN, PacketItem, PacketSection, memory_fields, short_line

OPEN_WEIGHT = 12.0
CLOSED_WEIGHT = 3.0
RANK_DISCOUNT = 0.25
"""Weight that each further goal loses: of very many, the last ones make way for decisions."""
MIN_WEIGHT = 1.5
MAX_GOALS_OF_OTHERS = 3
"""Goals of the account, for no user in particular, that were not worked on."""
MAX_GOAL_CHARACTERS = 240
MAX_RESULT_CHARACTERS = 160

SortKey = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedGoal:
    """A goal, its depth in the tree that is shown, and its rank.

    `rank` says which goals are shown if there is no room for all, 0 first; no goal ranks before its parent. `is_own` is
    True for goals of the owner, worked on or requested, and for their ancestors. `is_first` is True for the most needed
    goal and its ancestors.
    """

    goal: ResumedGoal
    depth: int
    rank: int
    is_own: bool
    is_first: bool


def choose_goals(
    goals: Sequence[ResumedGoal], requested: Collection[UUID], worked_on: Collection[UUID], *, now: datetime
) -> list[PlacedGoal]:
    """Return the requested goals with all goals below them, or all open trees, in the order of a tree.

    The owner's trees come first, and after them a few of others. Trees are sorted by their most pressing goal: overdue,
    deadline, priority, worked on. Raises Unprocessable for an unknown requested goal.
    """
    known = {goal.id: goal for goal in goals}
    if set(requested) - known.keys():
        raise Unprocessable("`goal_ids` names an unknown goal.")
    active = include_ancestors(worked_on, known)
    own = include_ancestors([*requested, *worked_on, *(goal.id for goal in goals if goal.is_own)], known)
    urgencies = tree_urgencies(known, active, now=now)
    roots = [known[each] for each in requested] if requested else find_open_roots(known)
    order = sorted(roots, key=lambda root: (root.id not in own, *urgencies[root.id]))
    own_count = len(measure_depths([root for root in order if root.id in own], goals, urgencies))
    depths = dict(islice(measure_depths(order, goals, urgencies).items(), own_count + MAX_GOALS_OF_OTHERS))
    lines = order_lines_by_need([known[each] for each in depths], known, own=own, active=active, now=now)
    ranks = {goal_id: rank for rank, goal_id in enumerate(chain.from_iterable(lines))}
    return [
        PlacedGoal(
            goal=known[goal_id],
            depth=depth,
            rank=ranks[goal_id],
            is_own=goal_id in own,
            is_first=goal_id in lines[0],
        )
        for goal_id, depth in depths.items()
    ]


def measure_depths(
    roots: Sequence[ResumedGoal], goals: Sequence[ResumedGoal], urgencies: Mapping[UUID, SortKey]
) -> dict[UUID, int]:
    """Return the depth of each goal below these roots, depth first, the most pressing child first."""
    children: dict[UUID, list[ResumedGoal]] = defaultdict(list)
    for goal in sorted(goals, key=lambda goal: urgencies[goal.id], reverse=True):
        for parent in goal.parent_ids:
            children[parent].append(goal)
    depths: dict[UUID, int] = {}
    stack = [(root, 0) for root in reversed(roots)]
    while stack:
        goal, depth = stack.pop()
        if goal.id not in depths:
            depths[goal.id] = depth
            stack += [(child, depth + 1) for child in children[goal.id]]
    return depths


def tree_urgencies(
    known: Mapping[UUID, ResumedGoal], active: Collection[UUID], *, now: datetime
) -> dict[UUID, SortKey]:
    """Return the urgency of each goal's tree: that of the most pressing goal in it."""
    found: dict[UUID, SortKey] = {}
    ranked = sorted((urgency_of_goal(goal, active, now=now), goal) for goal in known.values())
    for rank, goal in ranked:
        for each in ancestor_line(goal, known, stop_at=found.keys()):
            found[each.id] = rank
    return found


def order_lines_by_need(
    goals: Sequence[ResumedGoal],
    known: Mapping[UUID, ResumedGoal],
    *,
    own: Collection[UUID],
    active: Collection[UUID],
    now: datetime,
) -> list[list[UUID]]:
    """Return lines of goal ids in the order in which they are shown if there is little room.

    A line ends with a needed goal (overdue, then worked on) and begins with its topmost ancestor that is in no line
    yet.
    """
    shown = {goal.id for goal in goals}
    lines: list[list[UUID]] = []
    ranked: set[UUID] = set()

    def need(goal: ResumedGoal) -> SortKey:
        return (
            goal.id not in own,
            not goal.is_open,
            not is_overdue(goal, now=now),
            goal.id not in active,
            *urgency_of_goal(goal, active, now=now),
        )

    for goal in sorted(goals, key=need):
        line = [each.id for each in reversed(ancestor_line(goal, known, stop_at=ranked)) if each.id in shown]
        if line:
            lines.append(line)
            ranked.update(line)
    return lines


def ancestor_line(
    goal: ResumedGoal, known: Mapping[UUID, ResumedGoal], *, stop_at: Collection[UUID]
) -> list[ResumedGoal]:
    """Return the goal, its parent, and so on, up to the first one in `stop_at`."""
    line: dict[UUID, ResumedGoal] = {}
    current: ResumedGoal | None = goal
    while current is not None and current.id not in stop_at and current.id not in line:
        line[current.id] = current
        current = next((known[each] for each in current.parent_ids if each in known), None)
    return list(line.values())


def urgency_of_goal(goal: ResumedGoal, active: Collection[UUID], *, now: datetime) -> SortKey:
    """Return a sort key: open, overdue, earliest deadline, highest priority, worked on."""
    due = goal.deadline.timestamp() if goal.deadline else float("inf")
    return (not goal.is_open, not is_overdue(goal, now=now), due, -goal.priority, goal.id not in active, goal.id)


def is_overdue(goal: ResumedGoal, *, now: datetime) -> bool:
    return goal.is_open and goal.deadline is not None and goal.deadline < now


def find_open_roots(known: Mapping[UUID, ResumedGoal]) -> list[ResumedGoal]:
    """Return the open goals that are not below an open goal, however far."""
    return [
        goal
        for goal in known.values()
        if goal.is_open and not any(known[each].is_open for each in include_ancestors(goal.parent_ids, known))
    ]


def include_ancestors(goal_ids: Iterable[UUID], known: Mapping[UUID, ResumedGoal]) -> set[UUID]:
    """Return the known goals with all their ancestors."""
    included: set[UUID] = set()
    stack = list(goal_ids)
    while stack:
        goal_id = stack.pop()
        if goal_id in known and goal_id not in included:
            included.add(goal_id)
            stack += known[goal_id].parent_ids
    return included


def find_given_up(goals: Sequence[ResumedGoal], requested: Collection[UUID]) -> set[UUID]:
    """Return the closed goals that were abandoned or are part of one that was, without those requested."""
    known = {goal.id: goal for goal in goals}
    return {
        goal.id
        for goal in goals
        if not goal.is_open
        and goal.id not in requested
        and any(known[each].status == Goal.Status.ABANDONED for each in include_ancestors([goal.id], known))
    }


def goal_items(placed: Sequence[PlacedGoal], goals: Sequence[ResumedGoal], *, now: datetime) -> Iterator[PacketItem]:
    """Return an item for each goal, with the blockers that are not completed and, if it is closed, its result."""
    known = {goal.id: goal for goal in goals}
    shown = {each.goal.id for each in placed}
    for number, each in enumerate(placed):
        goal, weight = each.goal, max(OPEN_WEIGHT - RANK_DISCOUNT * each.rank, MIN_WEIGHT)
        linked = [known[blocker] for blocker in goal.blocker_ids if blocker in known]
        blockers = [blocker for blocker in linked if blocker.status != Goal.Status.COMPLETED]
        yield PacketItem(
            section=PacketSection.GOALS,
            item_type=goal.status,
            text=short_line(goal.text, MAX_GOAL_CHARACTERS),
            label="  " * each.depth,
            weight=weight if goal.is_open else min(weight, CLOSED_WEIGHT),
            is_first=each.is_first,
            parent_id=next((parent for parent in goal.parent_ids if parent in shown), None),
            position=(GIVEN, EPOCH, number, 0),
            **memory_fields(goal),
            source_text="\n".join([goal.text, goal.result, *(blocker.text for blocker in blockers)]),
            is_distinct=True,
            details={
                "status": goal.status,
                "priority": goal.priority,
                "deadline": goal.deadline,
                "overdue": is_overdue(goal, now=now),
                "parent_id": next((parent for parent in goal.parent_ids if parent in known), None),
                "depth": each.depth,
                "result": short_line(goal.result, MAX_RESULT_CHARACTERS),
                "blocked_by": [
                    {
                        "id": blocker.id,
                        "description": short_line(blocker.text, MAX_RESULT_CHARACTERS),
                        "status": blocker.status,
                    }
                    for blocker in blockers
                ],
            },
        )


def format_goal_details(item: PacketItem) -> str:
    """Return what follows a goal's description: status, deadline, blockers and result."""
    details = item.details
    due = details["deadline"]
    parts = [
        *([details["status"]] if details["status"] != Goal.Status.ACTIVE else []),
        *([f"{'OVERDUE, was due' if details['overdue'] else 'due'} {format_utc_minute(due)}"] if due else []),
        *([f"by {'; '.join(map(format_blocker, details['blocked_by']))}"] if details["blocked_by"] else []),
        *([f"result: {details['result']}"] if details["result"] else []),
    ]
    return f" ({', '.join(parts)})" if parts else ""


def format_blocker(blocker: Mapping[str, Any]) -> str:
    description = str(blocker["description"])
    return f"{description} (abandoned)" if blocker["status"] == Goal.Status.ABANDONED else description
