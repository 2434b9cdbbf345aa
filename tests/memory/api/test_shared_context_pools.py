"""A run's pools over HTTP: data, blackboards and tool caches, for the run's agents until the run ends."""

from collections.abc import Callable
from typing import Any

import pytest

from memory import conf
from memory.models import Account, BlackboardPosting, ToolCacheEntry
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient, segment
from tests.memory.pools import pool_etag

RUN_ID, BOARD_ID, CACHE_ID, KEY = "night/run", "board/1 %2F", "cache ü", "search?q=a/b"
RUN = f"/workflow-runs/{segment(RUN_ID)}"
POSTINGS = f"/pools/{segment(BOARD_ID)}/postings"
CACHE = f"/pools/{segment(CACHE_ID)}/cache"
CACHED = f"{CACHE}/{segment(KEY)}"

KeyOf = Callable[[str], ServiceClient]


@pytest.fixture
def key_of(account: Account) -> KeyOf:
    """Return the client of an agent's own key."""
    return lambda agent_id: ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id=agent_id).secret)


@pytest.fixture
def assistant(bound_api: ServiceClient) -> ServiceClient:
    """Return the client of `assistant`, which started a run with `ana`, a blackboard and a tool cache."""
    bound_api.post("/workflow-runs", {"workflow_run_id": RUN_ID, "agents": ["ana"]})
    bound_api.post(f"{RUN}/pools", {"pool_id": BOARD_ID, "pool_type": "blackboard"})
    bound_api.post(f"{RUN}/pools", {"pool_id": CACHE_ID, "pool_type": "tool_cache"})
    return bound_api


@pytest.fixture
def ana(assistant: ServiceClient, key_of: KeyOf) -> ServiceClient:
    return key_of("ana")


def test_agents_of_a_workflow_run_create_and_list_its_pools(assistant: ServiceClient, ana: ServiceClient) -> None:
    made = ana.post(f"{RUN}/pools", {"pool_type": "shared_memory", "data": {"plan": [1]}})

    assert made.status_code == 201
    assert (made.json()["scope"], made.json()["task_id"], made["ETag"]) == (
        "task",
        RUN_ID,
        pool_etag(1, made.json()["pool_id"]),
    )
    assert (made.json()["agent_id"], made.json()["workflow_run_id"]) == ("ana", RUN_ID)
    listed = assistant.get(f"{RUN}/pools").json()["results"]
    assert listed[0] == made.json()
    assert [pool["pool_id"] for pool in listed[1:]] == [CACHE_ID, BOARD_ID]
    assert assistant.get(f"/pools/{made.json()['pool_id']}/data").json()["data"] == {"plan": [1]}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"pool_type": "shared"}, 400),
        ({"pool_type": "blackboard", "scope": "agent"}, 400),
        ({"pool_type": "blackboard", "data": []}, 400),
        ({"pool_type": "blackboard", "expires_at": "soon"}, 400),
        ({"pool_type": "blackboard", "data": {"a": 1}}, 422),
        ({"pool_type": "blackboard", "expires_at": "2020-01-01T00:00:00Z"}, 422),
        ({"pool_type": "blackboard", "pool_id": BOARD_ID}, 409),
        ({"pool_type": "shared_memory", "data": {"a": "x" * conf.POOL_LIMIT_BYTES}}, 413),
    ],
)
def test_an_invalid_pool_is_refused(assistant: ServiceClient, body: dict[str, Any], status: int) -> None:
    assert assistant.post(f"{RUN}/pools", body).status_code == status


def test_pools_cannot_be_added_to_an_ended_run(assistant: ServiceClient) -> None:
    assistant.patch(RUN, {"status": "failed"})

    assert assistant.post(f"{RUN}/pools", {"pool_type": "blackboard"}).status_code == 422
    assert len(assistant.get(f"{RUN}/pools").json()["results"]) == 2


def test_account_scope_lets_other_agents_read_but_not_write(assistant: ServiceClient, key_of: KeyOf) -> None:
    made = assistant.post(f"{RUN}/pools", {"pool_type": "blackboard", "pool_id": "open", "scope": "account"})

    assert made.json()["task_id"] == RUN_ID
    assert key_of("zoe").get("/pools/open/postings").status_code == 200
    assert key_of("zoe").post("/pools/open/postings", {"content": 1}).status_code == 403


