"""Hiding and deleting goals by staff leaves no goal waiting for them."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction

from memory.errors import NotFound, Unprocessable
from memory.models import Account, AuditEntry, Goal, Link, Memory
from memory.owner import Owner
from memory.services.goals.plan import (
    GoalDraft,
    add_goal,
    block_goal,
    complete_goal,
    delete_goal,
    delete_goal_link,
    erase_goal,
)
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start
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
    """Return a goal that waits for nothing."""
    return add_goal(owner, GoalDraft(description="build a shed"), embedded=NOTHING, now=NOW)


def expire(goal: Goal) -> None:
    Memory.objects.filter(id=goal.pk).update(expires_at=NOW - timedelta(days=1))


def status_of(goal: Goal) -> str:
    row = Goal.objects.get(pk=goal.pk)
    return str(row.status)


@pytest.mark.parametrize(("away", "back"), [("archive", "unarchive"), ("quarantine", "release")])
def test_a_hidden_goal_does_not_block_until_it_is_restored(
    staff: Owner, walls: Goal, roof: Goal, away: str, back: str
) -> None:
    mark_memories(staff, [walls.pk], mark=away, now=NOW)
    freed = status_of(roof)
    mark_memories(staff, [walls.pk], mark=back, now=NOW)

    assert (freed, status_of(roof)) == ("active", "blocked")


def test_a_pinned_goal_blocks_as_before(staff: Owner, walls: Goal, roof: Goal) -> None:
    mark_memories(staff, [walls.pk], mark="pin", now=NOW)

    assert status_of(roof) == "blocked"


def test_a_blocking_goal_cannot_be_deleted_as_a_memory(staff: Owner, walls: Goal, roof: Goal) -> None:
    with pytest.raises(Unprocessable):
        delete_memories(staff, [walls.pk], now=NOW)

    assert status_of(roof) == "blocked"


def test_hiding_a_goal_records_unblocked_goals_in_the_audit_log(staff: Owner, walls: Goal, roof: Goal) -> None:
    for mark in ("archive", "unarchive"):
        mark_memories(staff, [walls.pk], mark=mark, now=NOW)

    entries = AuditEntry.objects.filter(actor="staff:chief", affected_ids=[str(roof.pk)]).order_by("id")
    assert [entry.operation for entry in entries] == ["unblock", "block"]


@pytest.mark.parametrize("closed", ["walls", "roof"])
def test_a_goal_that_no_longer_blocks_is_deleted_as_a_memory(
    owner: Owner, staff: Owner, walls: Goal, roof: Goal, closed: str
) -> None:
    complete_goal(owner, {"walls": walls, "roof": roof}[closed].pk, status="completed", force=True, now=NOW)

    assert delete_memories(staff, [walls.pk], now=NOW) == 1


def test_a_goal_without_waiters_is_deleted_as_a_memory(staff: Owner, walls: Goal, roof: Goal) -> None:
    assert delete_memories(staff, [roof.pk], now=NOW) == 1


def test_priority_can_be_corrected_and_status_cannot(staff: Owner, owner: Owner, walls: Goal) -> None:
    correct_memory(staff, walls.pk, changes={"priority": 7, "result": "half"}, version=1, now=NOW)
    complete_goal(owner, walls.pk, status="completed", now=NOW)

    row = Goal.objects.get(pk=walls.pk)
    assert (row.priority, row.status) == (7, "completed")
    for column in ("status", "user_id", "expires_at"):
        with pytest.raises(Unprocessable):
            correct_memory(staff, walls.pk, changes={column: "active"}, version=row.version, now=NOW)


@pytest.mark.parametrize("away", ["nothing", "archive", "quarantine", "expire"])
def test_a_goal_is_erased_in_any_state(staff: Owner, walls: Goal, roof: Goal, away: str) -> None:
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


def test_deleting_a_link_makes_a_new_version_of_the_goal(
    owner: Owner, staff: Owner, walls: Goal, roof: Goal, shed: Goal
) -> None:
    block_goal(owner, roof.pk, by=shed.pk, now=NOW)
    seen = []
    for blocker in (walls, shed):
        delete_goal_link(staff, Link.objects.get(source_id=roof.pk, target_id=blocker.pk), now=NOW)
        row = Goal.objects.get(pk=roof.pk)
        seen.append((row.status, row.version))

    assert seen == [("blocked", 3), ("active", 4)]
    entries = AuditEntry.objects.filter(actor="staff:chief").order_by("id").values_list("operation", "memory_type")
    assert list(entries) == [("delete", "link"), ("delete", "link"), ("unblock", "semantic")]


@pytest.mark.django_db(transaction=True)
def test_a_goal_that_concurrently_begins_to_block_is_not_deleted(
    owner: Owner, staff: Owner, walls: Goal, shed: Goal, start_concurrently: Start
) -> None:
    with transaction.atomic():
        block_goal(owner, shed.pk, by=walls.pk, now=NOW)
        deleting = start_concurrently(lambda: delete_memories(staff, [walls.pk], now=NOW))

    with pytest.raises(Unprocessable, match="others wait"):
        deleting.result(PATIENCE_SECONDS)
    assert status_of(shed) == "blocked"


@pytest.mark.django_db(transaction=True)
def test_memories_marked_with_a_goal_deleted_meanwhile_are_marked(
    owner: Owner, staff: Owner, shed: Goal, start_concurrently: Start
) -> None:
    (episode,) = store(owner, draft("The pump was bought in March."))

    with transaction.atomic():
        delete_goal(owner, shed.pk, now=NOW)
        marking = start_concurrently(lambda: mark_memories(staff, [shed.pk, episode.pk], mark="archive", now=NOW))

    assert marking.result(PATIENCE_SECONDS) == 1
    assert Memory.objects.get(id=episode.pk).archived
