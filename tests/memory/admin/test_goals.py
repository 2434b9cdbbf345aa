"""Goals in the admin: as trees, ended, blocked and unblocked, corrected."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from memory.admin import goal_trees
from memory.models import Account, AuditEntry, Goal, Link, Memory
from memory.owner import Owner
from memory.services.goals.plan import GoalDraft, add_goal
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.episodes import NOTHING


def add(owner: Owner, text: str, **fields: Any) -> Goal:
    return add_goal(owner, GoalDraft(description=text, **fields), embedded=NOTHING, now=datetime.now(UTC))


def tree_url(**query: object) -> str:
    return list_url("goal").replace("/goal/", "/goal/tree/") + "?" + "&".join(f"{k}={v}" for k, v in query.items())


def tree_of(client: Client, **query: object) -> Any:
    return client.get(tree_url(**query)).context["tree"]


def outline(branches: Any) -> list[Any]:
    """Texts, nested as the goals are."""
    return [(branch.text, outline(branch.children)) if branch.children else branch.text for branch in branches]


def do(client: Client, goal: Goal, action: str, **data: Any) -> Any:
    return client.post(page_url("goal", goal.pk), {"action": action, **data}, follow=True)


def status_of(goal: Goal) -> str:
    row = Goal.objects.get(pk=goal.pk)
    return str(row.status)


@pytest.fixture
def house(owner: Owner) -> dict[str, Goal]:
    """A house needs walls and a roof, the roof waits for the walls."""
    house = add(owner, "build a house", priority=5)
    walls = add(owner, "raise walls", parent_id=house.pk, priority=2)
    roof = add(owner, "put on a roof", parent_id=house.pk, priority=3, blocked_by=[walls.pk])
    return {"house": house, "walls": walls, "roof": roof}


def test_goals_are_shown_as_trees_the_most_pressing_first(staff: Client, owner: Owner, house: Any) -> None:
    soon, later = datetime.now(UTC) + timedelta(days=1), datetime.now(UTC) + timedelta(days=9)
    for text, deadline in (("paint", None), ("weed", later), ("mow", soon)):
        add(owner, text, priority=1, deadline=deadline)

    tree = tree_of(staff)

    assert outline(tree.branches) == [("build a house", ["put on a roof", "raise walls"]), "mow", "weed", "paint"]


def test_the_goal_tree_names_blocking_goals(staff: Client, house: Any) -> None:
    page = shown(staff.get(tree_url()))

    assert "blocked by" in page
    assert page.count("raise walls") == 2


def test_closed_and_archived_goals_are_shown_on_demand(staff: Client, account: Account, house: Any) -> None:
    do(staff, house["house"], "complete")
    choose(staff, list_url("goal"), "archive", house["walls"].pk)

    trees = [outline(tree_of(staff, account=account.id, show=show).branches) for show in ("open", "closed", "archived")]

    assert trees[0] == ["put on a roof"]
    assert trees[1] == [("build a house", ["put on a roof"])]
    assert trees[2] == [("build a house", ["put on a roof", "raise walls"])]
    assert "part of" in shown(staff.get(tree_url()))


def test_trees_of_one_account_alone_are_shown(staff: Client, stranger: Account, house: Any) -> None:
    assert tree_of(staff, account=stranger.id).branches == []


@pytest.mark.parametrize(
    "query", [{"account": "nonsense"}, {"show": "x"}, {"p": "-1"}, {"p": "99999"}, {"p": "x" * 99}]
)
def test_nonsense_in_the_address_is_no_error(staff: Client, house: Any, query: dict[str, str]) -> None:
    assert staff.get(tree_url(**query)).status_code == 200


def test_there_are_no_trees_without_accounts(staff: Client) -> None:
    assert "There are no open goals" in shown(staff.get(tree_url()))


def test_trees_come_in_pages(staff: Client, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goal_trees, "PAGE_ROOTS", 2)
    goals = [add(owner, f"goal {number}") for number in range(3)]
    add(owner, "below", parent_id=goals[2].pk)

    first, second = tree_of(staff), tree_of(staff, p=1)

    assert (outline(first.branches), first.has_more) == (["goal 0", "goal 1"], True)
    assert (outline(second.branches), second.has_more) == ([("goal 2", ["below"])], False)


def test_a_page_shows_a_limited_number_of_goals(staff: Client, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goal_trees, "MAX_GOALS", 3)
    top = add(owner, "top")
    for number in range(5):
        add(owner, f"part {number}", parent_id=top.pk)

    tree = tree_of(staff)

    assert (len(tree.branches[0].children), tree.is_cut) == (2, True)
    assert "more goals below" in shown(staff.get(tree_url()))


def test_trees_cost_as_many_queries_for_many_goals_as_for_few(staff: Client, owner: Owner, house: Any) -> None:
    few = queries_of(staff, tree_url())
    above: UUID = house["walls"].pk
    for number in range(12):
        above = add(owner, f"deeper {number}", parent_id=above, blocked_by=[house["walls"].pk]).pk

    assert queries_of(staff, tree_url()) == few <= 7


def test_completing_a_goal_unblocks_goals_that_waited_for_it(staff: Client, house: Any) -> None:
    response = do(staff, house["walls"], "complete", result="They stand.")

    row = Goal.objects.get(pk=house["walls"].pk)
    assert (row.status, row.result, status_of(house["roof"])) == ("completed", "They stand.", "active")
    assert "Goals that are no longer blocked: 1." in shown(response)
    assert AuditEntry.objects.filter(actor="staff:chief", operation="complete").exists()


def test_a_blocked_goal_is_completed_only_with_the_box_ticked(staff: Client, house: Any) -> None:
    refused = do(staff, house["roof"], "complete")
    before = status_of(house["roof"])
    do(staff, house["roof"], "complete", force="on")

    assert "The goal waits for goals that are not completed" in shown(refused)
    assert (before, status_of(house["roof"])) == ("blocked", "completed")


def test_the_goal_tree_names_abandoned_blockers(staff: Client, house: Any) -> None:
    do(staff, house["walls"], "abandon")

    assert "raise walls</bdi></a> (abandoned)" in shown(staff.get(tree_url()))


def test_a_goal_is_abandoned(staff: Client, house: Any) -> None:
    do(staff, house["house"], "abandon", result="Too dear.")

    assert status_of(house["house"]) == "abandoned"
    assert "The goal is closed: abandoned" in shown(staff.get(page_url("goal", house["house"].pk)))


def test_a_goal_is_blocked_and_unblocked(staff: Client, owner: Owner, house: Any) -> None:
    permit = add(owner, "get a permit")

    do(staff, house["house"], "block", by=permit.pk)
    blocked = status_of(house["house"])
    do(staff, house["house"], "unblock", by=permit.pk)

    assert (blocked, status_of(house["house"])) == ("blocked", "active")


def test_an_invalid_blocking_goal_is_refused_with_a_message(staff: Client, house: Any) -> None:
    cycle = do(staff, house["walls"], "block", by=house["roof"].pk)
    nonsense = do(staff, house["walls"], "block", by="that one")

    assert "close a cycle" in shown(cycle)
    assert "that one" in shown(nonsense)
    assert status_of(house["walls"]) == "active"


def test_a_goal_is_corrected_except_for_its_status(staff: Client, house: Any) -> None:
    url = page_url("goal", house["house"].pk)
    values = form_values(staff.get(url)) | {"text": "build a hut", "priority": 9, "status": "completed"}

    staff.post(url, values | {"deadline_0": "2026-12-24", "deadline_1": "12:00:00"})

    row = Goal.objects.get(pk=house["house"].pk)
    assert (row.text, row.priority, row.status, row.version) == ("build a hut", 9, "active", 2)
    assert row.deadline == datetime(2026, 12, 24, 12, tzinfo=UTC)


def test_deleting_a_goal_unblocks_goals_that_waited_for_it(staff: Client, house: Any) -> None:
    staff.post(page_url("goal", house["walls"].pk, "delete"), {"post": "yes"})

    assert status_of(house["roof"]) == "active"
    assert not Goal.objects.filter(pk=house["walls"].pk).exists()


def test_deleting_the_blocking_links_of_a_goal_unblocks_it(staff: Client, house: Any) -> None:
    for link in Link.objects.filter(source_id=house["roof"].pk):
        staff.post(page_url("link", link.pk, "delete"), {"post": "yes"})

    assert not Link.objects.filter(source_id=house["roof"].pk).exists()
    assert status_of(house["roof"]) == "active"


@pytest.mark.parametrize("away", ["archive", "quarantine", "complete", "expire"])
def test_links_of_archived_quarantined_completed_or_expired_goals_are_deleted(
    staff: Client, house: Any, away: str
) -> None:
    if away == "expire":
        Memory.objects.filter(pk=house["roof"].pk).update(expires_at=datetime.now(UTC) - timedelta(days=1))
    elif away == "complete":
        do(staff, house["roof"], away, force="on")
    else:
        choose(staff, list_url("goal"), away, house["roof"].pk)

    links = Link.objects.filter(source_id=house["roof"].pk).values_list("id", flat=True)
    choose(staff, list_url("link"), "delete_selected", *links, post="yes")

    assert not Link.objects.filter(source_id=house["roof"].pk).exists()
    assert status_of(house["roof"]) == ("completed" if away == "complete" else "active")


def test_goals_cannot_be_linked_on_the_generic_link_page(staff: Client, house: Any) -> None:
    ends = {"source_memory": house["house"].pk, "target_memory": house["walls"].pk}

    response = staff.post(add_url("link"), {**ends, "type": "BLOCKED_BY", "weight": 1, "properties": "{}"})

    assert "the pages of goals" in shown(response)
    assert status_of(house["house"]) == "active"


def test_an_archived_goal_is_deleted_as_well(staff: Client, house: Any) -> None:
    choose(staff, list_url("goal"), "archive", house["walls"].pk)

    choose(staff, list_url("goal"), "delete_selected", house["walls"].pk, post="yes")

    assert not Goal.objects.filter(pk=house["walls"].pk).exists()


def test_deleting_an_expired_goal_unblocks_goals_that_waited_for_it(staff: Client, house: Any) -> None:
    Memory.objects.filter(pk=house["walls"].pk).update(expires_at=datetime.now(UTC) - timedelta(days=1))

    choose(staff, list_url("goal"), "delete_selected", house["walls"].pk, post="yes")

    assert not Goal.objects.filter(pk=house["walls"].pk).exists()
    assert status_of(house["roof"]) == "active"


def test_a_page_shows_the_parent_and_the_blocked_goals(staff: Client, house: Any) -> None:
    page = shown(staff.get(page_url("goal", house["walls"].pk)))

    assert "Parent" in page
    assert "Blocks" in page


def test_a_page_costs_as_many_queries_for_many_goals_as_for_few(staff: Client, owner: Owner, house: Any) -> None:
    few = queries_of(staff, page_url("goal", house["house"].pk))

    for number in range(9):
        add(owner, f"part {number}", parent_id=house["house"].pk)

    assert queries_of(staff, page_url("goal", house["house"].pk)) == few <= 13


def test_whatever_a_goal_says_is_shown_as_text(staff: Client, owner: Owner) -> None:
    top = add(Owner(account_id=owner.account_id, user_id=HOSTILE[:90]), HOSTILE)
    add(Owner(account_id=owner.account_id, user_id=HOSTILE[:90]), HOSTILE, parent_id=top.pk, blocked_by=[top.pk])

    for url in (list_url("goal"), page_url("goal", top.pk), tree_url()):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_the_view_permission_alone_does_not_allow_completing_a_goal(newcomer: Client, house: Any) -> None:
    assert newcomer.get(tree_url()).status_code == 403
    allow("newcomer", "view_goal")

    assert newcomer.get(tree_url()).status_code == 200
    assert do(newcomer, house["house"], "complete").status_code == 403
    assert status_of(house["house"]) == "active"
