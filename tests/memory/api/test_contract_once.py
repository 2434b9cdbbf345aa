"""Writes to Redis happen once, also where the answer of the first request was lost before it was recorded."""

from typing import Any

import pytest

from memory.models import IdempotentRequest
from tests.api_client import ServiceClient

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

NOTES = "/agents/ana/working-memory/notes"


def post(api: ServiceClient, path: str, body: dict[str, Any], key: str = "k1") -> Any:
    return api.post(path, body, HTTP_IDEMPOTENCY_KEY=key)


def repeat(api: ServiceClient, path: str, body: dict[str, Any]) -> tuple[Any, Any]:
    """Send a request twice, as if its process had died after the write."""
    first = post(api, path, body)
    IdempotentRequest.objects.all().delete()
    return first, post(api, path, body)


def test_an_append_is_done_once(api: ServiceClient) -> None:
    first, again = repeat(api, f"{NOTES}/append", {"value": "tea"})
    IdempotentRequest.objects.all().delete()

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["value"] == first.json()["value"] == ["tea"]
    assert post(api, f"{NOTES}/append", {"value": "tea"}, "k2").json()["value"] == ["tea", "tea"]
    assert post(api, f"{NOTES}/append", {"value": "milk"}, "k1").json()["value"] == ["tea", "tea", "milk"]


def test_an_append_without_a_key_is_done_each_time(api: ServiceClient) -> None:
    for _ in range(3):
        api.post(f"{NOTES}/append", {"value": "tea"})

    assert api.get(NOTES).json()["value"] == ["tea"] * 3


def test_a_repeated_append_to_a_value_that_was_removed_does_not_bring_it_back(api: ServiceClient) -> None:
    post(api, f"{NOTES}/append", {"value": "tea"})
    IdempotentRequest.objects.all().delete()
    api.delete(NOTES)

    assert post(api, f"{NOTES}/append", {"value": "tea"}).json()["value"] == ["tea"]
    assert api.get(NOTES).status_code == 404


def test_a_refused_append_is_done_under_the_same_key_once_it_is_possible(api: ServiceClient) -> None:
    api.put(NOTES, {"value": 3})
    refused = post(api, f"{NOTES}/append", {"value": "tea"})
    api.put(NOTES, {"value": []})

    assert (refused.status_code, post(api, f"{NOTES}/append", {"value": "tea"}).json()["value"]) == (422, ["tea"])


def test_a_thought_is_added_once(api: ServiceClient) -> None:
    first, again = repeat(api, "/conversations/c1/thoughts", {"agent_id": "ana", "thought": "tea"})

    assert (again.status_code, again.json()) == (201, first.json())
    assert len(api.get("/conversations/c1/thoughts?agent_id=ana").json()["thoughts"]) == 1


def test_a_mark_and_an_eviction_get_their_first_answer(api: ServiceClient) -> None:
    marked = repeat(api, "/ledger/c1/mark", {"item_key": "a", "value": "x"})
    IdempotentRequest.objects.all().delete()
    evicted = repeat(api, "/ledger/c1/evict", {"item_key": "a"})
    IdempotentRequest.objects.all().delete()
    late = post(api, "/ledger/c1/mark", {"item_key": "a", "value": "x"})

    assert [answer.json()["first"] for answer in (*marked, late)] == [True] * 3
    assert [answer.json()["evicted"] for answer in evicted] == [True] * 2
    assert api.get("/ledger/c1").json() == {}
