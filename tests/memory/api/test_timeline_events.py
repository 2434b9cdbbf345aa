"""Calls of tools and changes of pools on `/timeline`."""

from typing import Any

import pytest

from tests.api_client import ServiceClient

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

ANA = {"agent_id": "assistant", "user_id": "ana"}


def call_tool(api: ServiceClient, **fields: Any) -> None:
    call = {**ANA, "conversation_id": "trip", "tool_name": "search_flights"}
    assert api.post("/tool-invocations", call | fields).status_code == 201


def write_pool(api: ServiceClient, **fields: Any) -> None:
    assert api.post("/pools", {"agent_id": "assistant", "pool_id": "board", **fields}).status_code == 201
    assert api.put("/pools/board/data", {"agent_id": "assistant", "data": {"secret": 1}}).status_code == 200


def listed(api: ServiceClient, query: str = "agent_id=assistant") -> list[dict[str, Any]]:
    answer = api.get(f"/timeline?{query}")
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


def summaries(api: ServiceClient, query: str = "agent_id=assistant") -> list[str]:
    return [row["summary"] for row in listed(api, query)]


def test_calls_of_tools_are_listed_without_what_is_sealed(api: ServiceClient) -> None:
    call_tool(api, success=False, latency_ms=120, error_message="no route to secret host")

    (row,) = listed(api)

    assert (row["memory_type"], row["summary"]) == ("tool_invocation", "search_flights failed in 120 ms")
    assert row["metadata"] == {
        "tool_name": "search_flights",
        "success": False,
        "latency_ms": 120,
        "task_type": "",
        "turn_index": None,
    }
    assert (row["conversation_id"], row["user_id"]) == ("trip", "ana")
    assert "secret" not in str(row)


def test_changes_of_pools_are_listed_without_data(api: ServiceClient) -> None:
    write_pool(api)
    api.get("/pools/board/data?agent_id=assistant")

    rows = listed(api)

    assert [(row["memory_type"], row["summary"]) for row in rows] == [
        ("pool_event", "update board"),
        ("pool_event", "create board"),
    ]
    assert rows[0]["metadata"] == {"operation": "update", "pool_id": "board"}
    assert "secret" not in str(rows)


def test_events_stand_among_memories_and_are_filtered(api: ServiceClient) -> None:
    api.post("/memories", {**ANA, "text": "a note", "event_time": "2020-01-01T00:00:00Z"})
    call_tool(api, timestamp="2021-01-01T00:00:00Z")
    write_pool(api)

    assert summaries(api) == ["update board", "create board", "search_flights was called", "a note"]
    assert summaries(api, "ordering=event_time&page_size=2") == ["a note", "search_flights was called"]
    assert summaries(api, "memory_type=tool_invocation") == ["search_flights was called"]
    assert summaries(api, "memory_type=procedural") == ["search_flights was called"]
    assert summaries(api, "memory_type=note") == ["a note"]
    assert summaries(api, "until=2021-06-01T00:00:00Z&since=2020-06-01T00:00:00Z") == ["search_flights was called"]
    assert summaries(api, "conversation_id=trip") == ["search_flights was called"]
    assert summaries(api, "channel=garden") == summaries(api, "archived=true") == []
    assert summaries(api, "user_id=ben") == ["update board", "create board"]


def test_with_a_user_an_agent_sees_its_own_changes_of_pools_and_those_of_the_account(api: ServiceClient) -> None:
    write_pool(api)
    assert api.put("/pools/board/data", {"data": {"by": "the account"}}).status_code == 200

    alone, with_user = (summaries(api, f"agent_id=planner{query}") for query in ("", "&user_id=ben"))

    assert (len(alone), with_user) == (3, ["update board"])
    assert len(summaries(api, "agent_id=assistant&user_id=ben")) == len(summaries(api, "user_id=ben")) == 3


def test_pages_go_on_over_events(api: ServiceClient) -> None:
    write_pool(api)
    for number in range(3):
        call_tool(api, tool_name=f"tool{number}")
    url, seen = "/timeline?page_size=2", []

    while url:
        page = api.get(url).json()
        seen += [row["summary"] for row in page["results"]]
        url = page["next"] and page["next"].split("/api/v1", 1)[1]

    assert seen == [*(f"tool{number} was called" for number in (2, 1, 0)), "update board", "create board"]


def test_others_see_neither_calls_nor_changes(api: ServiceClient, stranger_api: ServiceClient) -> None:
    call_tool(api)
    write_pool(api, pool_type="agent_private")

    assert summaries(api, "agent_id=planner") == summaries(stranger_api, "include_archived=true") == []


def test_changes_of_a_deleted_pool_are_for_the_account_alone(api: ServiceClient) -> None:
    write_pool(api)
    api.delete("/pools/board?agent_id=assistant")

    assert summaries(api) == []
    assert summaries(api, "memory_type=pool_event")[0] == "delete of a deleted pool"
