"""Goals: added, listed, read with related goals, changed, closed and deleted by permitted owners."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Forbidden, NotFound, StaleVersion, Unprocessable
from memory.models import Account, AuditEntry, Goal, Link, Memory, Vector
from memory.owner import Owner
from memory.services.goals.plan import change_goal, complete_goal, delete_goal
from memory.services.goals.store import MAX_RELATED_GOALS, active_goals, find_goal, find_goals, get_goal
from memory.services.memories.store import ClientVector
from tests.memory.episodes import MODEL, NOTHING, NOW, direction
from tests.memory.goals import aim, finish, status_of, version_of

NOBODY = UUID(int=7)
"""An unknown id, the same in every process that collects these tests."""

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)


@pytest.fixture
def ana(owner: Owner) -> Owner:
    """Return the agent acting for a user."""
    return replace(owner, user_id="ana")


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def whole_account(owner: Owner) -> Owner:
    return replace(owner, agent_id="")


def change(owner: Owner, goal: Goal, **changes: Any) -> Goal:
    return change_goal(owner, goal.id, changes=changes, embedded=NOTHING, now=LATER)


def texts(owner: Owner) -> list[str]:
    return [goal.text for goal in active_goals(owner, now=NOW)]


def test_an_added_goal_is_active_and_found_again(owner: Owner) -> None:
    added = aim(owner, priority=3, deadline=LATER, metadata={"plot": 4})

    found = find_goal(owner, added.id, now=NOW)

    assert (found.text, found.status, found.priority, found.deadline) == ("Plant the roses.", "active", 3, LATER)
    assert (found.metadata, found.completed_at, found.result, found.version) == ({"plot": 4}, None, "", 1)
    assert (found.item_key, found.event_time) == (f"goal:{added.id}", NOW)


@pytest.mark.parametrize(
    "fields",
    [
        {"description": " \n"},
        {"priority": 1_000_000_001},
        {"priority": -1_000_000_001},
        {"deadline": datetime(2026, 5, 4)},  # noqa: DTZ001
        {"parent_id": NOBODY},
        {"blocked_by": [NOBODY]},
    ],
    ids=str,
)
def test_an_invalid_draft_is_refused_and_nothing_stored(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        aim(owner, **fields)

    assert not Goal.objects.exists()


def test_open_goals_are_listed_by_priority_then_deadline(owner: Owner) -> None:
    blocker = aim(owner, "no deadline", priority=1)
    aim(owner, "later", priority=1, deadline=NOW + timedelta(days=2))
    aim(owner, "sooner", priority=1, deadline=LATER, blocked_by=[blocker.id])
    aim(owner, "matters little", priority=-1, deadline=NOW)
    aim(owner, "matters most", priority=2)
    finish(owner, aim(owner, "done", priority=9))

    assert texts(owner) == ["matters most", "sooner", "later", "no deadline", "matters little"]


def test_a_users_goals_are_visible_to_all_its_agents(
    owner: Owner, ana: Owner, colleague: Owner, whole_account: Owner, stranger: Account
) -> None:
    aim(ana, "for Ana")
    aim(owner, "for nobody")

    assert texts(replace(colleague, user_id="ana")) == ["for Ana"]
    assert texts(replace(owner, user_id="ben")) == ["for nobody"]
    assert texts(colleague) == texts(Owner(account_id=stranger.id)) == []
    assert texts(owner) == texts(whole_account) == ["for Ana", "for nobody"]


def test_lists_look_in_the_active_channel_and_in_global(owner: Owner) -> None:
    roof = replace(owner, channel="roof")
    goal = aim(roof, "tiles")
    aim(owner, "everywhere")

    assert (texts(roof), texts(owner)) == (["tiles", "everywhere"], ["everywhere"])
    assert texts(replace(owner, channel="cellar")) == ["everywhere"]
    # a channel is a label, and does not restrict access
    assert find_goal(owner, goal.id, now=NOW).channel == "roof"


def test_an_owner_that_may_only_read_a_goal_cannot_change_it(owner: Owner, whole_account: Owner) -> None:
    goal = aim(whole_account)
    reader = replace(owner, user_id="ana")

    for act in (
        lambda: change(reader, goal, priority=2),
        lambda: finish(reader, goal),
        lambda: delete_goal(reader, goal.id, now=NOW),
    ):
        with pytest.raises(Forbidden):
            act()

    assert (status_of(goal), version_of(goal)) == ("active", 1)


def test_a_users_goal_may_be_changed_by_its_agents_and_by_the_account(
    ana: Owner, colleague: Owner, whole_account: Owner
) -> None:
    goal = aim(ana)

    change(replace(colleague, user_id="ana"), goal, priority=1)
    change(whole_account, goal, priority=2)
    changed = change(replace(ana, user_id=""), goal, priority=3)

    assert (changed.priority, changed.version, changed.user_id) == (3, 4, "ana")


def test_strangers_and_other_agents_find_no_goals(owner: Owner, colleague: Owner, stranger: Account) -> None:
    goal = aim(owner)

    for other in (colleague, Owner(account_id=stranger.id)):
        for act in (
            lambda other: get_goal(other, goal.id, now=NOW),
            lambda other: change(other, goal, priority=1),
            lambda other: finish(other, goal),
            lambda other: delete_goal(other, goal.id, now=NOW),
        ):
            with pytest.raises(NotFound):
                act(other)


def test_a_goal_is_read_with_its_related_goals(owner: Owner) -> None:
    parent, blocker = aim(owner, "garden"), aim(owner, "dig")
    goal = aim(owner, "roses", parent_id=parent.id, blocked_by=[blocker.id])
    aim(owner, "small", parent_id=goal.id)
    aim(owner, "great", parent_id=goal.id, priority=1)
    aim(owner, "rest", blocked_by=[goal.id])
    aim(owner, "elsewhere")

    view = get_goal(owner, goal.id, now=NOW)

    assert (view.goal.parent_id, view.parent and view.parent.text) == (parent.id, "garden")
    assert [child.text for child in view.children] == ["great", "small"]
    assert [goal.text for goal in (*view.blockers, *view.waiters)] == ["dig", "rest"]
    assert not view.truncated


@pytest.mark.slow
def test_a_goal_with_many_subgoals_is_read_with_its_parent_and_some_of_them(owner: Owner) -> None:
    parent = aim(owner)
    goal = aim(owner, parent_id=parent.id)
    for _ in range(MAX_RELATED_GOALS):
        aim(owner, parent_id=goal.id)

    view = get_goal(owner, goal.id, now=NOW)

    assert (view.parent and view.parent.id, len(view.children), view.truncated) == (
        parent.id,
        MAX_RELATED_GOALS - 1,
        True,
    )


def test_related_goals_hidden_from_the_agent_are_left_out(ana: Owner, colleague: Owner) -> None:
    theirs = aim(replace(colleague, user_id="ana"), "theirs")
    goal = aim(ana, parent_id=theirs.id)

    assert get_goal(ana, goal.id, now=NOW).parent == theirs
    assert get_goal(replace(ana, user_id=""), goal.id, now=NOW).parent is None


def test_goals_of_two_holders_are_not_linked(owner: Owner, ana: Owner, whole_account: Owner) -> None:
    theirs = aim(ana)
    own = aim(owner)

    links: tuple[Callable[[], Goal], ...] = (
        lambda: aim(owner, parent_id=theirs.id),
        lambda: aim(ana, blocked_by=[own.id]),
        lambda: aim(whole_account, parent_id=own.id),
        lambda: change(whole_account, own, parent=theirs.id),
    )
    for link in links:
        with pytest.raises(Unprocessable, match="of the same user, or"):
            link()

    assert not Link.objects.exists()


def test_a_change_makes_a_version_and_equal_values_make_none(owner: Owner) -> None:
    goal = aim(owner, angle=0.0)

    changed = change(owner, goal, priority=5, deadline=LATER, metadata={"a": 1})
    same = change(owner, goal, priority=5, deadline=LATER, metadata={"a": 1}, description=goal.text, parent=None)

    assert (changed.version, same.version, version_of(goal)) == (2, 2, 2)
    assert (same.priority, same.deadline, same.metadata, same.updated_at) == (5, LATER, {"a": 1}, LATER)
    assert change(owner, goal, deadline=None).deadline is None


@pytest.mark.parametrize("other", [{"a": True}, {"a": 1.0}])
def test_a_change_of_the_type_alone_is_a_change(owner: Owner, other: dict[str, Any]) -> None:
    goal = aim(owner, metadata={"a": 1})

    change(owner, goal, metadata=other)

    stored = find_goal(owner, goal.id, now=NOW)
    assert (repr(stored.metadata), stored.version) == (repr(other), 2)


def test_a_new_description_is_stored_with_its_vector(owner: Owner) -> None:
    goal = aim(owner, angle=0.0)
    own = ClientVector(model=MODEL, vector=direction(1.0))

    changed = change_goal(
        owner, goal.id, changes={"description": "Plant tulips.", "priority": 1}, embedded=NOTHING, own=own, now=LATER
    )

    assert (changed.text, changed.priority, changed.version, version_of(goal)) == ("Plant tulips.", 1, 2, 2)
    assert Vector.objects.get().memory_id == goal.id
    assert change(owner, goal, description="Plant nothing.").embed_after == LATER
    assert not Vector.objects.exists()


def test_fields_that_cannot_be_changed_are_refused(owner: Owner) -> None:
    goal = aim(owner)

    for changes in ({"status": "completed"}, {"priority": 10**10}, {"description": ""}, {"parent": uuid4()}):
        with pytest.raises(Unprocessable):
            change(owner, goal, **changes)

    assert version_of(goal) == 1


def test_a_goal_gets_another_parent_or_none(owner: Owner) -> None:
    first, second = aim(owner), aim(owner)
    goal = aim(owner, parent_id=first.id)

    assert change(owner, goal, parent=second.id).parent_id == second.id
    assert find_goal(owner, goal.id, now=NOW).parent_id == second.id
    assert change(owner, goal, parent=None).parent_id is None
    assert (not Link.objects.exists(), version_of(goal)) == (True, 3)


@pytest.mark.parametrize("status", ["completed", "abandoned"])
def test_a_closed_goal_keeps_its_status_and_result(owner: Owner, status: str) -> None:
    goal = aim(owner)

    complete_goal(owner, goal.id, status=status, result="It rained.", now=LATER)

    closed = find_goal(owner, goal.id, now=NOW)
    assert (closed.status, closed.result, closed.completed_at, closed.version) == (status, "It rained.", LATER, 2)
    assert texts(owner) == []


def test_closing_a_goal_twice_equals_closing_it_once(owner: Owner) -> None:
    goal = aim(owner)
    finish(owner, goal, result="done")

    assert finish(owner, goal, result="done", now=LATER) == []
    for other in ({"status": "abandoned", "result": "done"}, {"result": "done well"}):
        with pytest.raises(Conflict, match="closed already: completed"):
            finish(owner, goal, **other)

    closed = find_goal(owner, goal.id, now=NOW)
    assert (closed.completed_at, closed.result, closed.version) == (NOW, "done", 2)


@pytest.mark.parametrize("status", ["active", "blocked", "done", ""])
def test_a_goal_can_only_be_completed_or_abandoned(owner: Owner, status: str) -> None:
    goal = aim(owner)

    with pytest.raises(Unprocessable):
        finish(owner, goal, status=status)

    assert status_of(goal) == "active"


def test_closing_a_goal_leaves_its_subgoals_open(owner: Owner) -> None:
    goal = aim(owner)
    child = aim(owner, parent_id=goal.id)

    finish(owner, goal)

    assert status_of(child) == "active"


def test_subgoals_of_a_deleted_goal_become_roots(owner: Owner) -> None:
    goal = aim(owner, angle=0.0)
    child = aim(owner, parent_id=goal.id)

    delete_goal(owner, goal.id, now=LATER)

    assert not Memory.objects.filter(id=goal.id).exists()
    assert Vector.objects.count() == Link.objects.count() == 0
    assert (find_goal(owner, child.id, now=NOW).parent_id, version_of(child)) == (None, 2)


def test_a_stale_version_changes_nothing(owner: Owner) -> None:
    goal, stale = aim(owner), frozenset({"2"})

    for act in (
        lambda: change_goal(owner, goal.id, changes={"priority": 1}, embedded=NOTHING, expected=stale, now=NOW),
        lambda: finish(owner, goal, expected=stale),
        lambda: delete_goal(owner, goal.id, expected=stale, now=NOW),
    ):
        with pytest.raises(StaleVersion):
            act()

    assert (status_of(goal), version_of(goal)) == ("active", 1)


def test_open_goals_are_found_by_meaning_unless_other_statuses_are_given(owner: Owner, colleague: Owner) -> None:
    near = aim(owner, "near", angle=0.1, priority=4, deadline=LATER)
    aim(owner, "far", angle=1.0)
    closed = aim(owner, "closed", angle=0.0)
    finish(owner, closed, result="done")
    own = ClientVector(model=MODEL, vector=direction(0.0))

    hits = find_goals(owner, text="", top_k=5, own=own, now=NOW).hits
    ended = find_goals(owner, text="", top_k=5, own=own, statuses=["completed"], now=NOW).hits

    assert [(hit.description, hit.priority, hit.deadline) for hit in hits[:1]] == [("near", 4, LATER)]
    assert (hits[0].id, len(hits)) == (near.id, 2)
    assert [(hit.id, hit.status, hit.result) for hit in ended] == [(closed.id, "completed", "done")]
    assert find_goals(colleague, text="", top_k=5, own=own, now=NOW).hits == []


def test_the_audit_log_records_operations_and_no_descriptions(owner: Owner) -> None:
    goal = aim(owner)
    change(owner, goal, priority=1)
    finish(owner, goal)
    other = aim(owner)
    finish(owner, other, status="abandoned")
    delete_goal(owner, other.id, now=NOW)

    entries = AuditEntry.objects.order_by("id").values_list("operation", "memory_type", "affected_ids")

    assert list(entries) == [
        ("store", "semantic", [str(goal.id)]),
        ("update", "semantic", [str(goal.id)]),
        ("complete", "semantic", [str(goal.id)]),
        ("store", "semantic", [str(other.id)]),
        ("abandon", "semantic", [str(other.id)]),
        ("delete", "semantic", [str(other.id)]),
    ]
    assert not any("roses" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_goals_cost_as_many_queries_as_stated(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    parent, blocker = aim(owner), aim(owner)
    with django_assert_num_queries(5):
        goal = aim(owner)
    with django_assert_num_queries(8):
        linked = aim(owner, parent_id=parent.id, blocked_by=[blocker.id])
    with django_assert_num_queries(1):
        list(active_goals(owner, now=NOW))
    with django_assert_num_queries(3):
        get_goal(owner, linked.id, now=NOW)
    with django_assert_num_queries(5):
        change(owner, goal, priority=2)
    with django_assert_num_queries(9):
        finish(owner, blocker)
