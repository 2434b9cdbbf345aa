"""Memories of many kinds take the time when they happened, so that a history can be imported with its dates."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Conversation, Fact, Memory, Strategy
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

THEN = "2021-03-04T05:06:07Z"
BODIES: dict[str, dict[str, Any]] = {
    "/facts": {"claim": "Ana lives in Porto."},
    "/goals": {"description": "Plant the roses."},
    "/episodic/store": {"conversation_id": "c1", "summary": "They planted roses."},
    "/strategies": {"description": "Water them at night."},
    "/artifacts": {"uri": "plans/garden.md"},
    "/entities": {"name": "Ana", "type": "person"},
}


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


def store(api: ServiceClient, route: str, **fields: Any) -> Any:
    return api.post(route, {"agent_id": "assistant"} | BODIES[route] | fields)


@pytest.mark.parametrize("route", BODIES)
def test_a_memory_is_stored_with_the_time_when_it_happened(api: ServiceClient, route: str) -> None:
    stored = store(api, route, event_time=THEN)

    assert stored.status_code == 201, stored.content
    assert stored.json()["first_seen" if route == "/entities" else "event_time"] == THEN
    [row] = Memory.objects.all()
    assert (row.event_time.year, row.created_at.year > 2021) == (2021, True)


@pytest.mark.parametrize("route", BODIES)
def test_a_time_in_the_future_or_without_a_zone_is_refused(api: ServiceClient, route: str) -> None:
    future = (timezone.now() + timedelta(hours=1)).isoformat()

    refused = [store(api, route, event_time=time).status_code for time in (future, THEN.rstrip("Z"), None)]

    assert refused == [400, 400, 400]
    assert not Memory.objects.exists()


def test_the_timeline_orders_imported_memories_by_their_times(api: ServiceClient) -> None:
    for route, year in zip(("/facts", "/goals", "/episodic/store"), (2022, 2020, 2021), strict=True):
        store(api, route, event_time=f"{year}-01-01T00:00:00Z")

    listed = api.get("/timeline?agent_id=assistant").json()["results"]

    assert [each["event_time"][:4] for each in listed] == ["2022", "2021", "2020"]


def test_an_imported_fact_is_true_since_it_was_stated_and_believed_from_now_on(api: ServiceClient) -> None:
    before = timezone.now()

    store(api, "/facts", event_time=THEN)

    fact = Fact.objects.get()
    is_new = fact.recorded_at is not None and fact.recorded_at >= before
    assert (fact.valid_from, fact.valid_from_source, is_new) == (datetime.fromisoformat(THEN), "said", True)


def test_a_fact_is_superseded_at_the_time_when_its_successor_was_stated(api: ServiceClient) -> None:
    fact = store(api, "/facts", event_time=THEN).json()["id"]
    later = {"agent_id": "assistant", "claim": "Ana lives in Faro.", "event_time": "2022-01-01T00:00:00Z"}

    new = api.post(f"/facts/{fact}/supersede", later).json()

    assert new["valid_from"] == new["event_time"] == later["event_time"]
    assert Fact.objects.get(pk=fact).valid_to == datetime(2022, 1, 1, tzinfo=UTC)


def test_an_imported_use_of_a_strategy_has_its_time(api: ServiceClient) -> None:
    store(api, "/strategies", event_time=THEN, success=True)

    assert Strategy.objects.get().last_used == datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_a_known_entity_was_first_seen_at_the_earliest_time(api: ServiceClient) -> None:
    store(api, "/entities")

    assert store(api, "/entities", event_time=THEN).json()["first_seen"] == THEN


def test_a_conversation_ended_at_the_time_that_the_client_sends(api: ServiceClient) -> None:
    turn = {"role": "user", "content": "Hello.", "timestamp": THEN}
    api.post("/conversations/c1/turns", {"agent_id": "assistant", "turns": [turn]})

    early = api.post("/conversations/c1/end", {"event_time": "2021-03-04T05:06:06Z"})
    ended = api.post("/conversations/c1/end", {"event_time": "2021-03-04T06:00:00Z"})
    again = api.post("/conversations/c1/end", {"event_time": "2022-01-01T00:00:00Z"})

    assert (early.status_code, early.json()["detail"][-34:]) == (422, "lie between the last turn and now.")
    assert ended.json()["ended_at"] == again.json()["ended_at"] == "2021-03-04T06:00:00Z"
    assert api.post("/conversations/c1/end", {"event_time": "2999-01-01T00:00:00Z"}).status_code == 400
    assert Conversation.objects.get().ended_at == datetime(2021, 3, 4, 6, tzinfo=UTC)
