"""`/tools`: calls, successes and durations by tool, of conversations in which the agent takes part."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db


def record(api: ServiceClient, tool_name: str = "search", **fields: Any) -> None:
    body = {"agent_id": "assistant", "conversation_id": "c1", "tool_name": tool_name} | fields
    assert api.post("/tool-invocations", body).status_code == 201


def listed(api: ServiceClient, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = api.get(f"/tools{query}").json()["results"]
    return rows


def counted(api: ServiceClient, query: str = "") -> list[tuple[Any, ...]]:
    names = ("tool_name", "task_type", "channel", "usage_count")
    return [tuple(row[name] for name in names) for row in listed(api, query)]


def test_the_calls_of_each_tool_are_summarized(api: ServiceClient) -> None:
    for latency_ms, success in ((10, True), (20, True), (30, False)):
        record(api, latency_ms=latency_ms, success=success, timestamp="2026-05-04T12:00:00Z")

    assert listed(api) == [
        {
            "tool_name": "search",
            "task_type": None,
            "channel": None,
            "usage_count": 3,
            "success_count": 2,
            "failure_count": 1,
            "success_rate": 2 / 3,
            "avg_latency_ms": 20.0,
            "latency_p50_ms": 20.0,
            "latency_p95_ms": 29.0,
            "last_used": "2026-05-04T12:00:00Z",
        }
    ]


def test_unknown_values_are_null(api: ServiceClient) -> None:
    record(api)

    [row] = listed(api)
    assert (row["success_rate"], row["latency_p50_ms"], row["latency_p95_ms"]) == (None, None, None)


def test_tools_are_filtered_and_grouped_by_task_type_channel_and_time(api: ServiceClient) -> None:
    record(api, "read")
    record(api, task_type="look up", timestamp="2026-05-04T12:00:00Z")
    record(api, task_type="look up", channel="web")

    assert counted(api) == [("read", None, None, 1), ("search", None, None, 2)]
    assert counted(api, "?task_type=look%20up") == [("search", None, None, 2)]
    assert counted(api, "?channel=web") == [("search", None, None, 1)]
    assert counted(api, "?since=2026-05-05T00:00:00Z") == [("read", None, None, 1), ("search", None, None, 1)]
    assert counted(api, "?by=task_type") == [("read", "", None, 1), ("search", "look up", None, 2)]
    assert counted(api, "?by=task_type_and_channel&task_type=look%20up") == [
        ("search", "look up", "_global", 1),
        ("search", "look up", "web", 1),
    ]


@pytest.mark.parametrize("by", ["tool", "channel", "task_type_and_channel"])
def test_pages_can_be_followed_forwards_and_backwards(api: ServiceClient, by: str) -> None:
    for number in range(5):
        record(api, f"tool {number}")

    first = api.get(f"/tools?page_size=3&by={by}").json()
    second = api.get(first["next"].partition("/api/v1")[2]).json()
    back = api.get(second["previous"].partition("/api/v1")[2]).json()

    names = [row["tool_name"] for page in (first, second) for row in page["results"]]
    assert names == [f"tool {number}" for number in range(5)]
    assert back["results"] == first["results"]


@pytest.mark.parametrize("query", ["?by=agent", "?since=yesterday", "?task_type=", "?tool=search"])
def test_an_invalid_query_parameter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/tools{query}").status_code == 400


def test_calls_are_counted_only_for_their_own_agent_and_account(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    record(api)
    record(api, agent_id="other", conversation_id="c2")

    assert counted(api) == [("search", None, None, 2)]
    assert counted(bound_api) == [("search", None, None, 1)]
    assert counted(stranger_api) == counted(api, "?agent_id=nobody") == []


def test_a_page_uses_two_queries_for_any_number_of_tools(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        record(api, f"tool {number}")
    listed(api)

    # the key, the page
    with django_assert_num_queries(2):
        listed(api, "?by=task_type_and_channel")
