"""`/working-memory/{conversation_id}`: fields, sizes in the answers, and agents behind their keys."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.models import Account, ApiKey
from memory.services.accounts.register import issue_key
from memory_project.redis import ConversationRef, client, conversation_key
from tests.api_client import ServiceClient, segment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

PATH = "/working-memory/c1"
LIMIT = conf.WORKING_MEMORY_LIMIT_BYTES


def store_fields(api: ServiceClient, data: Any, **acting: str) -> Any:
    return api.put(PATH, {"data": data, **acting})


def test_a_write_merges_fields_and_returns_the_new_size(api: ServiceClient) -> None:
    store_fields(api, {"one": 1})

    answer = store_fields(api, {"two": "2"})

    assert answer.status_code == 200
    assert answer.json().pop("memory_bytes") > 0
    # one 1 two "2"
    assert answer.json() | {"size_bytes": 3 + 1 + 3 + 3, "limit_bytes": LIMIT, "stored": True} == answer.json()
    assert answer.json()["ttl_seconds"] == conf.WORKING_MEMORY_TTL_SECONDS
    assert api.get(PATH).json() == {"one": 1, "two": "2"}


@pytest.mark.parametrize("path", [PATH, f"{PATH}?agent_id=assistant"], ids=["account", "agent"])
def test_a_key_of_another_type_is_no_outage_and_can_be_deleted(api: ServiceClient, account: Account, path: str) -> None:
    place = ConversationRef(account_id=account.id, conversation_id="c1")
    client().rpush(conversation_key("working_memory", place), "a")

    read, deleted = api.get(path), api.delete(path)

    assert (read.status_code, read.json()["code"]) == (409, "conflict")
    assert "another type" in read.json()["detail"]
    assert deleted.status_code == 204
    assert api.get(path).json() == {}


def test_json_values_keep_their_types(api: ServiceClient) -> None:
    data = {"a": "123", "b": 123, "c": None, "d": {"e": [True, 1.0, {}]}, "ü/ä": -0.0, "big": 2**80}

    store_fields(api, data)

    assert json.dumps(api.get(PATH).json(), sort_keys=True) == json.dumps(data, sort_keys=True)


def test_an_unknown_conversation_is_answered_with_an_empty_object(api: ServiceClient) -> None:
    answer = api.get("/working-memory/never-heard-of")

    assert (answer.status_code, answer.json()) == (200, {})


def test_a_conversation_of_another_account_is_answered_like_an_unknown_one(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    store_fields(api, {"secret": 1})

    theirs = stranger_api.get(PATH)
    stranger_api.delete(PATH)

    assert (theirs.status_code, theirs.content) == (200, stranger_api.get("/working-memory/unknown").content)
    assert api.get(PATH).json() == {"secret": 1}


def test_a_conversation_id_may_contain_slashes(api: ServiceClient) -> None:
    path = f"/working-memory/{segment('a/b {c} ü')}"

    api.put(path, {"data": {"n": 1}})

    assert api.get(path).json() == {"n": 1}


def test_fields_are_deleted_by_name(api: ServiceClient) -> None:
    store_fields(api, {"one": 1, "two": 2})

    answer = api.delete(PATH, {"fields": ["one", "unknown"]})

    assert (answer.status_code, answer.content) == (204, b"")
    assert api.get(PATH).json() == {"two": 2}


def test_a_delete_without_a_body_deletes_all_fields(api: ServiceClient) -> None:
    store_fields(api, {"one": 1, "two": 2})

    assert api.delete(PATH).status_code == 204

    assert api.get(PATH).json() == {}


@pytest.mark.parametrize(
    "body",
    [{"fields": []}, {"fields": None}, {}, {"fields": "one"}, {"fields": [1]}, {"fields": [""]}, {"field": ["one"]}],
)
def test_an_invalid_delete_body_deletes_nothing(api: ServiceClient, body: Any) -> None:
    store_fields(api, {"one": 1})

    answer = api.delete(PATH, body)

    assert answer.status_code == 400
    assert api.get(PATH).json() == {"one": 1}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": []},
        {"data": "text"},
        {"data": {"": 1}},
        {"data": {"n" * 201: 1}},
        {"data": {"a": 1}, "ttl": 5},
        {"data": {"a": 1}, "agent_id": ""},
        {"data": {"a": 1}, "agent_id": 7},
        {"data": {"a": 1}, "agent_id": "a" * 101},
    ],
)
def test_an_invalid_body_changes_nothing(api: ServiceClient, body: Any) -> None:
    answer = api.put(PATH, body)

    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert api.get(PATH).json() == {}


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        b'{"data": {"a": NaN}}',
        b'{"data": {"a": "\\u0000"}}',
        b'{"data": {"a\\u0000b": 1}}',
        b'{"data": {"a": "\\ud800"}}',
        b'{"data": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"data": {"a": ' + b"9" * 5_000 + b"}}",
        b'{"data": {"a": 1e999}}',
        b'{"data": {"a": "\xff"}}',
    ],
)
def test_a_hostile_body_changes_nothing(api: ServiceClient, body: bytes) -> None:
    answer = api.generic("PUT", PATH, body, content_type="application/json")

    assert answer.status_code == 400
    assert api.get(PATH).json() == {}


def test_an_unknown_query_parameter_is_refused(api: ServiceClient) -> None:
    assert api.get(f"{PATH}?agent=ana").status_code == 400


def test_fields_over_the_limit_are_stored_but_answered_with_413(api: ServiceClient) -> None:
    answer = store_fields(api, {"f": "x" * LIMIT})

    assert answer.status_code == 413
    assert answer.json() | {"stored": True, "size_bytes": LIMIT + 3, "limit_bytes": LIMIT} == answer.json()
    assert answer.json()["memory_bytes"] > LIMIT
    assert len(api.get(PATH).json()["f"]) == LIMIT


@pytest.mark.parametrize("before", [0, 3 * LIMIT])
def test_a_write_over_four_times_the_limit_stores_nothing(api: ServiceClient, before: int) -> None:
    store_fields(api, {"f": "x" * before})

    answer = store_fields(api, {"g": "x" * (4 * LIMIT - before), "f2": 1})

    assert answer.status_code == 413
    assert (answer.json()["stored"], answer.json()["code"]) == (False, "too_large")
    assert list(api.get(PATH).json()) == ["f"]


def test_agents_do_not_see_each_others_fields(api: ServiceClient) -> None:
    store_fields(api, {"whose": "account"})
    store_fields(api, {"whose": "ana"}, agent_id="ana")

    assert api.get(f"{PATH}?agent_id=ana").json() == {"whose": "ana"}
    assert api.get(f"{PATH}?agent_id=ben").json() == {"whose": "account"}


def test_an_agent_deletes_only_its_own_fields(api: ServiceClient) -> None:
    store_fields(api, {"whose": "account"})
    store_fields(api, {"whose": "ana", "more": 1}, agent_id="ana")

    api.delete(f"{PATH}?agent_id=ana", {"fields": ["whose"]})

    assert api.get(f"{PATH}?agent_id=ana").json() == {"whose": "account", "more": 1}


def test_a_bound_key_writes_the_fields_of_its_agent(api: ServiceClient, bound_api: ServiceClient) -> None:
    store_fields(bound_api, {"whose": "assistant"})

    assert api.get(f"{PATH}?agent_id=assistant").json() == {"whose": "assistant"}
    assert api.get(f"{PATH}?agent_id=ben").json() == {}


def test_a_bound_key_that_names_another_agent_is_refused(bound_api: ServiceClient) -> None:
    store_fields(bound_api, {"a": 1})
    answers = [
        bound_api.get(f"{PATH}?agent_id=ben"),
        store_fields(bound_api, {"a": 1}, agent_id="ben"),
        bound_api.delete(f"{PATH}?agent_id=ben"),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "wrong_agent")] * 3


def test_a_read_only_key_may_not_write(account: Account, client_for: Callable[[str], ServiceClient]) -> None:
    reader = client_for(issue_key(account, scopes=(ApiKey.Scope.READ,)).secret)

    assert store_fields(reader, {"a": 1}).status_code == 403
    assert reader.delete(PATH).status_code == 403
    assert reader.get(PATH).status_code == 200


def test_a_request_queries_postgresql_only_for_the_key(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store_fields(api, {"a": 1})

    with django_assert_num_queries(2):
        store_fields(api, {"b": 2})
        api.get(PATH)


def test_a_request_without_a_key_is_refused() -> None:
    assert ServiceClient().get(PATH).status_code == 401


def test_an_agent_is_created_by_its_first_write(
    api: ServiceClient,
    django_assert_num_queries: DjangoAssertNumQueries,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        store_fields(api, {"a": 1}, agent_id="newcomer")

    assert [agent["agent_id"] for agent in api.get("/agents").json()["results"]] == ["newcomer"]
    with django_assert_num_queries(1), django_capture_on_commit_callbacks(execute=True):
        store_fields(api, {"b": 2}, agent_id="newcomer")
