"""`/tool-invocations`: record one or many, read by agents that take part, hidden from others."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from memory.models import AuditEntry, IdempotentRequest, Tool, ToolInvocation
from memory.services.tools import MAX_VALUE_BYTES
from tests.api_client import ServiceClient
from tests.hostile import HOSTILE_IDS
from tests.memory.procedures import everything_stored

pytestmark = pytest.mark.django_db

CALL = {"agent_id": "assistant", "conversation_id": "c1", "tool_name": "search"}
CALL_TIME = {
    "tool_input": {"query": "mat"},
    "tool_output": None,
    "success": False,
    "latency_ms": 12,
    "error_message": "no such mat",
    "task_type": "look up",
    "turn_index": 3,
    "timestamp": "2026-05-04T12:00:00Z",
}
SEALED = ("tool_input", "tool_output", "error_message")
SECRET = "hunter2"


def record(api: ServiceClient, **fields: Any) -> Any:
    return api.post("/tool-invocations", CALL | fields)


def listed(api: ServiceClient, query: str = "") -> list[str]:
    answer = api.get(f"/tool-invocations{query}")
    assert answer.status_code == 200, answer.content
    return [row["tool_name"] for row in answer.json()["results"]]


def test_a_call_is_recorded_and_read_again(api: ServiceClient) -> None:
    recorded = record(api, user_id="ana", channel="web", **CALL_TIME)
    read = api.get(f"/tool-invocations/{recorded.json()['id']}?agent_id=assistant")

    assert recorded.status_code == 201
    assert read.status_code == 200
    whose = {"user_id": "ana", "channel": "web", "sealed": False}
    assert read.json() | CALL | CALL_TIME | whose == read.json()
    assert read.json() == recorded.json() | {name: read.json()[name] for name in (*SEALED, "sealed")}


def test_only_a_tool_and_a_conversation_are_required(api: ServiceClient) -> None:
    recorded = record(api).json()
    read = api.get(f"/tool-invocations/{recorded['id']}").json()

    empty = dict.fromkeys([*SEALED, "success", "latency_ms", "turn_index"])
    assert read | empty | {"task_type": "", "sealed": False} == read


@pytest.mark.parametrize(
    "change",
    [
        {"tool_name": None},
        {"latency_ms": -1},
        {"latency_ms": 2**31},
        {"latency_ms": 1.5},
        {"success": "yes"},
        {"turn_index": -1},
        {"error_message": 7},
        {"timestamp": "2026-05-04T12:00:00"},
        {"timestamp": "2999-05-04T12:00:00Z"},
        {"task_type": "x" * 101},
        {"surprise": 1},
    ],
    ids=str,
)
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = record(api, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not ToolInvocation.objects.exists()


@pytest.mark.parametrize("wrong", HOSTILE_IDS, ids=repr)
@pytest.mark.parametrize("field", ["conversation_id", "tool_name"])
def test_an_invalid_id_is_refused(api: ServiceClient, field: str, wrong: object) -> None:
    assert record(api, **{field: wrong}).status_code == 400
    assert not Tool.objects.exists()


@pytest.mark.parametrize("field", ["tool_input", "tool_output", "error_message"])
def test_a_value_that_is_too_large_is_refused_with_its_size(api: ServiceClient, field: str) -> None:
    answer = record(api, **{field: "x" * (MAX_VALUE_BYTES - 1)})

    assert answer.status_code == 413
    assert answer.json()["size_bytes"] == answer.json()["limit_bytes"] + 1 == MAX_VALUE_BYTES + 1
    assert answer.json()["stored"] is False
    assert not ToolInvocation.objects.exists()


def test_many_calls_are_recorded_in_one_request(api: ServiceClient) -> None:
    uses = [{"tool_name": name, "success": True} for name in ("search", "read", "search")]
    answer = api.post("/tool-invocations/bulk", {"agent_id": "assistant", "conversation_id": "c1", "invocations": uses})

    assert answer.status_code == 201
    assert len(set(answer.json()["ids"])) == 3
    assert sorted(listed(api, "?agent_id=assistant")) == ["read", "search", "search"]
    assert Tool.objects.get(name="search").usage_count == 2


@pytest.mark.parametrize(
    "uses", [[], [{}], [{"tool_name": "x", "conversation_id": "c2"}], [{"tool_name": "x"}] * 1_001]
)
def test_a_bulk_request_with_an_invalid_call_stores_nothing(api: ServiceClient, uses: list[Any]) -> None:
    answer = api.post("/tool-invocations/bulk", {"agent_id": "a", "conversation_id": "c1", "invocations": uses})

    assert answer.status_code == 400
    assert not ToolInvocation.objects.exists()


def test_a_request_repeated_with_its_idempotency_key_is_counted_once(api: ServiceClient) -> None:
    first, again = (api.post("/tool-invocations", CALL, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert first.content == again.content
    assert Tool.objects.get().usage_count == 1


@pytest.mark.parametrize(
    ("status", "more"),
    [(201, {}), (400, {"latency_ms": -1}), (413, {"tool_input": [SECRET, "x" * MAX_VALUE_BYTES]})],
)
def test_an_answer_stored_for_replays_contains_no_encrypted_value(
    api: ServiceClient, status: int, more: dict[str, Any]
) -> None:
    use = {"tool_name": "search", "tool_input": {"q": SECRET}, "tool_output": [SECRET], "error_message": SECRET} | more
    bulk = {"agent_id": "assistant", "conversation_id": "c1", "invocations": [use]}
    for path, body in (("/tool-invocations", CALL | use), ("/tool-invocations/bulk", bulk)):
        assert api.post(path, body, HTTP_IDEMPOTENCY_KEY="k1").status_code == status

    # refused answers are not kept
    assert IdempotentRequest.objects.count() == (2 if status == 201 else 0)
    stored = everything_stored()
    assert SECRET not in stored
    assert SECRET.encode().hex() not in stored


def test_a_list_neither_returns_nor_reads_encrypted_columns(api: ServiceClient) -> None:
    recorded = record(api, **CALL_TIME).json()

    with CaptureQueriesContext(connection) as captured:
        page = api.get("/tool-invocations").json()

    assert page["results"] == [recorded]
    assert not {*SEALED, "sealed"} & set(recorded)
    assert not [query for query in captured if "tool_input" in query["sql"]]


def test_a_list_is_latest_first_and_filtered_by_every_parameter(api: ServiceClient) -> None:
    now = timezone.now()
    record(api, tool_name="old", timestamp=(now - timedelta(days=2)).isoformat(), success=True)
    record(api, tool_name="other", conversation_id="c2", channel="web", success=False)
    record(api, tool_name="typed", task_type="look up")

    assert listed(api) == ["typed", "other", "old"]
    assert listed(api, "?conversation_id=c2") == listed(api, "?channel=web") == ["other"]
    assert listed(api, "?tool_name=old") == listed(api, "?success=true") == ["old"]
    assert listed(api, "?task_type=look%20up") == listed(api, "?success=unknown") == ["typed"]
    assert listed(api, "?success=false") == ["other"]
    day_ago = (now - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (listed(api, f"?since={day_ago}"), listed(api, f"?until={day_ago}")) == (["typed", "other"], ["old"])


def test_pages_have_the_requested_size(api: ServiceClient) -> None:
    for number in range(5):
        record(api, tool_name=f"tool {number}", timestamp="2026-05-04T12:00:00Z")

    first = api.get("/tool-invocations?page_size=3").json()
    second = api.get(first["next"].partition("/api/v1")[2]).json()

    names = [row["tool_name"] for page in (first, second) for row in page["results"]]
    assert names == [f"tool {number}" for number in (4, 3, 2, 1, 0)]
    assert second["next"] is None


@pytest.mark.parametrize("query", ["?success=maybe", "?since=yesterday", "?tool=search", "?conversation_id="])
def test_an_invalid_query_parameter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/tool-invocations{query}").status_code == 400


def test_other_agents_and_accounts_see_nothing(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    mine, theirs = record(api).json()["id"], record(api, agent_id="other", conversation_id="c2").json()["id"]

    assert len(listed(bound_api)) == len(listed(api, "?agent_id=other")) == 1
    assert listed(api, "?agent_id=nobody") == listed(stranger_api) == []
    assert bound_api.get(f"/tool-invocations/{mine}").status_code == 200
    for client, invocation_id in ((bound_api, theirs), (stranger_api, mine), (api, uuid4())):
        assert client.get(f"/tool-invocations/{invocation_id}").status_code == 404


def test_a_call_whose_encryption_key_is_lost_is_returned_as_sealed(api: ServiceClient, settings: Settings) -> None:
    recorded = record(api, **CALL_TIME).json()
    before = api.get(f"/tool-invocations/{recorded['id']}").json()
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    read = api.get(f"/tool-invocations/{recorded['id']}")

    lost = {"tool_input": None, "error_message": None, "sealed": True}
    assert read.status_code == 200
    assert read.json() == before | lost
    assert listed(api) == ["search"]


def test_the_audit_log_contains_no_value_of_a_call(api: ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    recorded = record(api, tool_input="hunter2", tool_output="hunter2", error_message="hunter2").json()
    api.get(f"/tool-invocations/{recorded['id']}")

    assert not any("hunter2" in str(entry) for entry in AuditEntry.objects.values())


def test_a_page_uses_two_queries_for_any_number_of_rows(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        record(api, tool_name=f"tool {number}")
    listed(api)

    # the key, the page
    with django_assert_num_queries(2):
        listed(api)
