"""The goals of a packet: the open ones as a tree, the most pressing first, and what closed parts of them came to."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory.errors import Unprocessable
from memory.models.goals import Goal
from memory.retrieval.resume import GoalOfWork
from memory.services.layouts import one_line, tell_time
from memory.services.resume_pieces import EPOCH, GIVEN, Piece, Section, short_text

OPEN_WEIGHT = 12.0
CLOSED_WEIGHT = 3.0
LESS_A_PLACE = 0.25
"""What each further goal weighs less: where there are very many, the last ones make way for what was decided."""
LEAST_WEIGHT = 1.5
LONGEST_GOAL = 240
LONGEST_RESULT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedGoal:
    """A goal, and how deep below one that is told it stands."""

    goal: GoalOfWork
    depth: int


def choose_goals(
    goals: Sequence[GoalOfWork], wanted: Collection[UUID], worked_on: Collection[UUID], *, now: datetime
) -> list[PlacedGoal]:
    """The wanted goals with what is below them, or all open trees; in the order of a tree.

    Roots that were worked on come first, then overdue ones, then by deadline and priority. Raises Unprocessable for a
    wanted one that is not there.
    """
    known = {goal.id: goal for goal in goals}
    if set(wanted) - known.keys():
        raise Unprocessable("`goal_ids` names a goal that there is not")
    below = children_of(goals)
    busy = trees_with(worked_on, known)
    roots = [known[each] for each in wanted] if wanted else [goal for goal in goals if is_root(goal, known)]

    def press(goal: GoalOfWork) -> tuple[object, ...]:
        return (goal.id not in busy, *urgency(goal, now=now))

    def walk(goal: GoalOfWork, depth: int) -> Iterator[PlacedGoal]:
        seen.add(goal.id)
        yield PlacedGoal(goal=goal, depth=depth)
        for child in sorted(below.get(goal.id, []), key=press):
            if child.id not in seen:
                yield from walk(child, depth + 1)

    seen: set[UUID] = set()
    return [placed for root in sorted(roots, key=press) if root.id not in seen for placed in walk(root, 0)]


def urgency(goal: GoalOfWork, *, now: datetime) -> tuple[object, ...]:
    """Open before closed, overdue first, then the first that is due, then what matters most."""
    due = goal.deadline.timestamp() if goal.deadline else float("inf")
    return (not goal.is_open, not is_overdue(goal, now=now), due, -goal.priority, goal.id)


def is_overdue(goal: GoalOfWork, *, now: datetime) -> bool:
    return goal.is_open and goal.deadline is not None and goal.deadline < now


def is_root(goal: GoalOfWork, known: Mapping[UUID, GoalOfWork]) -> bool:
    """Open, and below no other open goal; or closed and above an open one, which `children_of` leads to."""
    return goal.is_open and not any(parent in known and known[parent].is_open for parent in goal.parent_ids)


def children_of(goals: Sequence[GoalOfWork]) -> dict[UUID, list[GoalOfWork]]:
    below: dict[UUID, list[GoalOfWork]] = {}
    for goal in goals:
        for parent in goal.parent_ids:
            below.setdefault(parent, []).append(goal)
    return below


def trees_with(worked_on: Collection[UUID], known: Mapping[UUID, GoalOfWork]) -> set[UUID]:
    """The goals that were worked on, and those above them."""
    busy: set[UUID] = set()
    rising = list(worked_on)
    while rising:
        goal_id = rising.pop()
        if goal_id in known and goal_id not in busy:
            busy.add(goal_id)
            rising += known[goal_id].parent_ids
    return busy


def goal_pieces(placed: Sequence[PlacedGoal], goals: Sequence[GoalOfWork], *, now: datetime) -> list[Piece]:
    """A line for each goal."""
    known = {goal.id: goal for goal in goals}
    return [goal_piece(each, place, known, now=now) for place, each in enumerate(placed)]


def goal_piece(placed: PlacedGoal, place: int, known: Mapping[UUID, GoalOfWork], *, now: datetime) -> Piece:
    goal = placed.goal
    blockers = [known[each] for each in goal.blocker_ids if each in known and known[each].is_open]
    weight = OPEN_WEIGHT if goal.is_open else CLOSED_WEIGHT
    return Piece(
        section=Section.GOALS,
        says=goal.status,
        text=short_text(one_line(goal.text), LONGEST_GOAL),
        label="  " * placed.depth,
        weight=max(weight - LESS_A_PLACE * place, LEAST_WEIGHT),
        place=(GIVEN, EPOCH, place, 0),
        id=goal.id,
        kind=goal.kind,
        channel=goal.channel,
        event_time=goal.event_time,
        is_apart=True,
        facts={
            "status": goal.status,
            "priority": goal.priority,
            "deadline": goal.deadline,
            "overdue": is_overdue(goal, now=now),
            "parent_id": next(iter(goal.parent_ids), None),
            "depth": placed.depth,
            "result": short_text(one_line(goal.result), LONGEST_RESULT),
            "blocked_by": [
                {"id": each.id, "description": short_text(one_line(each.text), LONGEST_RESULT), "status": each.status}
                for each in blockers
            ],
        },
    )


def tell_goal(piece: Piece) -> str:
    """What stands behind a goal's description."""
    facts = piece.facts
    due = facts["deadline"]
    told = [
        *([facts["status"]] if facts["status"] != Goal.Status.ACTIVE else []),
        *([f"{'OVERDUE, was due' if facts['overdue'] else 'due'} {tell_time(due)}"] if due else []),
        *([f"by {'; '.join(each['description'] for each in facts['blocked_by'])}"] if facts["blocked_by"] else []),
        *([f"result: {facts['result']}"] if facts["result"] else []),
    ]
    return f" ({', '.join(told)})" if told else ""
