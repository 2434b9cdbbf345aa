"""`/contexts`: create, find, change, archive and share, each answer with its ETag."""

from typing import Any
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, PersistentContext
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db

NEW: dict[str, Any] = {
    "name": "notes on wells",
    "description": "what we learned",
    "context_type": "knowledge_base",
    "scope": "account",
    "access_control": {"read": ["reader"], "write": [], "public_read": False},
    "metadata": {"a": [1, None]},
}


@pytest.fixture
def made(bound_api: ServiceClient) -> dict[str, Any]:
    context: dict[str, Any] = bound_api.post("/contexts", NEW).json()
    return context


@pytest.fixture
def other_api(account: Account) -> ServiceClient:
    return ServiceClient(issue_key(account, scopes=["read", "write"], agent_id="other").secret)


def names(answer: Any) -> list[str]:
    return [context["name"] for context in answer.json()["results"]]


def test_a_context_is_created_and_read_as_it_was_sent(bound_api: ServiceClient) -> None:
    made = bound_api.post("/contexts", NEW)
    found = bound_api.get(f"/contexts/{made.json()['id']}")

    assert (made.status_code, made["ETag"]) == (201, '"1"')
    assert (found.content, found["ETag"]) == (made.content, made["ETag"])
    assert made.json() | NEW == made.json()
    assert (made.json()["agent_id"], made.json()["archived"], made.json()["team"]) == ("assistant", False, None)


def test_only_the_name_of_a_context_is_required(api: ServiceClient) -> None:
    made = api.post("/contexts", {"name": "notes"}).json()

    assert (made["scope"], made["context_type"], made["agent_id"], made["metadata"]) == (
        "agent",
        "agent_memory",
        "",
        {},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"name": None},
        {"name": ""},
        {"name": " \t"},
        {"name": "x" * 201},
        {"name": 7},
        {"context_type": "diary"},
        {"scope": "task"},
        {"access_control": {"read": "all"}},
        {"access_control": {"delete": []}},
        {"team": "crew"},
        {"metadata": []},
        {"metadata": {"a": "x" * 70_000}},
        {"description": "x" * 10_001},
        {"agent_id": ""},
        {"archived": True},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_invalid_context_is_refused_and_not_created(api: ServiceClient, change: dict[str, Any]) -> None:
    refused = api.post("/contexts", {**NEW, **change})

    assert refused.status_code == 400
    assert [name.split(".")[0] for name in refused.json()["errors"]] == list(change)
    assert not PersistentContext.objects.exists()


@pytest.mark.parametrize(
    "change", [{"scope": "team"}, {"team": str(UUID(int=1))}, {"scope": "team", "team": str(UUID(int=1))}]
)
def test_a_scope_that_does_not_match_the_team_is_refused(api: ServiceClient, change: dict[str, Any]) -> None:
    assert api.post("/contexts", {**NEW, **change}).status_code == 422


def test_a_second_context_of_the_same_name_is_a_conflict(bound_api: ServiceClient, made: dict[str, Any]) -> None:
    other = bound_api.post("/contexts", {"name": "other"}).json()

    assert bound_api.post("/contexts", NEW).status_code == 409
    assert bound_api.patch(f"/contexts/{other['id']}", {"name": NEW["name"]}).status_code == 409


def test_a_request_repeated_with_one_idempotency_key_creates_one_context(bound_api: ServiceClient) -> None:
    answers = [bound_api.post("/contexts", NEW, HTTP_IDEMPOTENCY_KEY="k") for _again in range(2)]

    assert (answers[0].content, answers[0]["ETag"]) == (answers[1].content, answers[1]["ETag"])
    assert PersistentContext.objects.count() == 1


def test_contexts_are_listed_newest_first_in_pages(bound_api: ServiceClient) -> None:
    for number in range(3):
        bound_api.post("/contexts", {"name": f"number {number}"})

    first = bound_api.get("/contexts?page_size=2")
    rest = bound_api.get(first.json()["next"].split("/api/v1", 1)[1])

    assert names(first) + names(rest) == ["number 2", "number 1", "number 0"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("context_type=tool_cache", ["cache"]),
        ("scope=team", ["crew's"]),
        ("archived=true", ["old"]),
        ("archived=false", ["crew's", "cache"]),
        ("name=crew%27s", ["crew's"]),
        ("team={team}", ["crew's"]),
        (f"team={UUID(int=1)}", []),
    ],
)
def test_lists_of_contexts_are_filtered(api: ServiceClient, query: str, found: list[str]) -> None:
    team = api.post("/teams", {"name": "crew"}).json()["id"]
    old = api.post("/contexts", {"name": "old"}).json()["id"]
    api.post(f"/contexts/{old}/archive", {})
    api.post("/contexts", {"name": "cache", "context_type": "tool_cache"})
    api.post("/contexts", {"name": "crew's", "scope": "team", "team": team})

    assert names(api.get(f"/contexts?{query.format(team=team)}")) == found


@pytest.mark.parametrize("query", ["scope=pool", "archived=1", "team=crew", "context_type=", "color=red", "name=%00"])
def test_invalid_filters_of_contexts_are_refused(api: ServiceClient, query: str) -> None:
    answer = api.get(f"/contexts?{query}")

    # an empty filter is none
    assert answer.status_code == (200 if query.endswith("=") else 400)


def test_changing_a_context_increments_its_etag_and_leaves_other_fields(
    bound_api: ServiceClient, made: dict[str, Any]
) -> None:
    changes = {"description": "", "metadata": {}, "access_control": {"public_read": True}}
    changed = bound_api.patch(f"/contexts/{made['id']}", changes, HTTP_IF_MATCH='"1"')

    assert (changed.status_code, changed["ETag"]) == (200, '"2"')
    assert changed.json()["access_control"] == {"read": [], "write": [], "public_read": True}
    assert {name for name in made if made[name] != changed.json()[name]} == {*changes, "version", "updated_at"}


