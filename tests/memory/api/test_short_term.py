"""`/short-term-memories`: values that an agent keeps for some hours."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, AgentShortTermMemory
from memory.services.accounts.register import READ_ONLY, READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db

PATH = "/short-term-memories"


def keep(api: ServiceClient, key: str = "plan", value: Any = 1, **body: Any) -> Any:
    answer = api.post(PATH, {"agent_id": "assistant", "memory_key": key, "memory_value": value} | body)
    assert answer.status_code == 201, answer.content
    return answer.json()


def listed(api: ServiceClient, query: str = "") -> list[str]:
    return [found["memory_key"] for found in api.get(f"{PATH}{query}").json()["results"]]


def expire() -> None:
    AgentShortTermMemory.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def test_an_entry_is_stored_read_refreshed_and_deleted(api: ServiceClient) -> None:
    stored = keep(api, value={"a": [1, "1", None]}, session_id="s1", memory_type="reflection", ttl_seconds=60)
    path = f"{PATH}/{stored['id']}"

    found = api.get(path).json()
    refreshed = api.post(f"{path}/refresh", {"ttl_seconds": 600})

    assert found == stored | {"access_count": 1, "last_accessed_at": found["last_accessed_at"]}
    assert (stored["memory_value"], stored["access_count"]) == ({"a": [1, "1", None]}, 0)
    assert (refreshed.status_code, refreshed.json()["ttl_seconds"]) == (200, 600)
    assert refreshed.json()["expires_at"] > found["expires_at"]
    assert [api.delete(path).status_code, api.delete(path).status_code] == [204, 404]


def test_an_entry_is_task_context_for_an_hour_without_a_session_by_default(api: ServiceClient) -> None:
    stored = keep(api)

    assert (stored["ttl_seconds"], stored["memory_type"], stored["session_id"]) == (3_600, "task_context", "")


def test_storing_a_key_again_replaces_its_value(api: ServiceClient) -> None:
    first, second = keep(api, value=1), keep(api, value=2)

    assert (first["id"], second["memory_value"]) == (second["id"], 2)


def test_a_list_is_filtered_and_counts_no_access(api: ServiceClient) -> None:
    keep(api, "plan", session_id="s1")
    keep(api, "note", session_id="s1", memory_type="observation")
    keep(api, "rest")

    assert listed(api) == ["rest", "note", "plan"]
    assert listed(api, "?session_id=s1") == ["note", "plan"]
    assert listed(api, "?memory_type=observation&agent_id=assistant") == ["note"]
    assert listed(api, "?memory_key=rest") == ["rest"]
    assert api.get(f"{PATH}?memory_type=dream").status_code == 400
    assert {entry.access_count for entry in AgentShortTermMemory.objects.all()} == {0}


def test_a_head_request_counts_no_access(api: ServiceClient) -> None:
    path = f"{PATH}/{keep(api)['id']}"

    found = api.head(path)

    assert (found.status_code, found.content) == (200, b"")
    assert AgentShortTermMemory.objects.get().access_count == 0
    assert api.head(f"{PATH}/{uuid4()}").status_code == 404


def test_expired_entries_are_not_found(api: ServiceClient) -> None:
    path = f"{PATH}/{keep(api)['id']}"
    AgentShortTermMemory.objects.update(access_count=5)
    expire()

    answers = [api.get(path), api.post(f"{path}/refresh", {}), api.delete(path)]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert listed(api) == []


@pytest.mark.parametrize(
    "body",
    [
        {"memory_key": "", "memory_value": 1},
        {"memory_key": "k" * 201, "memory_value": 1},
        {"memory_key": "a\nb", "memory_value": 1},
        {"memory_key": 5, "memory_value": 1},
        {"memory_value": 1},
        {"memory_key": "k"},
        {"memory_key": "k", "memory_value": 1, "ttl_seconds": 0},
        {"memory_key": "k", "memory_value": 1, "ttl_seconds": 2_592_001},
        {"memory_key": "k", "memory_value": 1, "ttl_seconds": "60"},
        {"memory_key": "k", "memory_value": 1, "memory_type": "dream"},
        {"memory_key": "k", "memory_value": 1, "session_id": "s" * 101},
        {"memory_key": "k", "memory_value": 1, "access_count": 3},
    ],
)
def test_an_invalid_body_is_refused(api: ServiceClient, body: dict[str, Any]) -> None:
    assert api.post(PATH, body | {"agent_id": "assistant"}).status_code == 400
    assert not AgentShortTermMemory.objects.exists()


def test_a_write_without_an_agent_is_refused(api: ServiceClient) -> None:
    answer = api.post(PATH, {"memory_key": "k", "memory_value": 1})

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["agent_id"])


def test_a_value_that_is_too_large_is_refused_with_its_size(api: ServiceClient) -> None:
    answer = api.post(PATH, {"agent_id": "assistant", "memory_key": "k", "memory_value": "x" * 65_535})

    problem = answer.json()
    assert answer.status_code == 413
    assert problem["detail"] == "The value has 65537 bytes, but 65536 are allowed; nothing was stored."
    assert (problem["size_bytes"], problem["limit_bytes"], problem["stored"]) == (65_537, 65_536, False)


def test_a_request_repeated_with_its_idempotency_key_writes_once(api: ServiceClient) -> None:
    body = {"agent_id": "assistant", "memory_key": "k", "memory_value": 1, "ttl_seconds": 60}
    first = api.post(PATH, body, HTTP_IDEMPOTENCY_KEY="once")
    AgentShortTermMemory.objects.all().delete()

    again = api.post(PATH, body, HTTP_IDEMPOTENCY_KEY="once")

    assert (again.json(), AgentShortTermMemory.objects.count()) == (first.json(), 0)


def test_a_read_only_key_may_read_but_not_write(api: ServiceClient, account: Account) -> None:
    path = f"{PATH}/{keep(api)['id']}"
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    answers = [reader.get(path), reader.get(PATH), reader.post(f"{path}/refresh", {}), reader.delete(path)]

    assert [answer.status_code for answer in answers] == [200, 200, 403, 403]


def test_entries_of_other_agents_and_accounts_are_not_found(
    api: ServiceClient, stranger_api: ServiceClient, account: Account
) -> None:
    entry_id = keep(api)["id"]
    planner = ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id="planner").secret)

    for other in (planner, stranger_api):
        for method, tail in (("get", ""), ("delete", ""), ("post", "/refresh")):
            send = getattr(other, method)
            theirs = send(f"{PATH}/{entry_id}{tail}", HTTP_X_REQUEST_ID="same")
            unknown = send(f"{PATH}/{uuid4()}{tail}", HTTP_X_REQUEST_ID="same")
            assert (theirs.status_code, theirs.content) == (404, unknown.content)
        assert listed(other) == []
    assert listed(api) == ["plan"]


def test_a_bound_key_cannot_act_for_another_agent(bound_api: ServiceClient) -> None:
    body = {"agent_id": "planner", "memory_key": "k", "memory_value": 1}

    assert [bound_api.post(PATH, body).status_code, bound_api.get(f"{PATH}?agent_id=planner").status_code] == [403, 403]


def test_a_read_executes_one_statement_in_addition_to_the_key_lookup(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    path = f"{PATH}/{keep(api)['id']}"

    with django_assert_num_queries(1 + 1):
        api.get(path)
