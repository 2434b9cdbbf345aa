"""`/contexts/{id}/snapshots`: create, read, restore, delete; and who may."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from memory.models import AccessControl, Account, ContextEntryVersion, ContextSnapshot, PersistentContext
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.contexts import context_of, entry, keep

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

As = Callable[[str], ServiceClient]


@pytest.fixture
def as_agent(account: Account) -> As:
    """Return the client of a key that is bound to this agent of the account."""
    return lambda agent_id: ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id=agent_id).secret)


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    grants = AccessControl.parse({"read": ["reader"], "write": ["writer"]})
    return context_of(owner, access_control=grants)


@pytest.fixture
def entry_ids(owner: Owner, context: PersistentContext) -> list[str]:
    return [str(row.id) for row in keep(owner, context, entry("before"), entry("leaves"), entry("stays"))]


@pytest.fixture
def url(api: ServiceClient, context: PersistentContext, entry_ids: list[str]) -> str:
    """Return the URL of a snapshot with three entries."""
    made = api.post(f"/contexts/{context.id}/snapshots", {"name": "friday", "agent_id": "assistant"})
    assert made.status_code == 201
    return f"/contexts/{context.id}/snapshots/{made.json()['id']}"


@pytest.fixture
def edited(api: ServiceClient, context: PersistentContext, entry_ids: list[str], url: str) -> str:
    """Return the snapshot's URL, after three changes."""
    api.patch(f"/entries/{entry_ids[0]}", {"content": "after"})
    api.delete(f"/entries/{entry_ids[1]}")
    api.post(f"/contexts/{context.id}/entries", {"content": "new"})
    return url


def contents(api: ServiceClient, context: PersistentContext) -> set[str]:
    return {row["content"] for row in api.get(f"/contexts/{context.id}/entries").json()["results"]}


def statuses(requests: list[Callable[[], Any]]) -> list[int]:
    return [request().status_code for request in requests]


def test_a_snapshot_is_created_read_and_listed_newest_first(
    api: ServiceClient, context: PersistentContext, url: str
) -> None:
    second = api.post(f"/contexts/{context.id}/snapshots", {}).json()

    found = api.get(url).json()
    listed = api.get(f"/contexts/{context.id}/snapshots").json()["results"]

    assert (found["name"], found["agent_id"], found["entry_count"]) == ("friday", "assistant", 3)
    assert found["context_id"] == str(context.id)
    assert [row["id"] for row in listed] == [second["id"], found["id"]]


def test_a_snapshot_contains_a_preview_of_its_restore(api: ServiceClient, entry_ids: list[str], edited: str) -> None:
    preview = api.get(edited).json()["restore"]

    counts = {name: preview[name] for name in ("changed", "returned", "removed", "unchanged", "missing")}
    assert counts == {"changed": 1, "returned": 1, "removed": 1, "unchanged": 1, "missing": 0}
    changed, returned, removed = preview["steps"]
    assert changed == {
        "entry_id": entry_ids[0],
        "key": "",
        "from_version": 2,
        "to_version": 1,
        "is_reworded": True,
        "is_reweighed": False,
        "is_relabelled": False,
    }
    assert (returned["entry_id"], removed["to_version"]) == (entry_ids[1], None)


def test_a_restore_brings_back_the_former_entries(api: ServiceClient, context: PersistentContext, edited: str) -> None:
    answer = api.post(f"{edited}/restore", {"editor": "ana"})

    assert answer.status_code == 200
    assert answer.json() == {
        "snapshot_id": edited.rsplit("/", 1)[1],
        "context_id": str(context.id),
        "changed": 1,
        "returned": 1,
        "removed": 1,
        "unchanged": 1,
        "missing": 0,
    }
    assert contents(api, context) == {"before", "leaves", "stays"}
    assert ContextEntryVersion.objects.get(number=3).editor == "ana"


def test_restored_entries_are_found_by_meaning_immediately(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str], edited: str
) -> None:
    api.post(f"{edited}/restore", {"agent_id": "assistant"})

    found = api.post(f"/contexts/{context.id}/search", {"query": "before", "top_k": 1}).json()["results"]

    assert [hit["id"] for hit in found] == [entry_ids[0]]
    assert found[0]["similarity"] == pytest.approx(1, abs=0.01)
    assert ContextEntryVersion.objects.get(number=3).editor == "assistant"