@pytest.mark.parametrize("change", [{"name": ""}, {"scope": "team"}, {"access_control": {"read": [""]}}], ids=str)
def test_an_invalid_change_of_a_context_is_refused(
    bound_api: ServiceClient, made: dict[str, Any], change: dict[str, Any]
) -> None:
    assert bound_api.patch(f"/contexts/{made['id']}", change).status_code == 400
    assert bound_api.get(f"/contexts/{made['id']}").json() == made


def test_a_request_with_a_stale_etag_changes_nothing(bound_api: ServiceClient, made: dict[str, Any]) -> None:
    path, grant = f"/contexts/{made['id']}", {"agent_id": "friend", "level": "read"}
    bound_api.patch(path, {"description": "newer"})
    before = bound_api.get(path).content

    answers = [
        bound_api.patch(path, {"name": "x"}, HTTP_IF_MATCH='"1"'),
        bound_api.post(f"{path}/archive", {}, HTTP_IF_MATCH='"1"'),
        bound_api.post(f"{path}/unarchive", {}, HTTP_IF_MATCH='"1"'),
        bound_api.post(f"{path}/grant", grant, HTTP_IF_MATCH='"1"'),
        bound_api.post(f"{path}/revoke", grant, HTTP_IF_MATCH='"1"'),
    ]

    assert [answer.status_code for answer in answers] == [412] * 5
    assert bound_api.get(path).content == before


def test_a_client_with_the_current_etag_gets_a_304(bound_api: ServiceClient, made: dict[str, Any]) -> None:
    answer = bound_api.get(f"/contexts/{made['id']}", HTTP_IF_NONE_MATCH='"1"')

    assert (answer.status_code, answer.content) == (304, b"")


def test_a_context_is_archived_and_unarchived(bound_api: ServiceClient, made: dict[str, Any]) -> None:
    path = f"/contexts/{made['id']}"

    archived = bound_api.post(f"{path}/archive", {}).json()
    back = bound_api.post(f"{path}/unarchive", {}).json()

    assert (archived["archived"], archived["version"], back["archived"], back["version"]) == (True, 2, False, 3)


def test_access_is_granted_and_revoked(bound_api: ServiceClient, made: dict[str, Any]) -> None:
    path = f"/contexts/{made['id']}"

    granted = bound_api.post(f"{path}/grant", {"agent_id": "friend", "level": "write"})
    revoked = bound_api.post(f"{path}/revoke", {"agent_id": "reader"})

    assert granted.json()["access_control"] == {"read": ["reader"], "write": ["friend"], "public_read": False}
    assert revoked.json()["access_control"] == {"read": [], "write": ["friend"], "public_read": False}
    assert (granted["ETag"], revoked["ETag"]) == ('"2"', '"3"')


@pytest.mark.parametrize("body", [{}, {"agent_id": "x"}, {"agent_id": "x", "level": "own"}, {"level": "read"}], ids=str)
def test_a_grant_without_an_agent_or_a_valid_level_is_refused(
    bound_api: ServiceClient, made: dict[str, Any], body: Any
) -> None:
    assert bound_api.post(f"/contexts/{made['id']}/grant", body).status_code == 400


def test_an_agent_with_read_access_cannot_change_a_context(
    bound_api: ServiceClient, other_api: ServiceClient, made: dict[str, Any]
) -> None:
    path, grant = f"/contexts/{made['id']}", {"agent_id": "other", "level": "write"}

    answers = [
        other_api.patch(path, {"name": "mine"}),
        *(other_api.post(f"{path}/{action}", {}) for action in ("archive", "unarchive")),
        *(other_api.post(f"{path}/{action}", grant) for action in ("grant", "revoke")),
    ]

    assert other_api.get(path).status_code == 200
    assert [answer.status_code for answer in answers] == [403] * 5
    assert bound_api.get(path).json() == made


def test_an_api_key_bound_to_an_agent_cannot_act_for_another(bound_api: ServiceClient, made: dict[str, Any]) -> None:
    assert bound_api.post("/contexts", {"name": "x", "agent_id": "other"}).status_code == 403
    assert bound_api.get(f"/contexts/{made['id']}?agent_id=other").status_code == 403


def test_a_read_only_api_key_can_read_but_not_change_a_context(account: Account, made: dict[str, Any]) -> None:
    reads = ServiceClient(issue_key(account, scopes=["read"], agent_id="assistant").secret)

    assert reads.get(f"/contexts/{made['id']}").status_code == 200
    assert reads.patch(f"/contexts/{made['id']}", {"name": "x"}).status_code == 403


def test_reading_a_context_or_a_list_takes_two_queries(
    bound_api: ServiceClient, made: dict[str, Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for path in (f"/contexts/{made['id']}", "/contexts"):
        with django_assert_num_queries(2):  # the key, and one statement behind the wall
            bound_api.get(path)


def test_a_context_is_deleted_with_its_entries_by_those_who_manage_it(
    bound_api: ServiceClient, other_api: ServiceClient, made: dict[str, Any]
) -> None:
    bound_api.post(f"/contexts/{made['id']}/entries", {"key": "k", "content": "The keel is whole."})

    refused = other_api.delete(f"/contexts/{made['id']}")
    deleted = bound_api.delete(f"/contexts/{made['id']}")

    assert (refused.status_code, deleted.status_code, deleted.content) == (403, 204, b"")
    assert bound_api.get(f"/contexts/{made['id']}").status_code == 404
