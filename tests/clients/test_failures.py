"""The Python client when the service or the way to it fails."""

import asyncio
import json
import pickle
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx2
import pytest
from agent_memory_client import (
    AgentMemoryError,
    AsyncClient,
    BadRequestError,
    Client,
    ConflictError,
    ServerError,
    ServiceConnectionError,
    ServiceTimeoutError,
    UnavailableError,
)
from agent_memory_client.models import GoalWithRelated
from agent_memory_client.retries import read_retry_after

from tests.clients.scripted_server import DROP, HANG, ScriptedServer, answer

UNAVAILABLE = answer(503, b'{"code": "unavailable", "request_id": "r-1", "detail": "PostgreSQL is down."}')
GOAL = answer(201, b'{"id": "g-1", "description": "book", "status": "active", "newer_field": {"a": 1}}')


@pytest.mark.parametrize("failure", [answer(429), answer(502), UNAVAILABLE, answer(504), DROP])
def test_a_request_is_sent_again_with_the_same_key_after_a_temporary_failure(failure: bytes) -> None:
    with ScriptedServer(failure, GOAL) as server, Client(server.url, "key") as client:
        goal = client.add_goal("book")

        first, second = server.received
        assert goal.id == "g-1"
        assert first == second
        assert len(first.headers["idempotency-key"]) == 36


@pytest.mark.slow
def test_the_last_of_three_failures_is_raised_with_what_the_service_said() -> None:
    with ScriptedServer(UNAVAILABLE, UNAVAILABLE, UNAVAILABLE) as server, Client(server.url, "key") as client:
        with pytest.raises(UnavailableError, match="503 unavailable: PostgreSQL is down") as caught:
            client.add_goal("book")

        assert (caught.value.code, caught.value.request_id, len(server.received)) == ("unavailable", "r-1", 3)


def test_retry_after_is_waited_for() -> None:
    with ScriptedServer(answer(429, Retry_After="1"), GOAL) as server, Client(server.url, "key") as client:
        begun = time.monotonic()
        client.add_goal("book")

        assert time.monotonic() - begun >= 1.0


def test_a_retry_after_of_minutes_is_left_to_the_caller() -> None:
    with ScriptedServer(answer(503, Retry_After="600")) as server, Client(server.url, "key") as client:
        with pytest.raises(UnavailableError):
            client.add_goal("book")

        assert len(server.received) == 1


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 0.0), ("soon", 0.0), ("-3", 0.0), ("2.5", 2.5), (formatdate(0, usegmt=True), 0.0)]
)
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float) -> None:
    assert read_retry_after(httpx2.Response(503, headers={"Retry-After": text})) == seconds


def test_a_write_that_is_still_running_is_asked_for_again() -> None:
    running = answer(409, b'{"code": "request_in_progress"}')

    with ScriptedServer(running, GOAL) as server, Client(server.url, "key") as client:
        assert client.add_goal("book").id == "g-1"


@pytest.mark.parametrize(
    ("refusal", "error"),
    [(answer(400, b'{"errors": {"description": ["x"]}}'), BadRequestError), (answer(409), ConflictError)],
)
def test_what_would_fail_again_is_not_sent_again(refusal: bytes, error: type[Exception]) -> None:
    with ScriptedServer(refusal) as server, Client(server.url, "key") as client:
        with pytest.raises(error):
            client.add_goal("book")

        assert len(server.received) == 1


def test_an_answer_of_a_proxy_that_is_no_problem_document_is_an_error_too() -> None:
    with ScriptedServer(answer(500, b"<html>")) as server, Client(server.url, "key") as client:
        with pytest.raises(ServerError) as caught:
            client.add_goal("book")

        assert (caught.value.status, caught.value.code) == (500, "")
        assert "that of a proxy" in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b'"ok"'])
def test_a_success_that_is_no_answer_of_the_service_is_an_error(body: bytes) -> None:
    with ScriptedServer(answer(200, body), answer(200, body)) as server, Client(server.url, "key") as client:
        with pytest.raises(AgentMemoryError, match="is no answer of the service"):
            client.recall("x")
        with pytest.raises(AgentMemoryError, match="is no answer of the service"):
            list(client.goals())


def test_a_service_that_hangs_is_a_timeout() -> None:
    with ScriptedServer(HANG) as server:
        client = Client(server.url, "key", timeout=0.2, max_retries=0)
        with client, pytest.raises(ServiceTimeoutError):
            client.add_goal("book")


def test_a_service_that_is_not_there_is_a_connection_error() -> None:
    with ScriptedServer() as server:
        url = server.url

    with Client(url, "key", max_retries=0) as client, pytest.raises(ServiceConnectionError):
        client.add_goal("book")


def test_a_stream_from_an_iterator_is_sent_once() -> None:
    turns = ({"role": "user", "content": str(number)} for number in range(3))

    with ScriptedServer(UNAVAILABLE) as server, Client(server.url, "key") as client:
        with pytest.raises(UnavailableError):
            client.stream_turns("trip", turns)

        assert (len(server.received), "idempotency-key" in server.received[0].headers) == (1, False)