def test_a_restore_succeeds_when_the_embedder_fails(
    api: ServiceClient, context: PersistentContext, edited: str, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert api.post(f"{edited}/restore").status_code == 200
    assert "before" in contents(api, context)


def test_a_request_repeated_with_its_idempotency_key_restores_once(
    api: ServiceClient, entry_ids: list[str], edited: str
) -> None:
    first = api.post(f"{edited}/restore", {}, HTTP_IDEMPOTENCY_KEY="once")
    api.patch(f"/entries/{entry_ids[0]}", {"content": "after that"})
    again = api.post(f"{edited}/restore", {}, HTTP_IDEMPOTENCY_KEY="once")

    assert first.json() == again.json()
    assert ContextEntryVersion.objects.filter(entry_id=UUID(entry_ids[0])).count() == 4


def test_a_deleted_snapshot_is_not_found(api: ServiceClient, context: PersistentContext, url: str) -> None:
    assert api.delete(url).status_code == 204

    assert statuses([lambda: api.get(url), lambda: api.delete(url), lambda: api.post(f"{url}/restore")]) == [404] * 3
    assert len(contents(api, context)) == 3


def test_an_archived_context_is_read_only(api: ServiceClient, context: PersistentContext, url: str) -> None:
    api.post(f"/contexts/{context.id}/archive", {})
    writes = [
        lambda: api.post(f"/contexts/{context.id}/snapshots", {}),
        lambda: api.post(f"{url}/restore"),
        lambda: api.delete(url),
    ]

    assert statuses(writes) == [409] * 3
    assert api.get(url).status_code == 200


@pytest.mark.parametrize("body", [{"name": 1}, {"name": "x" * 201}, {"label": "x"}])
def test_an_invalid_snapshot_is_refused(api: ServiceClient, context: PersistentContext, body: dict[str, Any]) -> None:
    assert api.post(f"/contexts/{context.id}/snapshots", body).status_code == 400


def test_an_invalid_restore_is_refused(api: ServiceClient, url: str) -> None:
    assert api.post(f"{url}/restore", {"editor": "x" * 151}).status_code == 400


def test_a_snapshot_is_not_found_in_another_context(api: ServiceClient, owner: Owner, url: str) -> None:
    elsewhere = f"/contexts/{context_of(owner, 'other').id}/snapshots/{url.rsplit('/', 1)[1]}"

    requests = [
        lambda: api.get(elsewhere),
        lambda: api.post(f"{elsewhere}/restore"),
        lambda: api.delete(elsewhere),
    ]

    assert statuses(requests) == [404] * 3


def test_readers_read_writers_restore_and_only_the_owner_deletes_snapshots(
    context: PersistentContext, url: str, as_agent: As
) -> None:
    def all_of(api: ServiceClient) -> list[int]:
        return statuses(
            [
                lambda: api.get(url),
                lambda: api.post(f"/contexts/{context.id}/snapshots", {}),
                lambda: api.post(f"{url}/restore"),
                lambda: api.delete(url),
            ]
        )

    assert all_of(as_agent("nobody")) == [404] * 4
    assert all_of(as_agent("reader")) == [200, 403, 403, 403]
    assert all_of(as_agent("writer")) == [200, 201, 200, 403]
    assert all_of(as_agent("assistant")) == [200, 201, 200, 204]


def test_an_agent_whose_grant_was_revoked_finds_no_snapshot(
    api: ServiceClient, context: PersistentContext, url: str, as_agent: As
) -> None:
    api.post(f"/contexts/{context.id}/revoke", {"agent_id": "writer"})

    assert statuses([lambda: as_agent("writer").get(url), lambda: as_agent("writer").post(f"{url}/restore")]) == [
        404,
        404,
    ]


def test_a_snapshot_of_another_account_is_not_found(stranger_api: ServiceClient, url: str) -> None:
    unknown = f"/contexts/{uuid4()}/snapshots/{uuid4()}"

    for suffix, method in (("", "get"), ("", "delete"), ("/restore", "post")):
        theirs, nobodys = (
            getattr(stranger_api, method)(path + suffix, HTTP_X_REQUEST_ID="same") for path in (url, unknown)
        )
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)
    assert ContextSnapshot.objects.count() == 1
