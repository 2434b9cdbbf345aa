"""HTTP: changing, closing and deleting goals."""

from typing import Any
from uuid import uuid4

import pytest

from memory.models import Goal, Link
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of
from tests.memory.goal_requests import ACTING, NOBODY, TEXT, act, add, added
from tests.memory.goal_requests import _embedder as _embedder

pytestmark = pytest.mark.django_db


def test_a_change_with_the_values_a_goal_already_has_adds_no_version(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
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
def test_an_invalid_change_is_refused(api: ServiceClient, change: dict[str, Any], status: int) -> None:
    goal = added(api)

    answer = api.patch(f"/goals/{goal}", {**ACTING, **change})

    assert answer.status_code == status
    assert Goal.objects.get().version == 1


def test_a_cycle_of_goals_is_refused_with_a_clear_message(api: ServiceClient) -> None:
    root = added(api)
    child = added(api, parent=root)
    waiter = added(api, blocked_by=[root])

    below = api.patch(f"/goals/{root}", {**ACTING, "parent": child})
    itself = api.patch(f"/goals/{root}", {**ACTING, "parent": root})
    waiting = act(api, root, "block", by=waiter)
    alone = act(api, root, "block", by=root)

    assert {answer.status_code for answer in (below, itself, waiting, alone)} == {422}
    message = "This link would close a cycle: a goal would be a subgoal of itself."
    assert below.json()["detail"] == itself.json()["detail"] == message
    assert waiting.json()["detail"] == "This link would close a cycle: a goal would wait for itself."
    assert alone.json()["detail"] == "A goal cannot wait for itself."
    assert Link.objects.count() == 2


def test_completing_a_goal_unblocks_those_that_waited_for_it(api: ServiceClient) -> None:
    blocker = added(api)
    waiter = added(api, blocked_by=[blocker])

    done = act(api, blocker, "complete", result="Three holes.")

    said = {"status": "completed", "result": "Three holes.", "unblocked": [waiter], "version": 2}
    assert (done.status_code, done.headers["ETag"]) == (200, '"2"')
    assert done.json() | said == done.json()
    assert done.json()["completed_at"] is not None
    assert api.get(f"/goals/{waiter}").json()["status"] == "active"


def test_a_blocked_goal_is_completed_only_with_force(api: ServiceClient) -> None:
    blocker = added(api)
    goal = added(api, blocked_by=[blocker])
    abandoned = act(api, blocker, "complete", status="abandoned").json()

    refused = act(api, goal, "complete")
    forced = act(api, goal, "complete", force=True)

    assert (abandoned["unblocked"], refused.status_code, refused.json()["code"]) == ([], 409, "conflict")
    assert f"{blocker} (abandoned)" in refused.json()["detail"]
    assert (forced.status_code, forced.json()["status"]) == (200, "completed")


def test_a_goal_is_closed_once_and_a_repeated_request_changes_nothing(api: ServiceClient) -> None:
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
        ("complete", {"force": "yes"}),
        ("complete", {"result": "x" * 100_001}),
        ("block", {}),
        ("block", {"by": "x"}),
        ("unblock", {"by": None}),
    ],
    ids=lambda given: str(given)[:30],
)
def test_an_invalid_progress_request_is_refused(api: ServiceClient, what: str, fields: dict[str, Any]) -> None:
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


def test_a_deleted_goal_is_not_found_and_blocks_no_other_goal(api: ServiceClient) -> None:
    goal = added(api)
    waiter, child = added(api, blocked_by=[goal]), added(api, parent=goal)

    assert api.delete(f"/goals/{goal}?agent_id=planner").status_code == 204

    assert api.get(f"/goals/{goal}").status_code == 404
    assert api.get(f"/goals/{waiter}").json()["status"] == "active"
    assert api.get(f"/goals/{child}").json()["parent_id"] is None


def test_requests_with_a_stale_version_are_refused_and_with_the_current_one_accepted(api: ServiceClient) -> None:
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


def test_a_request_repeated_with_its_idempotency_key_adds_one_goal(api: ServiceClient) -> None:
    body = {**ACTING, "description": TEXT}

    first, again = (api.post("/goals", body, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert first.content == again.content
    assert Goal.objects.count() == 1


def test_a_vector_sent_by_the_client_is_stored(api: ServiceClient, embedding_server: EmbeddingServer) -> None:
    own = {"embedding": vector_of("anything").tolist(), "embedding_model": MODEL}

    goal = add(api, **own)
    changed = api.patch(f"/goals/{goal.json()['id']}", {**ACTING, "description": "Another.", **own})

    assert goal.json()["embedding"] == changed.json()["embedding"] == "stored"
    assert embedding_server.texts == []
    assert add(api, embedding=[0.5] * (WIDTH + 1), embedding_model=MODEL).status_code == 422
