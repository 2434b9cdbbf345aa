"""Agents' working memory over HTTP: values, shared copies, and saved values."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.models import Account, Agent, SavedWorkingMemory
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from memory.tiers.agent_working import WorkingMemoryService
from memory_project import redis
from tests.api_client import ServiceClient, segment
from tests.hostile import HOSTILE_SEGMENTS
from tests.memory.api.test_contract_paths import STRANGE_IDS
from tests.memory.expiries import left_of
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

PATH = "/agents/ana/working-memory"
SHARED = "/agents/ben/shared-memory/ana"
NARROWINGS: tuple[dict[str, str], ...] = (
    {},
    {"task_id": "x"},
    {"workflow_run_id": "x"},
    {"task_id": "x", "workflow_run_id": "x"},
)


def of_memory(commands: list[str]) -> list[str]:
    """Leave out the count of the key's requests, with which each request begins."""
    return [command for command in commands if ":value:rate:" not in command]


def time_left(value: dict[str, Any], *, of: int) -> int:
    """Return the seconds left of a value that was just stored."""
    left: int = value["ttl_seconds"]
    assert left in left_of(of)
    return left


def query_of(narrowing: dict[str, str]) -> str:
    return "?" + "&".join(f"{name}={value}" for name, value in narrowing.items())


@pytest.mark.parametrize("value", ["123", 123, 1.0, 10**30, True, None, "", [], {"b": 1.0, "a": [None]}])
def test_a_value_comes_back_as_it_was_sent(api: ServiceClient, value: Any) -> None:
    stored = api.put(f"{PATH}/key", {"value": value, "ttl_seconds": 60})

    found = api.get(f"{PATH}/key")

    assert (stored.status_code, found.status_code) == (200, 200)
    assert stored.json() == {"key": "key", "value": value, "ttl_seconds": 60}
    assert found.json() == stored.json() | {"ttl_seconds": time_left(found.json(), of=60)}
    assert repr(stored.json()["value"]) == repr(found.json()["value"]) == repr(value)


def test_keys_are_listed_in_order(api: ServiceClient) -> None:
    for key, seconds in (("b", 200), ("a", 100)):
        api.put(f"{PATH}/{key}", {"value": key, "ttl_seconds": seconds})

    keys = api.get(PATH).json()["keys"]
    lefts = [time_left(each, of=seconds) for each, seconds in zip(keys, (100, 200), strict=True)]
    assert keys == [{"key": key, "ttl_seconds": left} for key, left in zip("ab", lefts, strict=True)]


