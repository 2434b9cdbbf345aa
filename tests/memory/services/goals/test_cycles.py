"""Cycles of goals are refused by the service, by the database, and for one of two concurrent links."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import Goal, Link
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.owner import Owner
from memory.services.goals.plan import block_goal, change_goal, complete_goal, delete_goal, unblock_goal
from memory.services.goals.store import GoalLink, insert_goal_links
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim, status_of
from tests.properties import examples

pytestmark = pytest.mark.django_db

GOALS = 5
numbers = st.integers(0, GOALS - 1)
STEPS = st.one_of(
    st.tuples(st.just("block"), numbers, numbers),
    st.tuples(st.just("unblock"), numbers, numbers),
    st.tuples(st.just("move"), numbers, st.one_of(st.none(), numbers)),
    st.tuples(st.just("close"), numbers, st.sampled_from(["completed", "abandoned"])),
    st.tuples(st.just("delete"), numbers, st.none()),
)


def move(owner: Owner, goal: Goal, parent: Goal | None) -> Goal:
    changes = {"parent": parent.id if parent else None}
    return change_goal(owner, goal.id, changes=changes, embedded=NOTHING, now=NOW)


def link_directly(owner: Owner, source: Goal, link_type: str, target: Goal) -> None:
    """Store a link without the service's own checks."""
    link = GoalLink(source.id, link_type, target.id)
    with transaction.atomic():
        insert_goal_links(owner.account_id, [link])


def test_a_goal_cannot_wait_for_a_goal_that_waits_for_it(owner: Owner) -> None:
    first = aim(owner)
    second = aim(owner, blocked_by=[first.id])
    third = aim(owner, blocked_by=[second.id])

    for by in (second, third):
        with pytest.raises(Unprocessable, match="a goal would wait for itself"):
            block_goal(owner, first.id, by=by.id, now=NOW)

    assert (status_of(first), Link.objects.count()) == ("active", 2)


def test_a_goal_cannot_be_its_own_descendant(owner: Owner) -> None:
    root = aim(owner)
    child = aim(owner, parent_id=root.id)
    leaf = aim(owner, parent_id=child.id)

    for parent in (root, child, leaf):
        with pytest.raises(Unprocessable, match="a goal would be a subgoal of itself"):
            move(owner, root, parent)

    assert Link.objects.count() == 2


def test_a_goal_may_wait_for_its_own_parts(owner: Owner) -> None:
    root = aim(owner)
    child = aim(owner, parent_id=root.id)

    assert block_goal(owner, root.id, by=child.id, now=NOW).status == "blocked"


@pytest.mark.parametrize("link_type", [SUBGOAL_OF, BLOCKED_BY])
def test_the_database_refuses_cycles_by_itself(owner: Owner, link_type: str) -> None:
    goals = [aim(owner) for _ in range(3)]
    link_directly(owner, goals[0], link_type, goals[1])
    link_directly(owner, goals[1], link_type, goals[2])

    for target in goals[:2]:
        with pytest.raises(Unprocessable, match="cycle"):
            link_directly(owner, goals[2], link_type, target)
        with pytest.raises(IntegrityError, match="ring"), transaction.atomic():
            Link.objects.create(account_id=owner.account_id, source_id=goals[2].id, type=link_type, target_id=target.id)

    assert Link.objects.count() == 2


def test_the_database_refuses_a_second_parent_by_itself(owner: Owner) -> None:
    goal, first, second = (aim(owner) for _ in range(3))
    link_directly(owner, goal, SUBGOAL_OF, first)

    for parent in (first, second):
        with pytest.raises(Conflict, match="at the same time"):
            link_directly(owner, goal, SUBGOAL_OF, parent)


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_links_that_close_a_cycle_one_is_refused(owner: Owner, start_concurrently: Start) -> None:
    first, second = aim(owner), aim(owner)

    with transaction.atomic():
        block_goal(owner, first.id, by=second.id, now=NOW)
        other = start_concurrently(lambda: block_goal(owner, second.id, by=first.id, now=NOW))

    with pytest.raises(Unprocessable, match="a goal would wait for itself"):
        other.result(PATIENCE_SECONDS)
    assert (status_of(first), status_of(second)) == ("blocked", "active")


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_moves_below_each_other_one_is_refused(owner: Owner, start_concurrently: Start) -> None:
    first, second = aim(owner), aim(owner)

    with transaction.atomic():
        move(owner, first, second)
        other = start_concurrently(lambda: move(owner, second, first))

    with pytest.raises(Unprocessable, match="a goal would be a subgoal of itself"):
        other.result(PATIENCE_SECONDS)
    assert Link.objects.get().source_id == first.id


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_concurrent_links_that_close_a_cycle(owner: Owner, start_concurrently: Start) -> None:
    first, second = aim(owner), aim(owner)

    with transaction.atomic():
        link_directly(owner, first, BLOCKED_BY, second)
        other = start_concurrently(lambda: link_directly(owner, second, BLOCKED_BY, first))

    with pytest.raises(Unprocessable, match="cycle"):
        other.result(PATIENCE_SECONDS)


