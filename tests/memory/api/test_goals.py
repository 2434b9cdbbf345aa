"""`/goals`: add, list, read, change, complete, block; hidden from other agents and accounts."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Goal
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.goal_requests import NOBODY, TEXT, act, add, added
from tests.memory.goal_requests import _embedder as _embedder

pytestmark = pytest.mark.django_db


def listed(api: ServiceClient, query: str = "") -> list[str]:
    return [goal["description"] for goal in api.get(f"/goals?agent_id=planner{query}").json()["results"]]


def test_a_goal_is_added_and_read(api: ServiceClient) -> None:
    fields: dict[str, Any] = {
        "priority": 3,
        "deadline": "2030-05-04T12:00:00+02:00",
        "metadata": {"plot": 4},
        "channel": "garden",
    }

    answer = add(api, **fields, user_id="ana")
    read = api.get(f"/goals/{answer.json()['id']}?agent_id=planner")

    said = {"description": TEXT, "status": "active", "priority": 3, "metadata": {"plot": 4}, "channel": "garden"}
    said |= {"agent_id": "planner", "user_id": "ana", "deadline": "2030-05-04T10:00:00Z", "embedding": "stored"}
    said |= {"parent_id": None, "completed_at": None, "result": "", "version": 1}
    assert (answer.status_code, answer.headers["ETag"], read.headers["ETag"]) == (201, '"1"', '"1"')
    assert answer.json() | said == answer.json()
    around: dict[str, Any] = {"parent": None, "children": [], "blocked_by": [], "blocks": [], "truncated": False}
    assert read.json() == answer.json() | around


@pytest.mark.parametrize(
    "change",
    [
        {"description": ""},
        {"description": " \n"},
        {"description": "x" * 10_001},
        {"priority": "1"},
        {"priority": 1.5},
        {"priority": 10**10},
        {"deadline": "2030-05-04"},
        {"deadline": "2030-05-04T12:00:00"},
        {"parent": "x"},
        {"blocked_by": "x"},
        {"blocked_by": [None]},
        {"blocked_by": [str(NOBODY)] * 101},
        {"metadata": []},
        {"embedding": []},
        {"status": "completed"},
        {"surprise": 1},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = add(api, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Goal.objects.exists()


def test_a_goal_is_read_with_its_parent_children_and_blockers(api: ServiceClient) -> None:
    parent, blocker = added(api, "garden", priority=7), added(api, "dig")
    goal = added(api, parent=parent, blocked_by=[blocker])
    child, waiter = added(api, "first rose", parent=goal), added(api, "rest", blocked_by=[goal])

    read = api.get(f"/goals/{goal}?agent_id=planner").json()

    garden = {"id": parent, "description": "garden", "status": "active", "priority": 7, "deadline": None}
    assert (read["status"], read["parent_id"], read["parent"]) == ("blocked", parent, garden)
    assert [[other["id"] for other in read[name]] for name in ("children", "blocked_by", "blocks")] == [
        [child],
        [blocker],
        [waiter],
    ]


def test_open_goals_are_listed_by_priority_and_deadline(api: ServiceClient) -> None:
    add(api, "whenever", priority=1)
    add(api, "late", priority=1, deadline="2031-01-01T00:00:00Z")
    add(api, "soon", priority=1, deadline="2030-01-01T00:00:00Z")
    add(api, "most", priority=2)
    act(api, added(api, "done"), "complete")

    assert listed(api) == ["most", "soon", "late", "whenever"]
    assert listed(api, "&ordering=deadline") == ["soon", "late", "most", "whenever"]
    assert listed(api, "&ordering=newest") == ["most", "soon", "late", "whenever"]


@pytest.mark.parametrize("ordering", ["priority", "deadline", "newest"])
def test_pages_neither_skip_nor_repeat_with_and_without_deadlines(api: ServiceClient, ordering: str) -> None:
    for number in range(9):
        due = {"deadline": f"2030-01-0{1 + number % 3}T00:00:00Z"} if number % 2 else {}
        add(api, f"goal {number}", priority=number % 2, **due)
    url, seen, back = f"/goals?agent_id=planner&ordering={ordering}&page_size=2", [], None

    while url:
        page = api.get(url).json()
        seen += [goal["description"] for goal in page["results"]]
        back = page["previous"] or back
        url = page["next"] and page["next"].split("/api/v1", 1)[1]

    assert (len(seen), seen) == (9, listed(api, f"&ordering={ordering}"))
    assert back is not None
    before = api.get(back.split("/api/v1", 1)[1]).json()["results"]
    assert [goal["description"] for goal in before] == seen[6:8]


def test_a_cursor_of_another_ordering_is_refused(api: ServiceClient) -> None:
    for _ in range(3):
        add(api)
    cursor = api.get("/goals?ordering=newest&page_size=1").json()["next"].partition("cursor=")[2].partition("&")[0]

    assert api.get(f"/goals?cursor={cursor}").status_code == 400


def test_a_list_of_goals_is_filtered_by_every_parameter(api: ServiceClient) -> None:
    parent = added(api, "garden")
    waiting = added(api, "roses", parent=parent, blocked_by=[added(api, "dig", deadline="2020-01-01T00:00:00Z")])
    act(api, added(api, "dream", deadline="2020-01-01T00:00:00Z"), "complete", status="abandoned")
    add(api, "far off", deadline="2090-01-01T00:00:00Z")

    assert listed(api, "&status=blocked") == ["roses"]
    assert listed(api, "&status=abandoned") == ["dream"]
    assert len(listed(api, "&status=any")) == 5
    assert listed(api, "&overdue=true") == listed(api, "&overdue=true&status=any") == ["dig"]
    assert set(listed(api, "&overdue=false&status=any")) == {"garden", "roses", "dream", "far off"}
    assert listed(api, "&due_before=2050-01-01T00:00:00Z") == ["dig"]
    assert listed(api, f"&parent={parent}") == ["roses"]
    assert listed(api, f"&parent={waiting}") == []


@pytest.mark.parametrize(
    "query",
    ["status=done", "overdue=maybe", "due_before=today", "due_before=2030-01-01", "parent=x", "ordering=text", "x=1"],
)
def test_an_invalid_filter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/goals?{query}").status_code == 400


def test_a_list_contains_goals_of_the_requested_channel_and_the_global_one(api: ServiceClient) -> None:
    add(api, "tiles", channel="roof")
    add(api, "everywhere")

    assert set(listed(api, "&channel=roof")) == {"tiles", "everywhere"}
    assert listed(api) == ["everywhere"]


def test_a_users_goals_are_visible_to_every_agent_that_names_the_user(api: ServiceClient) -> None:
    goal = added(api, user_id="ana")
    named = {"agent_id": "colleague", "user_id": "ana"}

    assert api.get(f"/goals/{goal}?agent_id=colleague").status_code == 404
    assert api.get(f"/goals/{goal}?agent_id=colleague&user_id=ana").status_code == 200
    assert [len(api.get(f"/goals?agent_id=colleague{who}").json()["results"]) for who in ("&user_id=ana", "")] == [1, 0]
    assert api.post(f"/goals/{goal}/complete", named).json()["status"] == "completed"


def test_an_agent_can_only_read_a_goal_of_the_account(api: ServiceClient) -> None:
    goal = api.post("/goals", {"description": "Plant the roses."}).json()["id"]
    named = {"agent_id": "colleague", "user_id": "ana"}

    assert api.get(f"/goals/{goal}?agent_id=colleague&user_id=ana").status_code == 200
    assert api.patch(f"/goals/{goal}", {**named, "priority": 2}).status_code == 403
    assert api.post(f"/goals/{goal}/complete", named).status_code == 403
    assert api.delete(f"/goals/{goal}?agent_id=colleague&user_id=ana").status_code == 403


def test_a_goal_is_stored_as_pending_when_the_embedder_fails(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert add(api).json()["embedding"] == "pending"


def test_a_goal_is_hidden_from_other_agents_and_accounts(api: ServiceClient, stranger_api: ServiceClient) -> None:
    goal = added(api)
    other = {"agent_id": "outsider"}

    for refused in (
        api.get(f"/goals/{goal}?agent_id=outsider"),
        api.delete(f"/goals/{goal}?agent_id=outsider"),
        api.patch(f"/goals/{goal}", {**other, "priority": 1}),
        api.post(f"/goals/{goal}/complete", other),
        api.post(f"/goals/{goal}/block", {**other, "by": goal}),
        stranger_api.get(f"/goals/{goal}"),
        stranger_api.delete(f"/goals/{goal}"),
        stranger_api.patch(f"/goals/{goal}", {"priority": 1}),
        act(stranger_api, goal, "complete"),
    ):
        assert refused.status_code == 404

    assert stranger_api.get("/goals").json()["results"] == []
    assert api.get("/goals?agent_id=outsider").json()["results"] == []
    assert stranger_api.get(f"/goals?parent={goal}").json()["results"] == []
    assert add(stranger_api, parent=goal).status_code == add(stranger_api, blocked_by=[goal]).status_code == 422


def test_a_key_bound_to_an_agent_cannot_act_as_another_agent(bound_api: ServiceClient) -> None:
    assert add(bound_api).status_code == 403
    assert bound_api.post("/goals", {"description": TEXT}).json()["agent_id"] == "assistant"


def test_a_read_only_key_cannot_add_or_complete_goals(
    account: Account, api: ServiceClient, client_for: Callable[[str], ServiceClient]
) -> None:
    goal, reader = added(api), client_for(issue_key(account, scopes=READ_ONLY).secret)

    assert listed(reader) == [TEXT]
    assert {add(reader).status_code, act(reader, goal, "complete").status_code} == {403}


def test_reads_of_goals_use_a_fixed_number_of_queries(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = added(api, parent=added(api))

    with django_assert_num_queries(2):  # the key, and the page
        api.get("/goals?agent_id=planner")
    with django_assert_num_queries(4):  # the key, the goal, its links, those around it
        api.get(f"/goals/{goal}?agent_id=planner")
