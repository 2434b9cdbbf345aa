"""Blocking: the status of a goal follows from its blockers that are not completed, also concurrently."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, NotFound, StaleVersion, Unprocessable
from memory.models import AuditEntry, Goal, Link, Memory
from memory.owner import Owner
from memory.retrieval.kind_searches import read_goal_tree
from memory.services.goals.plan import block_goal, change_goal, delete_goal, unblock_goal
from memory.services.goals.store import active_goals, get_goal, recompute_waiters
from memory.services.memories.correct import delete_memories, mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim, finish, status_of, version_of

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)


def block(owner: Owner, goal: Goal, by: Goal) -> Goal:
    return block_goal(owner, goal.id, by=by.id, now=LATER)


def unblock(owner: Owner, goal: Goal, by: Goal) -> Goal:
    return unblock_goal(owner, goal.id, by=by.id, now=LATER)


def test_a_goal_that_waits_is_blocked_and_still_listed(owner: Owner) -> None:
    goal, blocker = aim(owner), aim(owner)

    blocked = block(owner, goal, blocker)

    assert (blocked.status, blocked.version, blocked.updated_at) == ("blocked", 2, LATER)
    assert (status_of(goal), status_of(blocker), version_of(blocker)) == ("blocked", "active", 1)
    assert [goal.id for goal in active_goals(owner, now=NOW)] == [goal.id, blocker.id]


def test_a_goal_is_added_blocked(owner: Owner) -> None:
    blocker = aim(owner)

    goal = aim(owner, blocked_by=[blocker.id, blocker.id])

    assert (goal.status, status_of(goal), Link.objects.count()) == ("blocked", "blocked", 1)


def test_blocking_twice_equals_blocking_once(owner: Owner) -> None:
    goal, blocker = aim(owner), aim(owner)

    block(owner, goal, blocker)
    again = block(owner, goal, blocker)

    assert (again.version, version_of(goal), Link.objects.count()) == (2, 2, 1)


def test_a_goal_is_unblocked_when_its_last_blocker_is_completed(owner: Owner) -> None:
    first, second = aim(owner), aim(owner)
    goal = aim(owner, blocked_by=[first.id, second.id])
    alone = aim(owner, blocked_by=[first.id])

    assert finish(owner, first) == [alone.id]
    assert (status_of(goal), version_of(goal)) == ("blocked", 1)
    assert finish(owner, second) == [goal.id]

    assert (status_of(goal), version_of(goal)) == (status_of(alone), version_of(alone)) == ("active", 2)
    assert AuditEntry.objects.filter(operation="unblock", affected_ids=[str(goal.id)]).exists()


def test_an_abandoned_goal_goes_on_blocking_and_is_listed(owner: Owner) -> None:
    blocker, other = aim(owner), aim(owner)
    goal = aim(owner, blocked_by=[blocker.id, other.id])

    assert finish(owner, blocker, status="abandoned") == finish(owner, other) == []
    found = get_goal(owner, goal.id, now=NOW)

    assert found.goal.status == "blocked"
    assert {each.id: each.status for each in found.blockers} == {blocker.id: "abandoned", other.id: "completed"}
    assert unblock(owner, goal, blocker).status == "active"


def test_an_abandoned_goal_blocks_until_it_is_archived_or_deleted(owner: Owner) -> None:
    blockers = [aim(owner), aim(owner)]
    goal, other = (aim(owner, blocked_by=[blocker.id]) for blocker in blockers)
    for blocker in blockers:
        finish(owner, blocker, status="abandoned")

    mark_memories(owner, [blockers[0].id], mark="archive", now=NOW)

    assert (status_of(goal), status_of(other)) == ("active", "blocked")
    with pytest.raises(Unprocessable, match="others wait"):
        delete_memories(owner, [blockers[1].id], now=NOW)
    assert delete_goal(owner, blockers[1].id, now=NOW) == [other.id]


def test_a_blocked_goal_is_completed_only_with_force(owner: Owner) -> None:
    blockers = [aim(owner), aim(owner), aim(owner)]
    goal = aim(owner, blocked_by=[each.id for each in blockers])
    finish(owner, blockers[0])
    finish(owner, blockers[1], status="abandoned")

    with pytest.raises(Conflict, match=rf"{blockers[1].id} \(abandoned\), {blockers[2].id} \(active\)\. Complete"):
        finish(owner, goal)
    refused = status_of(goal)
    finish(owner, goal, force=True)

    assert (refused, status_of(goal), version_of(goal)) == ("blocked", "completed", 2)


def test_blockers_that_the_agent_may_not_see_are_counted(owner: Owner) -> None:
    ana = replace(owner, user_id="ana")
    hidden = aim(replace(ana, agent_id="colleague"))
    goal = aim(ana, blocked_by=[hidden.id])

    with pytest.raises(Conflict, match="not completed: 1 that you may not see"):
        finish(owner, goal)


def test_a_goal_whose_blocker_has_expired_is_completed(owner: Owner) -> None:
    blocker = aim(owner)
    goal = aim(owner, blocked_by=[blocker.id])
    Memory.objects.filter(id=blocker.id).update(expires_at=NOW)

    finish(owner, goal)

    assert status_of(goal) == "completed"


def test_closed_blockers_are_still_listed(owner: Owner) -> None:
    blocker = aim(owner)
    goal = aim(owner, blocked_by=[blocker.id])

    finish(owner, blocker)

    assert [(other.id, other.status) for other in get_goal(owner, goal.id, now=NOW).blockers] == [
        (blocker.id, "completed")
    ]


def test_a_blocked_goal_may_be_abandoned_and_stays_so(owner: Owner) -> None:
    blocker = aim(owner)
    goal = aim(owner, blocked_by=[blocker.id])

    finish(owner, goal, status="abandoned")

    assert finish(owner, blocker) == []
    assert (status_of(goal), version_of(goal)) == ("abandoned", 2)


def test_unblocking_leaves_a_goal_blocked_by_others(owner: Owner) -> None:
    first, second, closed = aim(owner), aim(owner), aim(owner)
    goal = aim(owner, blocked_by=[first.id, second.id, closed.id])
    finish(owner, closed)

    assert unblock(owner, goal, first).status == "blocked"
    assert unblock(owner, goal, second).status == "active"
    assert (status_of(goal), version_of(goal)) == ("active", 3)


def test_unblocking_by_a_goal_that_does_not_block_changes_nothing(owner: Owner) -> None:
    goal, other = aim(owner), aim(owner)

    assert unblock(owner, goal, other).version == 1
    assert unblock_goal(owner, goal.id, by=uuid4(), now=NOW).status == "active"


def test_invalid_blockers_are_refused(owner: Owner) -> None:
    goal, closed = aim(owner), aim(owner)
    finish(owner, closed)

    with pytest.raises(Unprocessable, match="closed goal blocks nothing"):
        block(owner, goal, closed)
    with pytest.raises(Unprocessable, match="closed goal blocks nothing"):
        aim(owner, blocked_by=[closed.id])
    with pytest.raises(Unprocessable, match="cannot wait for itself"):
        block(owner, goal, goal)
    with pytest.raises(Unprocessable, match="no such goal"):
        block_goal(owner, goal.id, by=uuid4(), now=NOW)
    with pytest.raises(Conflict, match="nothing can block it any more"):
        block(owner, closed, goal)

    assert not Link.objects.exists()


def test_a_goal_of_another_agent_cannot_block(owner: Owner) -> None:
    colleague = replace(owner, agent_id="colleague")
    goal, theirs = aim(owner), aim(colleague)

    with pytest.raises(Unprocessable, match="no such goal"):
        block(owner, goal, theirs)
    with pytest.raises(NotFound):
        block(colleague, goal, theirs)
    with pytest.raises(NotFound):
        unblock(colleague, goal, theirs)


def test_a_stale_version_neither_blocks_nor_unblocks(owner: Owner) -> None:
    goal, blocker = aim(owner), aim(owner)

    for act in (block_goal, unblock_goal):
        with pytest.raises(StaleVersion):
            act(owner, goal.id, by=blocker.id, expected=frozenset({"2"}), now=NOW)


def test_a_deleted_goal_no_longer_blocks(owner: Owner) -> None:
    blocker, other = aim(owner), aim(owner)
    goal, both = aim(owner, blocked_by=[blocker.id]), aim(owner, blocked_by=[blocker.id, other.id])

    assert delete_goal(owner, blocker.id, now=LATER) == [goal.id]
    assert (status_of(goal), status_of(both)) == ("active", "blocked")


def test_waiting_goals_of_the_users_other_agents_are_unblocked(owner: Owner) -> None:
    ana = replace(owner, user_id="ana")
    blocker = aim(ana)
    theirs = aim(replace(ana, agent_id="colleague"), blocked_by=[blocker.id])

    assert finish(replace(ana, user_id=""), blocker) == [theirs.id]


def test_an_archived_goal_does_not_block_until_it_is_restored(owner: Owner) -> None:
    blocker = aim(owner)
    goal = aim(owner, blocked_by=[blocker.id])

    for archived, status in ((True, "active"), (False, "blocked")):
        Memory.objects.filter(id=blocker.id).update(archived=archived)
        recompute_waiters(owner, [blocker.id], now=LATER)
        assert status_of(goal) == status


def test_an_expired_goal_does_not_block(owner: Owner) -> None:
    blocker, other = aim(owner), aim(owner)
    goal = aim(owner, blocked_by=[blocker.id, other.id])
    Memory.objects.filter(id=blocker.id).update(expires_at=LATER)

    assert unblock(owner, goal, other).status == "active"
    recompute_waiters(owner, [blocker.id], now=NOW)
    assert status_of(goal) == "blocked"
    recompute_waiters(owner, [blocker.id], now=LATER)
    assert status_of(goal) == "active"


def test_hidden_goals_do_not_block(owner: Owner) -> None:
    recompute_waiters(owner, [uuid4()], now=NOW)

    assert not AuditEntry.objects.filter(operation="unblock").exists()


def test_a_tree_is_ordered_by_depth_and_then_as_lists_are(owner: Owner) -> None:
    root = aim(owner, "root")
    low, high = aim(owner, "low", parent_id=root.id), aim(owner, "high", parent_id=root.id, priority=1)
    leaf = aim(owner, "leaf", parent_id=low.id)

    tree = read_goal_tree(owner, root.id, now=NOW)

    assert [(goal.description, goal.depth, goal.parent_id) for goal in tree.goals] == [
        ("root", 0, None),
        ("high", 1, root.id),
        ("low", 1, root.id),
        ("leaf", 2, low.id),
    ]
    assert not tree.truncated
    assert [goal.id for goal in read_goal_tree(owner, low.id, now=NOW).goals] == [low.id, leaf.id]
    assert high.id not in {goal.id for goal in read_goal_tree(owner, low.id, now=NOW).goals}


def test_a_tree_is_bounded_in_goals_and_in_depth(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    root = aim(owner)
    below = aim(owner, parent_id=root.id)
    aim(owner, parent_id=below.id)

    with django_assert_num_queries(1):
        wide = read_goal_tree(owner, root.id, max_goals=2, now=NOW)
    flat = read_goal_tree(owner, root.id, max_depth=1, now=NOW)

    assert [goal.id for goal in wide.goals] == [goal.id for goal in flat.goals] == [root.id, below.id]
    assert wide.truncated
    assert flat.truncated
    assert not read_goal_tree(owner, root.id, max_goals=3, max_depth=2, now=NOW).truncated


def test_a_tree_ends_at_goals_hidden_from_the_agent(owner: Owner) -> None:
    ana = replace(owner, user_id="ana")
    theirs = aim(replace(ana, agent_id="colleague"))
    below = aim(ana, parent_id=theirs.id)

    assert len(read_goal_tree(ana, theirs.id, now=NOW).goals) == 2
    assert [goal.id for goal in read_goal_tree(owner, below.id, now=NOW).goals] == [below.id]
    with pytest.raises(NotFound):
        read_goal_tree(owner, theirs.id, now=NOW)


def test_blocking_costs_as_many_queries_as_stated(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal, blocker = aim(owner), aim(owner)

    with django_assert_num_queries(11):
        block(owner, goal, blocker)
    with django_assert_num_queries(8):
        unblock(owner, goal, blocker)


@pytest.mark.django_db(transaction=True)
def test_blocking_by_a_goal_that_is_being_completed_is_refused(owner: Owner, start_concurrently: Start) -> None:
    goal, blocker = aim(owner), aim(owner)

    with transaction.atomic():
        finish(owner, blocker)
        blocking = start_concurrently(lambda: block(owner, goal, blocker))

    with pytest.raises(Unprocessable, match="closed goal blocks nothing"):
        blocking.result(PATIENCE_SECONDS)
    assert status_of(goal) == "active"


@pytest.mark.django_db(transaction=True)
def test_completing_unblocks_a_goal_that_concurrently_begins_to_wait(owner: Owner, start_concurrently: Start) -> None:
    goal, blocker = aim(owner), aim(owner)

    with transaction.atomic():
        block(owner, goal, blocker)
        completing = start_concurrently(lambda: finish(owner, blocker))

    assert completing.result(PATIENCE_SECONDS) == [goal.id]
    assert status_of(goal) == "active"


@pytest.mark.django_db(transaction=True)
def test_concurrently_completing_the_last_two_blockers_unblocks_once(owner: Owner, start_concurrently: Start) -> None:
    first, second = aim(owner), aim(owner)
    goal = aim(owner, blocked_by=[first.id, second.id])

    with transaction.atomic():
        assert finish(owner, first) == []
        other = start_concurrently(lambda: finish(owner, second))

    assert other.result(PATIENCE_SECONDS) == [goal.id]
    assert (status_of(goal), version_of(goal)) == ("active", 2)


@pytest.mark.django_db(transaction=True)
def test_concurrent_completions_complete_a_goal_once(owner: Owner, start_concurrently: Start) -> None:
    goal = aim(owner)

    with transaction.atomic():
        finish(owner, goal, result="mine")
        other = start_concurrently(lambda: finish(owner, goal, status="abandoned"))

    with pytest.raises(Conflict):
        other.result(PATIENCE_SECONDS)
    assert status_of(goal) == "completed"


@pytest.mark.django_db(transaction=True)
def test_a_goal_and_its_new_parent_are_locked_in_the_order_of_their_ids(
    owner: Owner, start_concurrently: Start
) -> None:
    parent, goal = aim(owner), aim(owner)
    changes = {"parent": parent.id}

    with transaction.atomic():
        mark_memories(owner, [parent.id], mark="pin", now=NOW)
        moving = start_concurrently(lambda: change_goal(owner, goal.id, changes=changes, embedded=NOTHING, now=NOW))
        # a deadlock if the other one has locked the goal already
        mark_memories(owner, [goal.id], mark="pin", now=NOW)

    moving.result(PATIENCE_SECONDS)
    moved = get_goal(owner, goal.id, now=NOW).goal
    assert (moved.parent_id, moved.pinned) == (parent.id, True)
