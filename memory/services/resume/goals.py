"""The goals of a packet: the open ones as a tree, the most pressing first, and what closed parts of them came to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from uuid import UUID

from memory.errors import Unprocessable
from memory.models.goals import Goal
from memory.retrieval.resume import GoalOfWork
from memory.services.prompt_context.fence import one_line, tell_time
from memory.services.resume.pieces import EPOCH, GIVEN, Piece, Section, short_text

OPEN_WEIGHT = 12.0
CLOSED_WEIGHT = 3.0
LESS_A_PLACE = 0.25
"""What each further goal weighs less: where there are very many, the last ones make way for what was decided."""
LEAST_WEIGHT = 1.5
MOST_OF_OTHERS = 3
"""Of what other agents want of nobody in particular, where none of it was worked on."""
LONGEST_GOAL = 240
LONGEST_RESULT = 160


Rank = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedGoal:
    """A goal, and how deep below one that is told it stands.

    `rank` says which goals are told where there is no room for all, 0 before all others; none comes before what it is
    a part of. `is_own`: of the owner, worked on, or asked for; or what such a goal is a part of.
    """

    goal: GoalOfWork
    depth: int
    rank: int
    is_own: bool
    is_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A goal, as deep below the root that it was reached from."""

    goal: GoalOfWork
    depth: int
    root: GoalOfWork


def choose_goals(
    goals: Sequence[GoalOfWork], wanted: Collection[UUID], worked_on: Collection[UUID], *, now: datetime
) -> list[PlacedGoal]:
    """The wanted goals with what is below them, or all open trees; in the order of a tree.

    The owner's own trees come first, and few others; then overdue ones, by deadline, by priority, those that were
    worked on: a tree presses as its most pressing goal does. Raises Unprocessable for a wanted one that is not there.
    """
    known = {goal.id: goal for goal in goals}
    if set(wanted) - known.keys():
        raise Unprocessable("`goal_ids` names a goal that there is not")
    busy = trees_with(worked_on, known)
    own = trees_with([*wanted, *worked_on, *(goal.id for goal in goals if goal.is_own)], known)
    pressing = press_of_trees(known, busy, now=now)
    roots = [known[each] for each in wanted] if wanted else roots_among(known)
    order = sorted(roots, key=lambda root: (root.id not in own, *pressing[root.id]))
    placed = walk_trees(order, children_of(goals), pressing)
    others = [each for each in placed if each.root.id not in own][:MOST_OF_OTHERS]
    told = [*(each for each in placed if each.root.id in own), *others]
    lines = lines_by_need([each.goal for each in told], known, own=own, busy=busy, now=now)
    ranks = {goal_id: rank for rank, goal_id in enumerate(chain.from_iterable(lines))}
    return [
        PlacedGoal(
            goal=each.goal,
            depth=each.depth,
            rank=ranks[each.goal.id],
            is_own=each.goal.id in own,
            is_first=each.goal.id in lines[0],
        )
        for each in told
    ]


def walk_trees(
    roots: Sequence[GoalOfWork], below: Mapping[UUID, Sequence[GoalOfWork]], pressing: Mapping[UUID, Rank]
) -> list[Reached]:
    """Each goal once."""
    placed: list[Reached] = []
    seen: set[UUID] = set()
    for root in roots:
        ahead = [Reached(goal=root, depth=0, root=root)]
        while ahead:
            each = ahead.pop()
            if each.goal.id not in seen:
                seen.add(each.goal.id)
                placed.append(each)
                parts = sorted(below.get(each.goal.id, ()), key=lambda part: pressing[part.id], reverse=True)
                ahead += [Reached(goal=part, depth=each.depth + 1, root=root) for part in parts]
    return placed


def press_of_trees(known: Mapping[UUID, GoalOfWork], busy: Collection[UUID], *, now: datetime) -> dict[UUID, Rank]:
    """How each goal presses with all that is below it: as the most pressing of that does."""
    found: dict[UUID, Rank] = {}
    ranked = sorted((urgency(goal, busy, now=now), goal) for goal in known.values())
    for rank, goal in ranked:
        for each in line_above(goal, known, but=found.keys()):
            found[each.id] = rank
    return found


def lines_by_need(
    goals: Sequence[GoalOfWork],
    known: Mapping[UUID, GoalOfWork],
    *,
    own: Collection[UUID],
    busy: Collection[UUID],
    now: datetime,
) -> list[list[UUID]]:
    """Who is told where there is little room: overdue ones, then what was worked on; each line ends with such a goal,
    and begins with what that is a part of, as far as no line before has it."""
    told = {goal.id for goal in goals}
    lines: list[list[UUID]] = []
    ranked: set[UUID] = set()

    def need(goal: GoalOfWork) -> Rank:
        is_late = is_overdue(goal, now=now)
        return (goal.id not in own, not goal.is_open, not is_late, goal.id not in busy, *urgency(goal, busy, now=now))

    for goal in sorted(goals, key=need):
        line = [each.id for each in reversed(line_above(goal, known, but=ranked)) if each.id in told]
        if line:
            lines.append(line)
            ranked.update(line)
    return lines


def line_above(goal: GoalOfWork, known: Mapping[UUID, GoalOfWork], *, but: Collection[UUID]) -> list[GoalOfWork]:
    """The goal, what it is a part of, and so on, up to the first of `but`."""
    line: dict[UUID, GoalOfWork] = {}
    rising: GoalOfWork | None = goal
    while rising is not None and rising.id not in but and rising.id not in line:
        line[rising.id] = rising
        rising = next((known[each] for each in rising.parent_ids if each in known), None)
    return list(line.values())


def urgency(goal: GoalOfWork, busy: Collection[UUID], *, now: datetime) -> Rank:
    """Open ones, then overdue ones first, then the first that is due, then what matters most, then what was begun."""
    due = goal.deadline.timestamp() if goal.deadline else float("inf")
    return (not goal.is_open, not is_overdue(goal, now=now), due, -goal.priority, goal.id not in busy, goal.id)


def is_overdue(goal: GoalOfWork, *, now: datetime) -> bool:
    return goal.is_open and goal.deadline is not None and goal.deadline < now


def roots_among(known: Mapping[UUID, GoalOfWork]) -> list[GoalOfWork]:
    """Open ones that are no part of an open one, however far above."""
    leading = {goal.id for goal in known.values() if goal.is_open}
    below = children_of(list(known.values()))
    ahead = list(leading)
    led: set[UUID] = set()
    while ahead:
        for part in below.get(ahead.pop(), ()):
            if part.id not in led:
                led.add(part.id)
                ahead.append(part.id)
    return [goal for goal in known.values() if goal.is_open and goal.id not in led]


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
    told = {each.goal.id for each in placed}
    return [goal_piece(each, place, known, told, now=now) for place, each in enumerate(placed)]


def goal_piece(
    placed: PlacedGoal, place: int, known: Mapping[UUID, GoalOfWork], told: Collection[UUID], *, now: datetime
) -> Piece:
    goal = placed.goal
    blockers = [known[each] for each in goal.blocker_ids if each in known and known[each].is_open]
    return Piece(
        section=Section.GOALS,
        says=goal.status,
        text=short_text(one_line(goal.text), LONGEST_GOAL),
        label="  " * placed.depth,
        weight=weight_of(placed),
        is_first=placed.is_first,
        below=next((each for each in goal.parent_ids if each in told), None),
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


def weight_of(placed: PlacedGoal) -> float:
    weight = max(OPEN_WEIGHT - LESS_A_PLACE * placed.rank, LEAST_WEIGHT)
    return weight if placed.goal.is_open else min(weight, CLOSED_WEIGHT)


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
