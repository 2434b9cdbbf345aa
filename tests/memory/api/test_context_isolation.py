"""Isolation of contexts over HTTP, from both sides: agents, teams, accounts, grants, archived contexts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from memory.models import Account, ContextAccessLog, ContextEntry, PersistentContext
from memory.owner import Owner
from memory.services.accounts.register import issue_key
from memory.services.contexts.search import EntryQuestion, find_entries
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

SECRET = "The safe opens with 1234"
As = Callable[[str], ServiceClient]


@pytest.fixture
def acting(account: Account, embedding_server: EmbeddingServer) -> As:
    """Return the client of a key that is bound to an agent; to none for ""."""
    return lambda agent_id: ServiceClient(issue_key(account, scopes=["read", "write"], agent_id=agent_id).secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """A context of the agent `keeper`, with one entry."""

    context: str
    entry: str


@pytest.fixture
def keep(acting: As) -> Callable[..., StoredEntry]:
    def keep(**fields: Any) -> StoredEntry:
        keeper = acting("keeper")
        context = keeper.post("/contexts", {"name": "notes", **fields}).json()["id"]
        return StoredEntry(
            context=context, entry=keeper.post(f"/contexts/{context}/entries", {"content": SECRET}).json()["id"]
        )

    return keep


def reads(client: ServiceClient, kept: StoredEntry) -> dict[str, Any]:
    return {
        "context": client.get(f"/contexts/{kept.context}"),
        "entries": client.get(f"/contexts/{kept.context}/entries"),
        "search": client.post(f"/contexts/{kept.context}/search", {"query": SECRET}),
        "entry": client.get(f"/entries/{kept.entry}"),
        "versions": client.get(f"/entries/{kept.entry}/versions"),
    }


def writes(client: ServiceClient, kept: StoredEntry) -> dict[str, Any]:
    """Return the operations, with the removal last."""
    path = f"/entries/{kept.entry}"
    return {
        "store": client.post(f"/contexts/{kept.context}/entries", {"content": "more"}),
        "edit": client.patch(path, {"content": "other"}),
        "boost": client.post(f"{path}/boost", {}),
        "reduce": client.post(f"{path}/reduce", {}),
        "restore": client.post(f"{path}/versions/1/restore", {}),
        "remove": client.delete(path),
    }


def manages(client: ServiceClient, kept: StoredEntry) -> dict[str, Any]:
    path, grant = f"/contexts/{kept.context}", {"agent_id": "friend", "level": "read"}
    return {
        "change": client.patch(path, {"description": "changed"}),
        **{act: client.post(f"{path}/{act}", {}) for act in ("archive", "unarchive")},
        **{act: client.post(f"{path}/{act}", grant) for act in ("grant", "revoke")},
    }


def statuses(answers: dict[str, Any]) -> set[int]:
    return {answer.status_code for answer in answers.values()}


def listed(client: ServiceClient) -> list[str]:
    return [context["id"] for context in client.get("/contexts").json()["results"]]


def found(account: Account, agent_id: str) -> list[str]:
    """Search all contexts that the agent may read."""
    owner = Owner(account_id=account.id, agent_id=agent_id)
    return [hit.content for hit in find_entries(owner, EntryQuestion(text=SECRET), now=NOW).hits]


def state() -> list[Any]:
    contexts = PersistentContext.objects.order_by("id").values()
    return [*contexts, *ContextEntry.objects.order_by("id").values()]


def shut_out(client: ServiceClient, account: Account, agent_id: str, kept: StoredEntry) -> None:
    """Assert that an agent sees nothing, finds nothing and changes nothing."""
    before = state()

    answers = reads(client, kept) | writes(client, kept) | manages(client, kept)

    assert statuses(answers) == {404}
    assert not any(b"safe" in answer.content for answer in answers.values())
    assert (listed(client), found(account, agent_id)) == ([], [])
    assert state() == before
    assert not ContextAccessLog.objects.exclude(agent_id="keeper").exists()


def test_a_context_of_an_agent_is_hidden_from_other_agents(
    acting: As, keep: Callable[..., StoredEntry], account: Account
) -> None:
    kept = keep()

    shut_out(acting("other"), account, "other", kept)

    assert statuses(reads(acting("keeper"), kept)) == {200}
    assert found(account, "keeper") == [SECRET]


def test_an_agent_of_the_same_name_in_another_account_sees_nothing(
    keep: Callable[..., StoredEntry], stranger: Account
) -> None:
    kept = keep(scope="global", access_control={"read": ["keeper"], "write": ["keeper"], "public_read": True})

    for agent_id in ("keeper", ""):
        theirs = ServiceClient(issue_key(stranger, scopes=["read", "write"], agent_id=agent_id).secret)
        shut_out(theirs, stranger, agent_id, kept)


def test_a_hidden_context_is_answered_like_one_that_does_not_exist(
    acting: As, keep: Callable[..., StoredEntry]
) -> None:
    kept, nothing = keep(), StoredEntry(context=str(uuid4()), entry=str(uuid4()))
    other = acting("other")
    # of all headers of its requests
    other.defaults["HTTP_X_REQUEST_ID"] = "same"

    closed, none = (
        {name: answer.content for name, answer in (reads(other, ids) | writes(other, ids)).items()}
        for ids in (kept, nothing)
    )

    assert closed == none


def test_an_api_key_of_the_account_reads_writes_and_manages_every_context(
    acting: As, keep: Callable[..., StoredEntry]
) -> None:
    kept, account = keep(), acting("")

    assert statuses(reads(account, kept)) == statuses(manages(account, kept)) == {200}
    assert statuses(writes(account, kept)) == {200, 201, 204}


@pytest.mark.parametrize(
    "opened",
    [
        {"scope": "account"},
        {"scope": "global"},
        {"access_control": {"read": ["reader"]}},
        {"access_control": {"public_read": True}},
    ],
    ids=str,
)
def test_an_agent_with_read_access_can_read_but_not_write_or_manage(
    acting: As, keep: Callable[..., StoredEntry], account: Account, opened: dict[str, Any]
) -> None:
    kept, reader = keep(**opened), acting("reader")
    before = state()

    assert statuses(reads(reader, kept)) == {200}
    assert (listed(reader), found(account, "reader")) == ([kept.context], [SECRET])
    assert statuses(writes(reader, kept)) == statuses(manages(reader, kept)) == {403}
    assert state() == before


def test_an_agent_with_write_access_can_write_but_not_manage(acting: As, keep: Callable[..., StoredEntry]) -> None:
    kept, writer = keep(access_control={"write": ["writer"]}), acting("writer")

    assert statuses(reads(writer, kept)) == {200}
    assert statuses(manages(writer, kept)) == {403}
    assert statuses(writes(writer, kept)) == {200, 201, 204}


def test_a_grant_to_one_agent_gives_no_access_to_another(
    acting: As, keep: Callable[..., StoredEntry], account: Account
) -> None:
    kept = keep(access_control={"write": ["writer"], "read": ["reader"]})

    for agent_id in ("other", "read", "writ", "writer2", "%", "public_read"):
        shut_out(acting(agent_id), account, agent_id, kept)


@pytest.mark.parametrize("level", ["read", "write"])
def test_revoking_a_grant_hides_the_context_again(
    acting: As, keep: Callable[..., StoredEntry], account: Account, level: str
) -> None:
    kept, keeper, friend = keep(), acting("keeper"), acting("friend")
    keeper.post(f"/contexts/{kept.context}/grant", {"agent_id": "friend", "level": level})
    assert statuses(reads(friend, kept)) == {200}

    keeper.post(f"/contexts/{kept.context}/revoke", {"agent_id": "friend"})

    shut_out(friend, account, "friend", kept)


def test_revoking_write_access_leaves_read_access(acting: As, keep: Callable[..., StoredEntry]) -> None:
    kept = keep(access_control={"read": ["friend"], "write": ["friend"]})

    acting("keeper").post(f"/contexts/{kept.context}/revoke", {"agent_id": "friend", "level": "write"})

    assert statuses(reads(acting("friend"), kept)) == {200}
    assert statuses(writes(acting("friend"), kept)) == {403}


@pytest.fixture
def crews(acting: As) -> dict[str, str]:
    """Make two teams: one of `keeper` and `mate`, one of `rival`."""
    account = acting("")
    teams = {name: str(account.post("/teams", {"name": name}).json()["id"]) for name in ("ours", "theirs")}
    for name, agent_id in (("ours", "keeper"), ("ours", "mate"), ("theirs", "rival")):
        account.post(f"/teams/{teams[name]}/members", {"agent_id": agent_id})
    return teams


def test_a_team_context_is_written_by_members_and_managed_by_its_owner(
    acting: As, keep: Callable[..., StoredEntry], account: Account, crews: dict[str, str]
) -> None:
    kept, mate = keep(scope="team", team=crews["ours"]), acting("mate")

    shut_out(acting("rival"), account, "rival", kept)

    assert (listed(mate), found(account, "mate")) == ([kept.context], [SECRET])
    assert statuses(reads(mate, kept)) == {200}
    assert statuses(manages(mate, kept)) == {403}
    assert statuses(writes(mate, kept)) == {200, 201, 204}


def test_an_agent_that_leaves_a_team_loses_access_to_its_context(
    acting: As, keep: Callable[..., StoredEntry], account: Account, crews: dict[str, str]
) -> None:
    kept = keep(scope="team", team=crews["ours"])
    assert statuses(reads(acting("mate"), kept)) == {200}

    acting("").delete(f"/teams/{crews['ours']}/members/mate")

    shut_out(acting("mate"), account, "mate", kept)


def test_dissolving_a_team_ends_the_access_of_its_members(
    acting: As, keep: Callable[..., StoredEntry], account: Account, crews: dict[str, str]
) -> None:
    kept = keep(scope="team", team=crews["ours"])

    acting("").delete(f"/teams/{crews['ours']}")

    shut_out(acting("mate"), account, "mate", kept)
    assert statuses(reads(acting("keeper"), kept)) == {200}


def test_an_archived_context_can_be_read_but_not_written_or_searched_until_unarchived(
    acting: As, keep: Callable[..., StoredEntry], account: Account
) -> None:
    kept, keeper = keep(), acting("keeper")
    keeper.post(f"/contexts/{kept.context}/archive", {})
    before = state()

    answers = reads(keeper, kept)

    assert (statuses(answers), statuses(writes(keeper, kept))) == ({200}, {409})
    assert answers["search"].json()["results"] == []
    assert (found(account, "keeper"), found(account, ""), state()) == ([], [], before)

    keeper.post(f"/contexts/{kept.context}/unarchive", {})

    assert found(account, "keeper") == [SECRET]
    assert statuses(writes(keeper, kept)) == {200, 201, 204}


def test_archiving_a_context_gives_no_other_agent_access(
    acting: As, keep: Callable[..., StoredEntry], account: Account
) -> None:
    kept = keep()
    acting("keeper").post(f"/contexts/{kept.context}/archive", {})

    shut_out(acting("other"), account, "other", kept)


def test_writing_to_an_archived_context_with_read_access_is_a_403(acting: As, keep: Callable[..., StoredEntry]) -> None:
    kept = keep(scope="account")
    acting("keeper").post(f"/contexts/{kept.context}/archive", {})

    assert statuses(writes(acting("reader"), kept)) == {403}
