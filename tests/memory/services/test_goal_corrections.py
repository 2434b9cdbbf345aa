"""Marking and deleting goals by hand leaves nobody waiting for what is out of the way."""

from typing import Any

import pytest

from memory.errors import Unprocessable
from memory.models import Account, Goal
from memory.owner import Owner
from memory.services.corrections import correct_memory, delete_memories, mark_memories
from memory.services.goals import GoalDraft, add_goal, complete_goal
from tests.memory.episodes import NOTHING, NOW


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


@pytest.fixture
def walls(owner: Owner) -> Goal:
    return add_goal(owner, GoalDraft(description="raise walls"), embedded=NOTHING, now=NOW)


@pytest.fixture
def roof(owner: Owner, walls: Goal) -> Goal:
    return add_goal(owner, GoalDraft(description="put on a roof", blocked_by=[walls.pk]), embedded=NOTHING, now=NOW)


def status_of(goal: Goal) -> str:
    row: Any = Goal.objects.get(pk=goal.pk)
    return str(row.status)


@pytest.mark.parametrize(("away", "back"), [("archive", "unarchive"), ("quarantine", "release")])
def test_a_goal_that_is_marked_away_blocks_nothing_until_it_is_back(
    staff: Owner, walls: Goal, roof: Goal, away: str, back: str
) -> None:
    mark_memories(staff, [walls.pk], mark=away, now=NOW)
    freed = status_of(roof)
    mark_memories(staff, [walls.pk], mark=back, now=NOW)

    assert (freed, status_of(roof)) == ("active", "blocked")


def test_a_goal_that_is_pinned_blocks_as_before(staff: Owner, walls: Goal, roof: Goal) -> None:
    mark_memories(staff, [walls.pk], mark="pin", now=NOW)

    assert status_of(roof) == "blocked"


def test_a_goal_that_others_wait_for_is_not_deleted_as_any_memory(staff: Owner, walls: Goal, roof: Goal) -> None:
    with pytest.raises(Unprocessable):
        delete_memories(staff, [walls.pk])

    assert status_of(roof) == "blocked"


def test_a_goal_that_nobody_waits_for_is_deleted_as_any_memory(staff: Owner, walls: Goal, roof: Goal) -> None:
    assert delete_memories(staff, [roof.pk]) == 1


def test_what_a_goal_is_worth_is_corrected_and_its_status_is_not(staff: Owner, owner: Owner, walls: Goal) -> None:
    correct_memory(staff, walls.pk, changes={"priority": 7, "result": "half"}, version=1, now=NOW)
    complete_goal(owner, walls.pk, status="completed", now=NOW)

    row: Any = Goal.objects.get(pk=walls.pk)
    assert (row.priority, row.status) == (7, "completed")
    for column in ("status", "user_id"):
        with pytest.raises(Unprocessable):
            correct_memory(staff, walls.pk, changes={column: "active"}, version=row.version, now=NOW)