class Naive:
    """A naive model of goals by number: blockers, parent and status of each."""

    def __init__(self) -> None:
        self.waits: dict[int, set[int]] = {number: set() for number in range(GOALS)}
        self.parents: dict[int, int] = {}
        self.ends: dict[int, str] = {}

    def status(self, number: int) -> str:
        waits = any(other in self.waits and self.ends.get(other) != "completed" for other in self.waits[number])
        return self.ends.get(number, "blocked" if waits else "active")

    def reaches(self, start: int, goal: int, ways: dict[int, set[int]]) -> bool:
        return start == goal or any(self.reaches(other, goal, ways) for other in ways.get(start, ()))

    def step(self, act: str, number: int, value: Any) -> bool:
        """Do the step if it is allowed, and return whether it was."""
        if number not in self.waits or (act in ("block", "move") and value not in (*self.waits, None)):
            return False
        return bool(getattr(self, act)(number, value))

    def block(self, number: int, by: int) -> bool:
        known = by in self.waits[number] and number not in self.ends
        closed = number in self.ends or by in self.ends
        if not known and (closed or self.reaches(by, number, self.waits)):
            return False
        self.waits[number].add(by)
        return True

    def unblock(self, number: int, by: int) -> bool:
        self.waits[number].discard(by)
        return True

    def move(self, number: int, parent: int | None) -> bool:
        ways = {child: {above} for child, above in self.parents.items() if child != number}
        if parent is not None and self.reaches(parent, number, ways):
            return False
        self.parents.pop(number, None)
        if parent is not None:
            self.parents[number] = parent
        return True

    def close(self, number: int, status: str) -> bool:
        if status == "completed" and self.status(number) == "blocked":
            return False
        return self.ends.setdefault(number, status) == status

    def delete(self, number: int, _value: None) -> bool:
        del self.waits[number]
        for waits in self.waits.values():
            waits.discard(number)
        self.ends.pop(number, None)
        self.parents = {child: above for child, above in self.parents.items() if number not in (child, above)}
        return True


@examples(40)
@given(history=st.lists(STEPS, max_size=20))
def test_any_history_of_goals_matches_a_naive_model(owner: Owner, history: list[tuple[Any, ...]]) -> None:
    goals = [aim(replace(owner, user_id="")) for _ in range(GOALS)]
    naive = Naive()

    for act, number, value in history:
        assert was_done(owner, goals, act, number, value) == naive.step(act, number, value), (act, number, value)

    assert {number: status_of(goals[number]) for number in naive.waits} == {
        number: naive.status(number) for number in naive.waits
    }
    assert stored_links(goals) == {(n, BLOCKED_BY, by) for n, waits in naive.waits.items() for by in waits} | {
        (child, SUBGOAL_OF, above) for child, above in naive.parents.items()
    }
    Goal.objects.all().delete()


def was_done(owner: Owner, goals: list[Goal], act: str, number: int, value: Any) -> bool:
    goal = goals[number]
    try:
        match act:
            case "block":
                block_goal(owner, goal.id, by=goals[value].id, now=NOW)
            case "unblock":
                unblock_goal(owner, goal.id, by=goals[value].id, now=NOW)
            case "move":
                move(owner, goal, None if value is None else goals[value])
            case "close":
                complete_goal(owner, goal.id, status=value, now=NOW)
            case _:
                delete_goal(owner, goal.id, now=NOW)
    except (NotFound, Unprocessable, Conflict):
        return False
    return True


def stored_links(goals: list[Goal]) -> set[tuple[int, str, int]]:
    numbered = {goal.id: number for number, goal in enumerate(goals)}
    rows = Link.objects.filter(source_id__in=numbered).values_list("source_id", "type", "target_id")
    return {(numbered[source], link_type, numbered[target]) for source, link_type, target in rows}