def test_postings_are_listed_in_order_in_pages(assistant: ServiceClient, ana: ServiceClient) -> None:
    contents = ["first", {"b": 1, "a": None}, None]
    posted = [
        client.post(POSTINGS, {"content": each}) for client, each in zip((assistant, ana, ana), contents, strict=True)
    ]

    page = assistant.get(f"{POSTINGS}?page_size=2").json()
    rest = assistant.get(page["next"].partition("/api/v1")[2]).json()

    assert [answer.status_code for answer in posted] == [201] * 3
    assert page["results"] + rest["results"] == [answer.json() for answer in posted]
    assert [(each["position"], each["agent_id"], each["content"]) for each in page["results"]] == [
        (0, "assistant", "first"),
        (1, "ana", {"b": 1, "a": None}),
    ]
    assert rest["next"] is None


def test_postings_after_a_position_are_listed(assistant: ServiceClient) -> None:
    for content in range(4):
        assistant.post(POSTINGS, {"content": content})

    found = assistant.get(f"{POSTINGS}?after=1").json()["results"]

    assert [each["content"] for each in found] == [2, 3]
    assert assistant.get(f"{POSTINGS}?after=x").status_code == 400


def test_a_posting_repeated_with_its_idempotency_key_is_stored_once(assistant: ServiceClient) -> None:
    first, again = (assistant.post(POSTINGS, {"content": 1}, HTTP_IDEMPOTENCY_KEY="k1") for _twice in range(2))

    assert first.json() == again.json()
    assert BlackboardPosting.objects.count() == 1


def test_a_tool_result_is_cached_read_and_deleted(assistant: ServiceClient, ana: ServiceClient) -> None:
    put = assistant.put(CACHED, {"value": {"hits": [1.0, "1"]}, "ttl_seconds": 90})

    got = ana.get(CACHED).json()
    listed = ana.get(CACHE).json()["results"]

    assert (put.status_code, put.json()["ttl_seconds"], put.json()["hit_count"]) == (200, 90, 0)
    assert (got["key"], got["value"], got["agent_id"], got["hit_count"]) == (KEY, {"hits": [1.0, "1"]}, "assistant", 1)
    assert [(each["key"], 0 < each["ttl_seconds"] <= 90, "value" in each) for each in listed] == [(KEY, True, False)]
    assert ana.delete(CACHED).status_code == 204
    assert ana.get(CACHED).status_code == 404
    assert ana.delete(CACHED).status_code == 204


def test_a_cached_result_has_the_configured_ttl_by_default(assistant: ServiceClient) -> None:
    assert assistant.put(CACHED, {"value": None}).json()["ttl_seconds"] == conf.TOOL_CACHE_TTL_SECONDS


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"value": 1, "ttl_seconds": 0}, 400),
        ({"value": 1, "ttl_seconds": "60"}, 400),
        ({"value": 1, "ttl_seconds": 2_592_001}, 400),
        ({"value": 1, "other": 2}, 400),
        ({"value": "x" * conf.TIER_VALUE_BYTES}, 413),
    ],
)
def test_an_invalid_cache_entry_is_refused(assistant: ServiceClient, body: dict[str, Any], status: int) -> None:
    assert assistant.put(CACHED, body).status_code == status
    assert not ToolCacheEntry.objects.exists()


