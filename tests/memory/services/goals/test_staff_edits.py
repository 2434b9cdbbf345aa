"""Marking and deleting goals by hand leaves nobody waiting for what is out of the way."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from memory.errors import NotFound, Unprocessable
from memory.models import Account, AuditEntry, Goal, Link, Memory
from memory.owner import Owner
from memory.services.goals.plan import GoalDraft, add_goal, block_goal, complete_goal, delete_goal
from memory.services.goals.staff_edits import delete_goal_link, erase_goal
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from tests.beside import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW, draft, store


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


@pytest.fixture
def walls(owner: Owner) -> Goal:
    return add_goal(owner, GoalDraft(description="raise walls"), embedded=NOTHING, now=NOW)


@pytest.fixture
def roof(owner: Owner, walls: Goal) -> Goal:
    return add_goal(owner, GoalDraft(description="put on a roof", blocked_by=[walls.pk]), embedded=NOTHING, now=NOW)


@pytest.fixture
def shed(owner: Owner) -> Goal:
    """Waits for nothing."""
    return add_goal(owner, GoalDraft(description="build a shed"), embedded=NOTHING, now=NOW)


def expire(goal: Goal) -> None:
    Memory.objects.filter(id=goal.pk).update(expires_at=NOW - timedelta(days=1))


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
        delete_memories(staff, [walls.pk], now=NOW)

    assert status_of(roof) == "blocked"


def test_a_goal_that_is_marked_away_says_in_the_audit_log_who_goes_on(staff: Owner, walls: Goal, roof: Goal) -> None:
    for mark in ("archive", "unarchive"):
        mark_memories(staff, [walls.pk], mark=mark, now=NOW)

    entries = AuditEntry.objects.filter(actor="staff:chief", affected_ids=[str(roof.pk)]).order_by("id")
    assert [entry.operation for entry in entries] == ["unblock", "block"]


@pytest.mark.parametrize("closed", ["walls", "roof"])
def test_a_goal_that_is_in_nobodys_way_any_more_is_deleted_as_any_memory(
    owner: Owner, staff: Owner, walls: Goal, roof: Goal, closed: str
) -> None:
    complete_goal(owner, {"walls": walls, "roof": roof}[closed].pk, status="completed", now=NOW)

    assert delete_memories(staff, [walls.pk], now=NOW) == 1


def test_a_goal_that_nobody_waits_for_is_deleted_as_any_memory(staff: Owner, walls: Goal, roof: Goal) -> None:
    assert delete_memories(staff, [roof.pk], now=NOW) == 1


def test_what_a_goal_is_worth_is_corrected_and_its_status_is_not(staff: Owner, owner: Owner, walls: Goal) -> None:
    correct_memory(staff, walls.pk, changes={"priority": 7, "result": "half"}, version=1, now=NOW)
    complete_goal(owner, walls.pk, status="completed", now=NOW)

    row: Any = Goal.objects.get(pk=walls.pk)
    assert (row.priority, row.status) == (7, "completed")
    for column in ("status", "user_id", "expires_at"):
        with pytest.raises(Unprocessable):
            correct_memory(staff, walls.pk, changes={column: "active"}, version=row.version, now=NOW)


@pytest.mark.parametrize("away", ["nothing", "archive", "quarantine", "expire"])
def test_a_goal_is_erased_in_whatever_state(staff: Owner, walls: Goal, roof: Goal, away: str) -> None:
    if away == "expire":
        expire(walls)
    elif away != "nothing":
        mark_memories(staff, [walls.pk], mark=away, now=NOW)

    erase_goal(staff, walls.pk, now=NOW)

    assert status_of(roof) == "active"
    assert not Goal.objects.filter(pk=walls.pk).exists()


def test_a_goal_of_another_account_is_not_erased(stranger: Account, walls: Goal) -> None:
    for goal_id in (walls.pk, UUID(int=7)):
        with pytest.raises(NotFound):
            erase_goal(Owner(account_id=stranger.id), goal_id, now=NOW)


def test_a_link_of_goals_is_deleted_at_the_goals_next_version(
    owner: Owner, staff: Owner, walls: Goal, roof: Goal, shed: Goal
) -> None:
    block_goal(owner, roof.pk, by=shed.pk, now=NOW)
    seen = []
    for blocker in (walls, shed):
        delete_goal_link(staff, Link.objects.get(source_id=roof.pk, target_id=blocker.pk), now=NOW)
        row: Any = Goal.objects.get(pk=roof.pk)
        seen.append((row.status, row.version))

    assert seen == [("blocked", 3), ("active", 4)]
    told = AuditEntry.objects.filter(actor="staff:chief").order_by("id").values_list("operation", "memory_type")
    assert list(told) == [("delete", "link"), ("delete", "link"), ("unblock", "semantic")]


@pytest.mark.django_db(transaction=True)
def test_a_goal_that_something_begins_to_wait_for_is_not_deleted(
    owner: Owner, staff: Owner, walls: Goal, shed: Goal, start_beside: Start
) -> None:
    with transaction.atomic():
        block_goal(owner, shed.pk, by=walls.pk, now=NOW)
        deleting = start_beside(lambda: delete_memories(staff, [walls.pk], now=NOW))

    with pytest.raises(Unprocessable, match="others wait"):
        deleting.result(PATIENCE_SECONDS)
    assert status_of(shed) == "blocked"


@pytest.mark.django_db(transaction=True)
def test_what_is_marked_beside_a_goal_that_goes_away_is_marked(
    owner: Owner, staff: Owner, shed: Goal, start_beside: Start
) -> None:
    (episode,) = store(owner, draft("The pump was bought in March."))

    with transaction.atomic():
        delete_goal(owner, shed.pk, now=NOW)
        marking = start_beside(lambda: mark_memories(staff, [shed.pk, episode.pk], mark="archive", now=NOW))

    assert marking.result(PATIENCE_SECONDS) == 1
    assert Memory.objects.get(id=episode.pk).archived
