"""`/pools`: create, list, change, share and delete. `test_pool_isolation` tests who may do it."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, MemoryPool, TeamMember
from memory.models.access import MAX_GRANTS
from tests.api_client import ServiceClient, segment
from tests.hostile import HOSTILE_IDS, HOSTILE_SEGMENTS
from tests.memory.pools import make_team, pool_etag

pytestmark = pytest.mark.django_db

NOBODY = {"read": [], "write": [], "public_read": False}


@pytest.fixture
def board(bound_api: ServiceClient) -> str:
    """Return the id of a pool of the agent `assistant`."""
    made: str = bound_api.post("/pools", {"pool_id": "board", "scope": "agent", "data": {"a": 1}}).json()["pool_id"]
    return made


def ids(answer: Any) -> list[str]:
    return [pool["pool_id"] for pool in answer.json()["results"]]


# made


def test_a_pool_is_created_and_shown_without_its_data(bound_api: ServiceClient) -> None:
    made = bound_api.post("/pools", {"pool_id": "board", "data": {"a": "ü"}})

    assert (made.status_code, made["ETag"]) == (201, pool_etag(1))
    pool = {name: value for name, value in made.json().items() if name not in ("created_at", "updated_at")}
    assert pool == {
        "pool_id": "board",
        "pool_type": "shared",
        "scope": "account",
        "agent_id": "assistant",
        "team": None,
        "task_id": "",
        "workflow_run_id": "",
        "access_control": NOBODY,
        "version": 1,
        "expires_at": None,
        "entry_count": 1,
        "size_bytes": 10,
    }
    shown = bound_api.get("/pools/board")
    assert (shown.json(), shown["ETag"]) == (made.json(), pool_etag(1))


def test_a_pool_of_a_team_contains_the_id_of_the_team(api: ServiceClient, account: Account) -> None:
    team = make_team(account, agents=["planner"])
    expires_at = (timezone.now() + timedelta(days=1)).isoformat()
    body = {"pool_type": "team_shared", "team": str(team.id), "task_id": "task-1", "expires_at": expires_at}

    made = api.post("/pools", body | {"agent_id": "planner", "access_control": {"read": ["b", "a"]}}).json()

    assert (made["scope"], made["team"], made["task_id"]) == ("team", str(team.id), "task-1")
    assert (made["agent_id"], made["access_control"]) == ("planner", NOBODY | {"read": ["a", "b"]})
    assert made["expires_at"][:19] == expires_at[:19]


def test_a_pool_id_may_contain_any_character(api: ServiceClient) -> None:
    for pool_id in ("a/b", "data", "ü%2F?", "statistics"):
        assert api.post("/pools", {"pool_id": pool_id, "data": {"is": pool_id}}).status_code == 201

        assert api.get(f"/pools/{segment(pool_id)}").json()["pool_id"] == pool_id
        assert api.get(f"/pools/{segment(pool_id)}/data?path=/is").json()["data"] == pool_id


def test_creating_a_pool_with_an_id_in_use_is_a_conflict(api: ServiceClient, board: str) -> None:
    assert api.post("/pools", {"pool_id": board}).status_code == 409


def test_a_request_repeated_with_its_idempotency_key_creates_one_pool(api: ServiceClient) -> None:
    first, again = (api.post("/pools", {"data": {"a": 1}}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))

    assert (first.content, first["ETag"]) == (again.content, again["ETag"])
    assert MemoryPool.objects.count() == 1


BAD_FIELDS: list[dict[str, Any]] = [
    {"pool_type": "blackboard"},
    {"pool_type": "nonsense"},
    {"scope": "nonsense"},
    {"data": []},
    {"data": None},
    {"data": "x"},
    {"expires_at": "2099-01-01T00:00:00"},
    {"expires_at": "tomorrow"},
    {"expires_at": 4_000_000_000},
    {"team": "crew"},
    {"access_control": []},
    {"access_control": {"read": "ada"}},
    {"access_control": {"read": [""]}},
    {"access_control": {"write": [1]}},
    {"access_control": {"public_read": 1}},
    {"access_control": {"admin": ["ada"]}},
    {"access_control": {"read": ["x"] * (MAX_GRANTS + 1)}},
    {"version": 7},
    {"is_own": True},
]


@pytest.mark.parametrize("fields", BAD_FIELDS, ids=lambda fields: json.dumps(fields)[:40])
def test_an_invalid_field_is_named_in_the_refusal(api: ServiceClient, fields: dict[str, Any]) -> None:
    refused = api.post("/pools", fields)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, list(fields))
    assert not MemoryPool.objects.exists()


@pytest.mark.parametrize("pool_id", HOSTILE_IDS, ids=repr)
def test_an_invalid_id_is_refused(api: ServiceClient, pool_id: object) -> None:
    refused = api.post("/pools", json.dumps({"pool_id": pool_id}), content_type="application/json")

    assert refused.status_code == 400


@pytest.mark.parametrize("name", HOSTILE_SEGMENTS)
def test_an_invalid_id_in_a_path_is_refused(api: ServiceClient, name: str) -> None:
    assert {api.get(f"/pools/{name}{below}").status_code for below in ("", "/data", "/statistics")} == {400}


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "team"},
        {"scope": "task"},
        {"team": str(uuid4())},
        {"expires_at": "2020-01-01T00:00:00Z"},
    ],
)
def test_a_pool_that_breaks_a_rule_of_the_service_answers_422(api: ServiceClient, fields: dict[str, Any]) -> None:
    assert api.post("/pools", fields).status_code == 422


# listed


def test_pools_are_listed_newest_first_without_their_data(api: ServiceClient) -> None:
    for pool_id in ("one", "two", "three"):
        api.post("/pools", {"pool_id": pool_id, "data": {"secret": pool_id}})

    listed = api.get("/pools?page_size=2")

    assert ids(listed) == ["three", "two"]
    assert ids(api.get(listed.json()["next"].removeprefix("http://testserver"))) == ["one"]
    assert b"secret" not in listed.content


def test_a_list_is_filtered_by_type_scope_team_and_task(api: ServiceClient, account: Account) -> None:
    team = make_team(account)
    api.post("/pools", {"pool_id": "for all"})
    api.post("/pools", {"pool_id": "for the team", "scope": "team", "team": str(team.id)})
    api.post("/pools", {"pool_id": "for the task", "pool_type": "task_scoped", "task_id": "t/1"})

    assert ids(api.get("/pools?scope=account")) == ["for all"]
    assert ids(api.get(f"/pools?team={team.id}")) == ["for the team"]
    assert ids(api.get("/pools?pool_type=task_scoped")) == ids(api.get("/pools?task_id=t/1")) == ["for the task"]
    assert ids(api.get("/pools?pool_type=shared&task_id=t/1")) == []


@pytest.mark.parametrize("query", ["pool_type=x", "scope=x", "team=x", "pool=x", "version=1", "scope=team&scope=task"])
def test_an_unknown_filter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/pools?{query}").status_code == 400


def test_a_list_of_any_length_executes_two_statements(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """One of the two statements looks up the key."""
    for _another in range(5):
        api.post("/pools", {})

    with django_assert_num_queries(2):
        api.get("/pools")


# changed


def test_a_change_replaces_the_access_control_and_the_expiry_of_a_pool(bound_api: ServiceClient, board: str) -> None:
    bound_api.post("/pools/board/grant", {"agent_id": "ada", "level": "read"})
    ends = {"expires_at": "2999-01-01T02:00:00+02:00"}

    changed = bound_api.patch("/pools/board", {"access_control": {"public_read": True}} | ends)

    assert (changed.status_code, changed["ETag"]) == (200, pool_etag(3))
    assert changed.json()["access_control"] == NOBODY | {"public_read": True}
    assert changed.json()["expires_at"] == "2999-01-01T00:00:00Z"
    assert bound_api.patch("/pools/board", {"expires_at": None}).json()["expires_at"] is None


@pytest.mark.parametrize("fields", [{"scope": "global"}, {"pool_id": "x"}, {"data": {}}, {"access_control": None}])
def test_other_fields_of_a_pool_cannot_be_changed(api: ServiceClient, board: str, fields: dict[str, Any]) -> None:
    assert api.patch("/pools/board", fields).status_code == 400


def test_a_grant_adds_an_agent_to_the_access_control_and_a_revocation_removes_it(
    bound_api: ServiceClient, board: str
) -> None:
    granted = bound_api.post("/pools/board/grant", {"agent_id": "ada", "level": "write"})
    again = bound_api.post("/pools/board/grant", {"agent_id": "ada", "level": "read"})
    less = bound_api.post("/pools/board/revoke", {"agent_id": "ada", "level": "write"})
    revoked = bound_api.post("/pools/board/revoke", {"agent_id": "ada"})

    controls = [answer.json()["access_control"] for answer in (granted, again, less, revoked)]
    assert [(control["read"], control["write"]) for control in controls] == [
        ([], ["ada"]),
        (["ada"], ["ada"]),
        (["ada"], []),
        ([], []),
    ]
    assert (revoked.status_code, revoked["ETag"], revoked.json()["version"]) == (200, pool_etag(5), 5)


@pytest.mark.parametrize(
    "body",
    [{}, {"agent_id": "ada"}, {"level": "read"}, {"agent_id": "", "level": "read"}, {"agent_id": "a", "level": 1}],
)
def test_an_invalid_grant_is_refused(api: ServiceClient, board: str, body: dict[str, Any]) -> None:
    assert api.post("/pools/board/grant", body).status_code == 400


def test_a_grant_repeated_with_its_idempotency_key_is_written_once(api: ServiceClient, board: str) -> None:
    body = {"agent_id": "ada", "level": "read"}

    first, again = (api.post("/pools/board/grant", body, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))

    assert first.content == again.content
    assert api.get("/pools/board")["ETag"] == again["ETag"] == pool_etag(2)


def test_a_grant_beyond_the_maximum_is_refused(api: ServiceClient, board: str) -> None:
    names = [str(number) for number in range(MAX_GRANTS)]
    assert api.patch("/pools/board", {"access_control": {"read": names}}).status_code == 200

    assert api.post("/pools/board/grant", {"agent_id": "one more", "level": "read"}).status_code == 422


# conditional


STALE = '"7", W/"1"'
CONDITIONAL: list[tuple[str, str, dict[str, Any]]] = [
    ("patch", "", {"expires_at": None}),
    ("delete", "", {}),
    ("post", "/grant", {"agent_id": "ada", "level": "read"}),
    ("post", "/revoke", {"agent_id": "ada"}),
    ("put", "/data", {"data": {}}),
    ("patch", "/data", {"data": {"b": 1}}),
]


@pytest.mark.parametrize("named", [pool_etag, lambda version: f'"7", "{version}"'])
@pytest.mark.parametrize(("method", "below", "body"), CONDITIONAL)
def test_a_stale_if_match_is_refused_and_a_current_one_accepted(
    api: ServiceClient, board: str, method: str, below: str, body: dict[str, Any], named: Callable[[int], str]
) -> None:
    before = MemoryPool.objects.values().get()

    def send(tag: str) -> Any:
        return getattr(api, method)(f"/pools/board{below}", body or None, HTTP_IF_MATCH=tag)

    refused = send(STALE)
    assert (refused.status_code, refused.json()["code"]) == (412, "stale_version")
    assert MemoryPool.objects.values().get() == before
    assert send(named(1)).status_code in (200, 204)
    assert MemoryPool.objects.filter(version=1).count() == 0


def test_a_client_that_has_the_current_version_receives_304_without_a_body(api: ServiceClient, board: str) -> None:
    for path in ("/pools/board", "/pools/board/data"):
        known = api.get(path, HTTP_IF_NONE_MATCH=pool_etag(1))
        assert (known.status_code, known.content, known["ETag"]) == (304, b"", pool_etag(1))
        assert api.get(path, HTTP_IF_NONE_MATCH=pool_etag(2)).status_code == 200


def test_a_pool_recreated_with_the_same_id_has_other_etags(api: ServiceClient) -> None:
    api.post("/pools", {"pool_id": "board", "data": {"old": 1}})
    seen = api.get("/pools/board/data")["ETag"]
    api.delete("/pools/board")
    api.post("/pools", {"pool_id": "board", "data": {"new": 1}})

    for path in ("/pools/board", "/pools/board/data"):
        assert api.get(path, HTTP_IF_NONE_MATCH=seen).status_code == 200
    for method, below, body in CONDITIONAL:
        refused = getattr(api, method)(f"/pools/board{below}", body or None, HTTP_IF_MATCH=seen)
        assert refused.status_code == 412
    assert api.get("/pools/board/data").json()["data"] == {"new": 1}


# deleted


def test_a_deleted_pool_and_its_data_are_not_found(api: ServiceClient, board: str) -> None:
    assert api.delete("/pools/board").status_code == 204

    assert {api.get(f"/pools/board{below}").status_code for below in ("", "/data", "/statistics")} == {404}
    assert api.delete("/pools/board").status_code == 404


def test_dissolving_a_team_leaves_its_pool_to_the_owner(
    api: ServiceClient, bound_api: ServiceClient, account: Account
) -> None:
    team = make_team(account, agents=["assistant"])
    bound_api.post("/pools", {"pool_id": "deck", "scope": "team", "team": str(team.id)})

    api.delete(f"/teams/{team.id}")

    assert bound_api.get("/pools/deck").json()["team"] is None
    assert not TeamMember.objects.exists()


# statistics


def test_statistics_contain_entries_bytes_reads_writes_and_the_last_access(api: ServiceClient, board: str) -> None:
    untouched = api.get("/pools/board/statistics").json()
    api.get("/pools/board/data")
    api.patch("/pools/board/data", {"data": {"b": "ü"}})

    touched = api.get("/pools/board/statistics").json()

    assert untouched == {
        "pool_id": "board",
        "entry_count": 1,
        "size_bytes": 7,
        "limit_bytes": 1_048_576,
        "read_count": 0,
        "write_count": 0,
        "last_accessed_at": None,
    }
    assert touched.pop("last_accessed_at") is not None
    changed = {"entry_count": 2, "size_bytes": 16, "read_count": 1, "write_count": 1, "last_accessed_at": None}
    assert touched | {"last_accessed_at": None} == untouched | changed