def test_head_answers_whether_a_value_exists(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": None})

    heads = [api.head(f"{PATH}/{key}") for key in ("key", "missing")]

    assert [head.status_code for head in heads] == [200, 404]
    assert heads[0].content == b""


def test_a_deleted_value_is_gone_and_deleting_it_again_is_no_error(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": 1})

    answers = [api.delete(f"{PATH}/key").status_code for _ in range(2)]

    assert (answers, api.get(f"{PATH}/key").status_code) == ([204, 204], 404)


def test_clearing_working_memory_deletes_all_values(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": 1})

    cleared = api.delete(PATH)

    assert (cleared.status_code, api.get(PATH).json()) == (204, {"keys": []})


def test_an_appended_value_is_added_to_the_list(api: ServiceClient) -> None:
    begun = api.post(f"{PATH}/list/append", {"value": 1.0})
    added = api.post(f"{PATH}/list/append", {"value": "1"})

    assert [answer.status_code for answer in (begun, added)] == [200, 200]
    assert repr(added.json()["value"]) == repr(api.get(f"{PATH}/list").json()["value"]) == "[1.0, '1']"


def test_a_value_appended_twice_with_one_idempotency_key_is_added_once(api: ServiceClient) -> None:
    answers = [api.post(f"{PATH}/list/append", {"value": 1}, HTTP_IDEMPOTENCY_KEY="once") for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert api.get(f"{PATH}/list").json()["value"] == [1]


def test_appending_to_an_object_is_refused(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": {"a": 1}})

    refused = api.post(f"{PATH}/key/append", {"value": 1})

    assert (refused.status_code, refused.json()["code"]) == (422, "unprocessable")
    assert api.get(f"{PATH}/key").json()["value"] == {"a": 1}


def test_a_value_that_is_too_large_is_not_stored(api: ServiceClient) -> None:
    large = "x" * conf.TIER_VALUE_BYTES
    api.put(f"{PATH}/text", {"value": large[:-2]})

    refusals = [api.put(f"{PATH}/key", {"value": large}), api.post(f"{PATH}/text/append", {"value": "x"})]

    assert [refused.status_code for refused in refusals] == [413, 413]
    assert [refused.json()["stored"] for refused in refusals] == [False, False]
    assert [given["key"] for given in api.get(PATH).json()["keys"]] == ["text"]


def test_one_value_too_many_is_refused(api: ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AGENT_MEMORY_VALUES", 1)
    api.put(f"{PATH}/one", {"value": 1})

    refused = api.put(f"{PATH}/two", {"value": 2})

    assert (refused.status_code, api.get(f"{PATH}/two").status_code) == (422, 404)


@pytest.mark.parametrize(
    "change", [{"ttl_seconds": 0}, {"ttl_seconds": 604_801}, {"ttl_seconds": "9"}, {"task_id": ""}]
)
def test_an_invalid_field_of_a_value_is_refused_by_name(api: ServiceClient, change: dict[str, Any]) -> None:
    refused = api.put(f"{PATH}/key", {"value": 1} | change)

    assert (refused.status_code, set(refused.json()["errors"])) == (400, set(change))


def test_a_value_is_required(api: ServiceClient) -> None:
    refusals = [api.put(f"{PATH}/key", {}), api.post(f"{PATH}/key/append", {}), api.post(f"{PATH}/key/share", {})]

    assert [refused.status_code for refused in refusals] == [400, 400, 400]


@pytest.mark.parametrize("raw", HOSTILE_SEGMENTS)
def test_an_invalid_key_in_the_path_is_a_400(api: ServiceClient, raw: str) -> None:
    assert api.put(f"{PATH}/{raw}", {"value": 1}).status_code == 400


def test_an_unknown_query_parameter_is_refused(api: ServiceClient) -> None:
    assert [api.get(f"{path}?colour=red").status_code for path in (PATH, f"{PATH}/key")] == [400, 400]


@pytest.mark.parametrize("strange", [*STRANGE_IDS, "persist", "load", "append", "share"])
def test_ids_and_keys_may_have_any_character(api: ServiceClient, strange: str) -> None:
    path = f"/agents/{segment(strange)}/working-memory"
    shared = f"/agents/{segment(strange)}/shared-memory/{segment(strange)}/{segment(strange)}"

    stored = api.put(f"{path}/{segment(strange)}", {"value": strange})
    api.post(f"{path}/{segment(strange)}/share", {"target_agent_id": strange})

    assert (stored.status_code, api.get(path).json()["keys"][0]["key"]) == (200, strange)
    assert api.get(f"{path}/{segment(strange)}").json()["value"] == strange
    assert api.get(shared).json()["value"] == strange


@pytest.mark.parametrize("key", ["persist", "load"])
def test_a_value_may_have_the_name_of_a_sub_path(api: ServiceClient, key: str) -> None:
    api.put(f"{PATH}/{key}", {"value": "kept"})

    found, head = api.get(f"{PATH}/{key}"), api.head(f"{PATH}/{key}")
    api.delete(f"{PATH}/{key}")

    assert (found.json()["key"], found.json()["value"], head.status_code) == (key, "kept", 200)
    assert api.get(f"{PATH}/{key}").status_code == 404


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=str)
def test_every_route_selects_the_working_memory_of_the_task_and_run(
    api: ServiceClient, narrowing: dict[str, str]
) -> None:
    api.put(f"{PATH}/key", {"value": ["secret"], **narrowing})
    api.post(f"{PATH}/key/append", {"value": 1, **narrowing})
    api.post(f"{PATH}/key/share", {"target_agent_id": "ben", **narrowing})

    for other in NARROWINGS:
        expected = 200 if other == narrowing else 404
        reads = [api.get(path + query_of(other)) for path in (f"{PATH}/key", f"{SHARED}/key")]
        assert [read.status_code for read in reads] == [expected, expected]
        assert len(api.get(PATH + query_of(other)).json()["keys"]) == (other == narrowing)


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=str)
def test_deleting_affects_only_the_working_memory_of_the_named_task_and_run(
    api: ServiceClient, narrowing: dict[str, str]
) -> None:
    for other in NARROWINGS:
        api.put(f"{PATH}/key", {"value": 1, **other})
        api.put(f"{PATH}/more", {"value": 1, **other})

    api.delete(f"{PATH}/key{query_of(narrowing)}")
    after_one = [len(api.get(PATH + query_of(other)).json()["keys"]) for other in NARROWINGS]
    api.delete(PATH + query_of(narrowing))
    after_all = [len(api.get(PATH + query_of(other)).json()["keys"]) for other in NARROWINGS]

    assert after_one == [1 if other == narrowing else 2 for other in NARROWINGS]
    assert after_all == [0 if other == narrowing else 2 for other in NARROWINGS]


def test_a_shared_value_is_a_copy_that_only_its_target_can_read(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": [1.0], "ttl_seconds": 60})
    shared = api.post(f"{PATH}/key/share", {"target_agent_id": "ben"})
    api.put(f"{PATH}/key", {"value": "changed"})

    read = api.get(f"{SHARED}/key")

    assert (shared.status_code, shared.json()) == (200, {"key": "key", "target_agent_id": "ben", "ttl_seconds": 60})
    assert read.json() == {"key": "key", "value": [1.0], "ttl_seconds": time_left(read.json(), of=60)}
    assert repr(read.json()["value"]) == "[1.0]"
    assert api.get("/agents/carl/shared-memory/ana/key").status_code == 404
    assert api.get("/agents/ana/shared-memory/ben/key").status_code == 404


def test_a_shared_copy_may_live_longer_than_its_original(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": 1, "ttl_seconds": 60})

    shared = api.post(f"{PATH}/key/share", {"target_agent_id": "ben", "ttl_seconds": 600})

    assert shared.json()["ttl_seconds"] == 600
    assert time_left(api.get(f"{SHARED}/key").json(), of=600)


def test_a_revoked_share_cannot_be_read_any_more(api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": 1})
    api.post(f"{PATH}/key/share", {"target_agent_id": "ben"})

    answers = [api.delete(f"{PATH}/key/share?target_agent_id=ben").status_code for _ in range(2)]

    assert (answers, api.get(f"{SHARED}/key").status_code) == ([204, 404], 404)


def test_an_absent_value_is_not_shared(api: ServiceClient) -> None:
    refused = api.post(f"{PATH}/key/share", {"target_agent_id": "ben"})

    assert refused.status_code == 404
    assert not Agent.objects.exists()


def test_revoking_a_share_requires_its_target(api: ServiceClient) -> None:
    assert api.delete(f"{PATH}/key/share").status_code == 400


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=str)
def test_saved_values_can_be_loaded_after_redis_lost_them(api: ServiceClient, narrowing: dict[str, str]) -> None:
    api.put(f"{PATH}/key", {"value": 1.0, "ttl_seconds": 60, **narrowing})
    saved = api.post(f"{PATH}/persist", narrowing)
    redis.client().flushdb()

    loaded = api.post(f"{PATH}/load", narrowing)

    assert (saved.status_code, saved.json()["values"], saved.content) == (200, 1, loaded.content)
    assert repr(api.get(f"{PATH}/key{query_of(narrowing)}").json()["value"]) == "1.0"
    others = [api.post(f"{PATH}/load", other).status_code for other in NARROWINGS if other != narrowing]
    assert others == [404, 404, 404]


def test_saving_working_memory_needs_no_body(api: ServiceClient) -> None:
    before = timezone.now()

    saved = api.post(f"{PATH}/persist")

    assert saved.json()["values"] == 0
    assert before <= SavedWorkingMemory.objects.get().saved_at <= timezone.now()


def test_too_many_saved_values_are_not_loaded(api: ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("one", "two"):
        api.put(f"{PATH}/{key}", {"value": 1})
    api.post(f"{PATH}/persist")
    api.delete(PATH)
    monkeypatch.setattr(conf, "AGENT_MEMORY_VALUES", 1)

    assert api.post(f"{PATH}/load").status_code == 422
    assert api.get(PATH).json() == {"keys": []}


def test_other_agents_and_accounts_cannot_see_or_change_working_memory(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    api.put(f"{PATH}/key", {"value": "secret"})
    api.post(f"{PATH}/key/share", {"target_agent_id": "ben"})
    api.post(f"{PATH}/persist")

    for client, path in ((api, "/agents/ben/working-memory"), (stranger_api, PATH)):
        assert client.get(path).json() == {"keys": []}
        assert [client.get(f"{path}/key").status_code, client.post(f"{path}/load").status_code] == [404, 404]
        assert client.delete(f"{path}/key/share?target_agent_id=ben").status_code == 404
        client.delete(path)
    assert stranger_api.get(f"{SHARED}/key").status_code == 404
    assert api.get(f"{PATH}/key").json()["value"] == api.get(f"{SHARED}/key").json()["value"] == "secret"


def test_an_api_key_bound_to_another_agent_is_refused_on_every_route(bound_api: ServiceClient) -> None:
    answers = [
        bound_api.get(PATH),
        bound_api.delete(PATH),
        bound_api.get(f"{PATH}/key"),
        bound_api.put(f"{PATH}/key", {"value": 1}),
        bound_api.delete(f"{PATH}/key"),
        bound_api.post(f"{PATH}/key/append", {"value": 1}),
        bound_api.post(f"{PATH}/key/share", {"target_agent_id": "assistant"}),
        bound_api.delete(f"{PATH}/key/share?target_agent_id=assistant"),
        bound_api.get(f"{SHARED}/key"),
        bound_api.post(f"{PATH}/persist"),
        bound_api.post(f"{PATH}/load"),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "wrong_agent")] * len(answers)


def test_a_bound_api_key_reads_values_shared_with_its_agent(api: ServiceClient, bound_api: ServiceClient) -> None:
    api.put(f"{PATH}/key", {"value": "given"})
    api.post(f"{PATH}/key/share", {"target_agent_id": "assistant"})

    assert bound_api.get("/agents/assistant/shared-memory/ana/key").json()["value"] == "given"
    assert bound_api.put("/agents/assistant/working-memory/key", {"value": 1}).status_code == 200


def test_a_read_only_api_key_cannot_write_working_memory(account: Account, api: ServiceClient) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)
    api.put(f"{PATH}/key", {"value": 1})

    writes = [
        reader.put(f"{PATH}/key", {"value": 2}),
        reader.delete(f"{PATH}/key"),
        reader.delete(PATH),
        reader.post(f"{PATH}/key/append", {"value": 2}),
        reader.post(f"{PATH}/key/share", {"target_agent_id": "ben"}),
        reader.post(f"{PATH}/load"),
    ]

    assert {refused.status_code for refused in writes} == {403}
    assert (reader.get(f"{PATH}/key").json()["value"], reader.head(f"{PATH}/key").status_code) == (1, 200)


def test_an_agent_is_created_by_its_first_value_and_not_by_a_read(
    api: ServiceClient, account: Account, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    api.get(f"{PATH}/key")
    before = Agent.objects.count()

    with django_capture_on_commit_callbacks(execute=True):
        api.put(f"{PATH}/key", {"value": 1})

    assert (before, Agent.objects.get(account=account).agent_id) == (0, "ana")


def test_python_and_http_see_the_same_working_memory(api: ServiceClient, account: Account) -> None:
    memory = WorkingMemoryService(Owner(account_id=account.id, agent_id="ana"), task_id="t")
    memory.store_scratch_pad("Check the keel.")

    assert api.get(f"{PATH}/scratch_pad?task_id=t").json()["value"] == "Check the keel."


def test_each_call_costs_one_query_for_the_api_key_and_one_redis_round_trip(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: api.put(f"{PATH}/key", {"value": [1]}),
        lambda: api.get(PATH),
        lambda: api.get(f"{PATH}/key"),
        lambda: api.post(f"{PATH}/key/append", {"value": 2}),
        lambda: api.post(f"{PATH}/key/share", {"target_agent_id": "ben"}),
        lambda: api.get(f"{SHARED}/key"),
        lambda: api.delete(f"{PATH}/key/share?target_agent_id=ben"),
        lambda: api.delete(f"{PATH}/key"),
        lambda: api.delete(PATH),
    ]
    for call in calls:
        call()

    with django_assert_num_queries(len(calls)), counted_commands() as commands:
        for call in calls:
            call()

    assert len(of_memory(commands)) == len(calls)
