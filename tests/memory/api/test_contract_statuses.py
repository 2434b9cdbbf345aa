"""Statuses other than success, which the OpenAPI document lists."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api_client import ServiceClient
from tests.openapi import read_document

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

Ids = dict[str, str]
NOBODY = UUID(int=7)

UNFIT = [
    ("/pools/{board}/data", "/pools/{pool_id}/data"),
    ("/pools/{pool}/postings", "/pools/{pool_id}/postings"),
    ("/pools/{pool}/cache", "/pools/{pool_id}/cache"),
    ("/pools/{pool}/cache/k", "/pools/{pool_id}/cache/{key}"),
    ("/keyed-memories/none?pool_id={board}", "/keyed-memories/{key}"),
]
"""Requests that read, with the path in the document."""

READ_ONLY = [
    ("/entries/{entry}", "/entries/{entry_id}"),
    ("/contexts/{context}/snapshots/{snapshot}", "/contexts/{context_id}/snapshots/{snapshot_id}"),
    ("/keyed-memories/k", "/keyed-memories/{key}"),
    ("/pools/{cache}/cache/k", "/pools/{pool_id}/cache/{key}"),
]
"""Deletions in archived or ended containers, with the path in the document."""

VERSIONED = [
    ("/pools/{pool}", "/pools/{pool_id}"),
    ("/pools/{pool}/data", "/pools/{pool_id}/data"),
    ("/contexts/{context}", "/contexts/{context_id}"),
]


DELETED_ALREADY = [
    *((f"/{name}/{NOBODY}", 404) for name in ("memories", "facts", "goals", "entities", "artifacts", "relationships")),
    *((f"/{name}/none", 404) for name in ("conversations", "pools", "keyed-memories", "profiles")),
    (f"/facts/{NOBODY}?erase=true", 404),
    (f"/episodic/none?episode_id={NOBODY}", 404),
    ("/episodic/none", 204),
    ("/working-memory/none", 204),
    ("/agents/assistant/working-memory/none", 204),
]
"""Deletions of what is not there: one thing is missed, and a place is empty."""


def declared(path: str, method: str) -> dict[str, Any]:
    found: dict[str, Any] = read_document()["paths"][f"/api/v1{path}"][method]
    return found


@pytest.fixture
def ids(bound_api: ServiceClient) -> Ids:
    """Make a pool, a blackboard and a tool cache; the agent's own context with an entry and a snapshot."""
    api = bound_api
    api.post("/pools", {"pool_id": "pool", "data": {"text": "short"}})
    api.post("/workflow-runs", {"workflow_run_id": "run"})
    for pool_type in ("blackboard", "tool_cache"):
        api.post("/workflow-runs/run/pools", {"pool_id": pool_type, "pool_type": pool_type})
    api.put("/keyed-memories/k", {"value": 1, "tier": "long_term"})
    context = api.get("/contexts").json()["results"][0]["id"]
    entry = api.get(f"/contexts/{context}/entries").json()["results"][0]["id"]
    snapshot = api.post(f"/contexts/{context}/snapshots", {}).json()["id"]
    kept = {"context": context, "entry": entry, "snapshot": snapshot}
    return kept | {"pool": "pool", "board": "blackboard", "cache": "tool_cache"}


@pytest.mark.parametrize(("path", "template"), UNFIT, ids=[path for path, _ in UNFIT])
def test_reading_from_a_pool_of_the_wrong_type_is_a_declared_422(
    bound_api: ServiceClient, ids: Ids, path: str, template: str
) -> None:
    answer = bound_api.get(path.format(**ids))

    assert answer.status_code == 422, answer.content
    assert "422" in declared(template, "get")["responses"]


@pytest.mark.parametrize(("path", "template"), READ_ONLY, ids=[path for path, _ in READ_ONLY])
def test_deleting_from_an_archived_or_ended_container_is_a_declared_409(
    bound_api: ServiceClient, ids: Ids, path: str, template: str
) -> None:
    bound_api.post(f"/contexts/{ids['context']}/archive", {})
    bound_api.patch("/workflow-runs/run", {"status": "completed"})

    answer = bound_api.delete(path.format(**ids))

    assert answer.status_code == 409, answer.content
    assert "409" in declared(template, "delete")["responses"]


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/keyed-memories/k?tier=shared&pool_id={board}", "/keyed-memories/{key}"),
        ("/pools/{pool}/cache/k", "/pools/{pool_id}/cache/{key}"),
    ],
)
def test_deleting_from_a_pool_of_the_wrong_type_is_a_declared_422(
    bound_api: ServiceClient, ids: Ids, path: str, template: str
) -> None:
    answer = bound_api.delete(path.format(**ids))

    assert answer.status_code == 422, answer.content
    assert "422" in declared(template, "delete")["responses"]


@pytest.mark.parametrize(("path", "status"), DELETED_ALREADY, ids=[path for path, _ in DELETED_ALREADY])
def test_what_is_gone_is_missed_and_what_is_empty_is_not(bound_api: ServiceClient, path: str, status: int) -> None:
    assert bound_api.delete(path).status_code == status


@pytest.mark.parametrize(("path", "template"), VERSIONED, ids=[path for path, _ in VERSIONED])
def test_reading_an_unchanged_resource_is_a_declared_304(
    bound_api: ServiceClient, ids: Ids, path: str, template: str
) -> None:
    tag = bound_api.get(path.format(**ids))["ETag"]

    answer = bound_api.get(path.format(**ids), HTTP_IF_NONE_MATCH=tag)

    described = declared(template, "get")
    assert (answer.status_code, answer.content) == (304, b"")
    assert "content" not in described["responses"]["304"]
    assert "If-None-Match" in {given["name"] for given in described["parameters"]}


def test_a_read_that_cannot_conflict_declares_no_such_status() -> None:
    assert not {"304", "409", "412", "422"} & set(declared("/entries/{entry_id}", "get")["responses"])


def test_previewing_the_deletion_of_nothing_is_a_declared_404(api: ServiceClient) -> None:
    for query in (f"memory_id={uuid4()}", "conversation_id=none"):
        assert api.get(f"/erasures/preview?{query}").status_code == 404

    assert "404" in declared("/erasures/preview", "get")["responses"]


def test_a_structured_turn_of_a_conversation_of_others_is_a_declared_404(
    api: ServiceClient, bound_api: ServiceClient
) -> None:
    said = {"turns": [{"role": "user", "content": "Mine."}]}
    api.post("/conversations/theirs/turns", said | {"agent_id": "colleague"})

    answer = bound_api.post("/turn-records", {"conversation_id": "theirs", "observation": "It rains."})

    assert answer.status_code == 404, answer.content
    assert "404" in declared("/turn-records", "post")["responses"]