def test_a_stream_from_a_list_is_sent_again_in_full() -> None:
    turns = [{"role": "user", "content": str(number)} for number in range(3)]

    with ScriptedServer(UNAVAILABLE, answer(201, b'{"turns": []}')) as server, Client(server.url, "key") as client:
        client.stream_turns("trip", turns)

        first, second = server.received
        assert [request.body.count(b"\n") for request in server.received] == [3, 3]
        assert len(first.headers["idempotency-key"]) == 36
        assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_a_stream_waits_longer_for_its_answer_than_other_requests() -> None:
    waits = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        request.read()
        waits.append(request.extensions["timeout"]["read"])
        return httpx2.Response(201, json={"turns": []})

    http = httpx2.Client(transport=httpx2.MockTransport(respond), timeout=30.0)
    with Client("http://service", "key", http_client=http) as client:
        client.stream_turns("trip", [{"role": "user", "content": "hello"}])
        client.add_turns("trip", [{"role": "user", "content": "hello"}])

    assert waits == [600.0, 30.0]


def test_the_async_client_keeps_the_key_over_retries_too() -> None:
    async def add_goal(url: str) -> str:
        async with AsyncClient(url, "key") as client:
            goal = await client.add_goal("book")
            return goal.id

    with ScriptedServer(DROP, UNAVAILABLE, GOAL) as server:
        assert asyncio.run(add_goal(server.url)) == "g-1"

        assert len({request.headers["idempotency-key"] for request in server.received}) == 1


def test_a_call_takes_the_key_and_the_timeout_of_the_caller() -> None:
    with ScriptedServer(UNAVAILABLE, GOAL, HANG) as server, Client(server.url, "key", max_retries=1) as client:
        client.add_goal("book", idempotency_key="job-7", timeout=20)
        assert [each.headers["idempotency-key"] for each in server.received] == ["job-7", "job-7"]
        assert json.loads(server.received[0].body) == {"description": "book"}

        with Client(server.url, "key", max_retries=0) as hasty, pytest.raises(ServiceTimeoutError):
            hasty.recall("figs", timeout=0.2)


def test_each_call_has_a_key_of_its_own() -> None:
    with ScriptedServer(GOAL, GOAL) as server, Client(server.url, "key") as client:
        client.add_goal("book")
        client.add_goal("book")

        assert len({request.headers["idempotency-key"] for request in server.received}) == 2


def saved_body(change: Callable[[GoalWithRelated], object]) -> dict[str, Any]:
    """Return what `save()` sends of a goal after a change."""
    held = answer(
        200, b'{"id": "g-1", "priority": 1, "metadata": {"a": {"b": [1]}}, "blocked_by": ["g-2"]}', ETag='"1"'
    )
    with ScriptedServer(held, held, held) as server, Client(server.url, "key") as client:
        goal = client.get_goal("g-1")
        change(goal)
        goal.save()
        goal.save()

        assert server.received[2].body in (b"{}", b"")
        return dict(json.loads(server.received[1].body))


def test_what_was_changed_inside_a_field_is_saved() -> None:
    assert saved_body(lambda goal: goal.metadata["a"]["b"].append(2)) == {"metadata": {"a": {"b": [1, 2]}}}
    assert saved_body(lambda goal: goal["blocked_by"].append("g-3")) == {"blocked_by": ["g-2", "g-3"]}


def test_a_field_that_was_set_and_then_changed_inside_is_saved_as_it_is() -> None:
    def set_and_append(goal: GoalWithRelated) -> None:
        goal.blocked_by = []
        goal["blocked_by"].append("g-3")

    assert saved_body(set_and_append) == {"blocked_by": ["g-3"]}


def test_what_was_only_read_is_not_saved() -> None:
    assert saved_body(lambda goal: (goal.metadata, goal["blocked_by"])) == {}
    assert saved_body(lambda goal: setattr(goal, "priority", 2)) == {"priority": 2}


def test_a_result_is_pickled_without_its_connections() -> None:
    with ScriptedServer(GOAL) as server, Client(server.url, "key") as client:
        goal = client.add_goal("book")

    same = pickle.loads(pickle.dumps(goal))

    assert (same, same.id, type(same)) == (goal, "g-1", type(goal))
    with pytest.raises(TypeError, match="get_"):
        same.save()


def test_fields_that_are_newer_than_the_client_are_kept() -> None:
    with ScriptedServer(GOAL) as server, Client(server.url, "key") as client:
        goal = client.add_goal("book")

        assert (goal.newer_field, goal["newer_field"], "newer_field" in goal) == ({"a": 1}, {"a": 1}, True)
        with pytest.raises(AttributeError, match=r"no field 'heading'\. It has: id"):
            _ = goal.heading