def test_a_posting_over_the_limit_of_its_pool_is_refused(
    assistant: ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", 20)

    refused = assistant.post(POSTINGS, {"content": "x" * 20})

    assert refused.status_code == 413
    assert (refused.json()["stored"], refused.json()["limit_bytes"]) == (False, 20)


def test_a_pool_of_another_type_has_no_postings_or_cache(assistant: ServiceClient) -> None:
    assert assistant.get(f"/pools/{segment(CACHE_ID)}/postings").status_code == 422
    assert assistant.get(f"/pools/{segment(BOARD_ID)}/cache").status_code == 422


def test_pools_of_an_ended_run_can_be_read_but_not_written(assistant: ServiceClient, ana: ServiceClient) -> None:
    ana.post(POSTINGS, {"content": 1})
    ana.put(CACHED, {"value": 1})
    assistant.patch(RUN, {"status": "completed"})

    writes = [ana.post(POSTINGS, {"content": 2}), ana.put(CACHED, {"value": 2}), ana.delete(CACHED)]

    assert [answer.status_code for answer in writes] == [409] * 3
    assert len(ana.get(POSTINGS).json()["results"]) == 1
    assert ana.get(CACHED).json()["value"] == 1


def test_the_owner_of_a_pool_still_manages_it_after_the_run_ended(assistant: ServiceClient, ana: ServiceClient) -> None:
    ana.post(f"{RUN}/pools", {"pool_id": "anas", "pool_type": "shared_memory", "data": {"found": 1}})
    assistant.patch(RUN, {"status": "completed"})

    assert ana.put("/pools/anas/data", {"data": {}}).status_code == 409
    assert ana.post("/pools/anas/grant", {"agent_id": "zoe", "level": "write"}).status_code == 200
    assert ana.post("/pools/anas/revoke", {"agent_id": "zoe"}).status_code == 200
    assert ana.patch("/pools/anas", {"expires_at": "2100-01-01T00:00:00Z"}).status_code == 200
    assert assistant.delete("/pools/anas").status_code == 403
    assert ana.delete("/pools/anas").status_code == 204


def test_an_agent_removed_from_a_run_loses_access_to_its_own_pool(assistant: ServiceClient, ana: ServiceClient) -> None:
    named = {"pool_id": "anas", "pool_type": "blackboard", "access_control": {"write": ["ana"]}}
    ana.post(f"{RUN}/pools", named)

    assert assistant.patch(RUN, {"remove_agents": ["ana"]}).status_code == 200

    assert [ana.get("/pools/anas/postings").status_code, ana.get("/pools/anas").status_code] == [404, 404]
    assert ana.post("/pools/anas/postings", {"content": "still here"}).status_code == 404
    assert assistant.get("/pools/anas").json()["access_control"]["write"] == []


def test_an_agent_removed_from_a_run_finds_nothing_of_it(assistant: ServiceClient, ana: ServiceClient) -> None:
    assistant.put(CACHED, {"value": 1})

    assistant.patch(RUN, {"agents": []})

    for path in (RUN, f"{RUN}/pools", POSTINGS, CACHE, CACHED):
        assert ana.get(path).status_code == 404
    assert ana.post(POSTINGS, {"content": 1}).status_code == 404


def test_a_bound_key_cannot_act_for_another_agent(assistant: ServiceClient) -> None:
    assert assistant.post(POSTINGS, {"content": 1, "agent_id": "ana"}).status_code == 403
    assert assistant.get(f"{CACHED}?agent_id=ana").status_code == 403
    assert assistant.put(CACHED, {"value": 1, "agent_id": "ana"}).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("get", "{run}/pools", None),
        ("post", "{run}/pools", {"pool_type": "blackboard"}),
        ("get", "/pools/{board}/postings", None),
        ("post", "/pools/{board}/postings", {"content": "secret"}),
        ("get", "/pools/{cache}/cache", None),
        ("get", "/pools/{cache}/cache/k", None),
        ("put", "/pools/{cache}/cache/k", {"value": "secret"}),
        ("delete", "/pools/{cache}/cache/k", None),
    ],
)
def test_agents_without_access_receive_the_answer_for_a_missing_pool(
    assistant: ServiceClient, key_of: KeyOf, stranger_api: ServiceClient, method: str, path: str, body: Any
) -> None:
    assistant.put(f"{CACHE}/k", {"value": "secret"})
    real = path.format(run=RUN, board=segment(BOARD_ID), cache=segment(CACHE_ID))
    none = path.format(run="/workflow-runs/none", board="none", cache="none")

    for client in (key_of("zoe"), stranger_api):
        theirs = getattr(client, method)(real, body, HTTP_X_REQUEST_ID="same")
        unknown = getattr(client, method)(none, body, HTTP_X_REQUEST_ID="same")

        assert theirs.status_code == 404
        assert theirs.content == unknown.content
    assert (BlackboardPosting.objects.count(), ToolCacheEntry.objects.count()) == (0, 1)
