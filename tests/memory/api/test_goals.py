"""`/goals`: add, list, read, change, complete, block; hidden from other agents and accounts."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Goal, Link
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of

NOBODY = UUID(int=7)
"""The id of nothing, the same in every process that collects these tests."""

pytestmark = pytest.mark.django_db

ACTING = {"agent_id": "planner"}
TEXT = "Plant the roses."


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


def add(api: ServiceClient, description: str = TEXT, **fields: Any) -> Any:
    return api.post("/goals", {**ACTING, "description": description, **fields})


def added(api: ServiceClient, description: str = TEXT, **fields: Any) -> str:
    return str(add(api, description, **fields).json()["id"])


def act(api: ServiceClient, goal: str, what: str, **fields: Any) -> Any:
    headers = {name: fields.pop(name) for name in tuple(fields) if name.startswith("HTTP_")}
    return api.post(f"/goals/{goal}/{what}", {**ACTING, **fields}, **headers)


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
def test_bad_shapes_are_refused_and_nothing_stored(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = add(api, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Goal.objects.exists()


def test_a_goal_is_read_with_those_around_it(api: ServiceClient) -> None:
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


def test_a_cursor_of_another_order_is_refused(api: ServiceClient) -> None:
    for _ in range(3):
        add(api)
    cursor = api.get("/goals?ordering=newest&page_size=1").json()["next"].partition("cursor=")[2].partition("&")[0]

    assert api.get(f"/goals?cursor={cursor}").status_code == 400


def test_a_list_is_filtered(api: ServiceClient) -> None:
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


def test_a_list_has_the_channel_that_is_asked_for_and_the_global_one(api: ServiceClient) -> None:
    add(api, "tiles", channel="roof")
    add(api, "everywhere")

    assert set(listed(api, "&channel=roof")) == {"tiles", "everywhere"}
    assert listed(api) == ["everywhere"]


def test_a_users_goals_are_for_all_agents_that_serve_the_user(api: ServiceClient) -> None:
    goal = added(api, user_id="ana")
    named = {"agent_id": "colleague", "user_id": "ana"}

    assert api.get(f"/goals/{goal}?agent_id=colleague").status_code == 404
    assert api.get(f"/goals/{goal}?agent_id=colleague&user_id=ana").status_code == 200
    assert [len(api.get(f"/goals?agent_id=colleague{who}").json()["results"]) for who in ("&user_id=ana", "")] == [1, 0]
    assert api.post(f"/goals/{goal}/complete", named).json()["status"] == "completed"


def test_another_agents_goal_that_is_no_users_is_only_read(api: ServiceClient) -> None:
    goal = added(api)
    named = {"agent_id": "colleague", "user_id": "ana"}

    assert api.get(f"/goals/{goal}?agent_id=colleague&user_id=ana").status_code == 200
    assert api.patch(f"/goals/{goal}", {**named, "priority": 2}).status_code == 403
    assert api.post(f"/goals/{goal}/complete", named).status_code == 403
    assert api.delete(f"/goals/{goal}?agent_id=colleague&user_id=ana").status_code == 403


def test_a_goal_is_changed_where_it_says_another_thing(api: ServiceClient, embedding_server: EmbeddingServer) -> None:
    goal, parent = added(api), added(api, "garden")
    body = {**ACTING, "description": "Plant tulips.", "priority": 2, "parent": parent, "deadline": None}

    changed, same = (api.patch(f"/goals/{goal}", body) for _ in range(2))

    assert (changed.status_code, changed.headers["ETag"]) == (200, '"2"')
    assert changed.json() | {"description": "Plant tulips.", "priority": 2, "parent_id": parent} == changed.json()
    assert same.json() == changed.json()
    assert api.patch(f"/goals/{goal}", {**ACTING, "parent": None}).json()["parent_id"] is None
    assert "Plant tulips." in embedding_server.texts


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"description": ""}, 400),
        ({"description": None}, 400),
        ({"priority": None}, 400),
        ({"status": "completed"}, 400),
        ({"embedding": [1.0]}, 400),
        ({"parent": str(NOBODY)}, 422),
    ],
    ids=str,
)
def test_a_change_that_cannot_be_is_refused(api: ServiceClient, change: dict[str, Any], status: int) -> None:
    goal = added(api)

    answer = api.patch(f"/goals/{goal}", {**ACTING, **change})

    assert answer.status_code == status
    assert Goal.objects.get().version == 1


def test_rings_are_refused_in_a_clear_sentence(api: ServiceClient) -> None:
    root = added(api)
    child = added(api, parent=root)
    waiter = added(api, blocked_by=[root])

    below = api.patch(f"/goals/{root}", {**ACTING, "parent": child})
    itself = api.patch(f"/goals/{root}", {**ACTING, "parent": root})
    waiting = act(api, root, "block", by=waiter)
    alone = act(api, root, "block", by=root)

    assert {answer.status_code for answer in (below, itself, waiting, alone)} == {422}
    told = "this link would close a cycle: a goal would be a subgoal of itself"
    assert below.json()["detail"] == itself.json()["detail"] == told
    assert waiting.json()["detail"] == "this link would close a cycle: a goal would wait for itself"
    assert alone.json()["detail"] == "a goal cannot wait for itself"
    assert Link.objects.count() == 2


def test_completing_lets_go_on_what_waited(api: ServiceClient) -> None:
    blocker = added(api)
    waiter = added(api, blocked_by=[blocker])

    done = act(api, blocker, "complete", result="Three holes.")

    said = {"status": "completed", "result": "Three holes.", "unblocked": [waiter], "version": 2}
    assert (done.status_code, done.headers["ETag"]) == (200, '"2"')
    assert done.json() | said == done.json()
    assert done.json()["completed_at"] is not None
    assert api.get(f"/goals/{waiter}").json()["status"] == "active"


def test_a_goal_is_closed_once_and_the_same_again_is_the_same(api: ServiceClient) -> None:
    goal = added(api)
    first = act(api, goal, "complete", status="abandoned", result="It rained.")

    again = act(api, goal, "complete", status="abandoned", result="It rained.")
    otherwise = act(api, goal, "complete", status="completed", result="It rained.")

    assert (again.status_code, again.json()) == (200, first.json())
    assert (otherwise.status_code, otherwise.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("complete", {"status": "active"}),
        ("complete", {"status": None}),
        ("complete", {"result": 1}),
        ("complete", {"result": "x" * 100_001}),
        ("block", {}),
        ("block", {"by": "x"}),
        ("unblock", {"by": None}),
    ],
    ids=lambda given: str(given)[:30],
)
def test_what_is_no_progress_is_refused(api: ServiceClient, what: str, fields: dict[str, Any]) -> None:
    goal = added(api)

    assert act(api, goal, what, **fields).status_code == 400
    assert Goal.objects.get().version == 1


def test_a_goal_is_blocked_and_unblocked(api: ServiceClient) -> None:
    goal, blocker = added(api), added(api)

    blocked = act(api, goal, "block", by=blocker)
    again = act(api, goal, "block", by=blocker)
    free = act(api, goal, "unblock", by=blocker)

    assert [answer.json()["status"] for answer in (blocked, again, free)] == ["blocked", "blocked", "active"]
    assert [answer.headers["ETag"] for answer in (blocked, again, free)] == ['"2"', '"2"', '"3"']
    assert act(api, goal, "unblock", by=str(uuid4())).headers["ETag"] == '"3"'


def test_closed_goals_neither_block_nor_are_blocked(api: ServiceClient) -> None:
    goal, closed = added(api), added(api)
    act(api, closed, "complete")

    assert act(api, goal, "block", by=closed).status_code == 422
    assert act(api, closed, "block", by=goal).status_code == 409
    assert add(api, blocked_by=[closed]).status_code == 422
    assert act(api, goal, "block", by=str(uuid4())).status_code == 422


def test_a_deleted_goal_is_gone_and_holds_nothing_up(api: ServiceClient) -> None:
    goal = added(api)
    waiter, child = added(api, blocked_by=[goal]), added(api, parent=goal)

    assert api.delete(f"/goals/{goal}?agent_id=planner").status_code == 204

    assert api.get(f"/goals/{goal}").status_code == 404
    assert api.get(f"/goals/{waiter}").json()["status"] == "active"
    assert api.get(f"/goals/{child}").json()["parent_id"] is None


def test_a_stale_version_changes_nothing_and_the_current_one_does(api: ServiceClient) -> None:
    goal, blocker = added(api), added(api)
    stale: dict[str, Any] = {"HTTP_IF_MATCH": '"7"'}
    current: dict[str, Any] = {"HTTP_IF_MATCH": '"1"'}

    refused = [
        api.patch(f"/goals/{goal}", {**ACTING, "priority": 1}, **stale),
        act(api, goal, "complete", **stale),
        act(api, goal, "block", by=blocker, **stale),
        act(api, goal, "unblock", by=blocker, **stale),
        api.delete(f"/goals/{goal}", **stale),
    ]

    assert {answer.status_code for answer in refused} == {412}
    assert api.patch(f"/goals/{goal}", {**ACTING, "priority": 1}, **current).status_code == 200
    assert act(api, goal, "complete", **current).status_code == 412


def test_the_same_request_sent_twice_adds_one_goal(api: ServiceClient) -> None:
    body = {**ACTING, "description": TEXT}

    first, again = (api.post("/goals", body, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert first.content == again.content
    assert Goal.objects.count() == 1


def test_a_vector_of_ones_own_is_stored(api: ServiceClient, embedding_server: EmbeddingServer) -> None:
    own = {"embedding": vector_of("anything").tolist(), "embedding_model": MODEL}

    goal = add(api, **own)
    changed = api.patch(f"/goals/{goal.json()['id']}", {**ACTING, "description": "Another.", **own})

    assert goal.json()["embedding"] == changed.json()["embedding"] == "stored"
    assert embedding_server.texts == []
    assert add(api, embedding=[0.5] * (WIDTH + 1), embedding_model=MODEL).status_code == 422


def test_a_dead_embedder_stores_it_pending(api: ServiceClient, embedding_server: EmbeddingServer) -> None:
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


def test_a_key_bound_to_an_agent_acts_as_no_other(bound_api: ServiceClient) -> None:
    assert add(bound_api).status_code == 403
    assert bound_api.post("/goals", {"description": TEXT}).json()["agent_id"] == "assistant"


def test_a_key_for_reading_adds_and_completes_nothing(
    account: Account, api: ServiceClient, client_for: Callable[[str], ServiceClient]
) -> None:
    goal, reader = added(api), client_for(issue_key(account, scopes=READ_ONLY).secret)

    assert listed(reader) == [TEXT]
    assert {add(reader).status_code, act(reader, goal, "complete").status_code} == {403}


def test_reads_cost_as_many_queries_as_stated(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = added(api, parent=added(api))

    with django_assert_num_queries(2):  # the key, and the page
        api.get("/goals?agent_id=planner")
    with django_assert_num_queries(4):  # the key, the goal, its links, those around it
        api.get(f"/goals/{goal}?agent_id=planner")
