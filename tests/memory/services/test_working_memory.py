"""Tests of saved working memory: values come back exactly, with their remaining time; shares count as writes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.errors import NotFound, Unprocessable
from memory.models import Account, Agent, AuditEntry, SavedWorkingMemory
from memory.owner import Owner
from memory.services.working_memory import load_from_database, persist_to_database, share_value
from memory.tiers.agent_working import SavedValues, WorkingMemoryService
from memory_project.ids import uuid7
from memory_project.redis import AgentMemoryRef, agent_key, client
from tests.memory.expiries import left_of
from tests.memory.tiers.test_agent_working import NARROWINGS
from tests.memory.tiers.test_working import names, values
from tests.properties import examples
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
LATER = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)


@pytest.fixture
def memory(owner: Owner) -> WorkingMemoryService:
    return WorkingMemoryService(owner)


def key_of(owner: Owner, key: str) -> str:
    return agent_key(AgentMemoryRef(account_id=owner.account_id, agent_id=owner.agent_id), "memory", key)


def contents(memory: WorkingMemoryService) -> dict[str, str]:
    return {stored.name: stored.json for stored in memory.snapshot()}


@given(stored=st.dictionaries(names, values, max_size=4))
@examples(50)
def test_any_json_values_come_back_exactly(stored: dict[str, Any]) -> None:
    owner = Owner(account_id=Account.objects.create(name=str(uuid7())).id, agent_id="ana")
    memory = WorkingMemoryService(owner)
    for key, value in stored.items():
        memory.store(key, value)
    persist_to_database(owner, now=NOW)
    memory.clear()

    load_from_database(owner)

    found = memory.keys()
    # as JSON, since to Python 1 == 1.0 == True
    loaded = {key: memory.retrieve(key) for key in found}
    assert json.dumps(loaded, sort_keys=True) == json.dumps(stored, sort_keys=True)


@pytest.mark.parametrize(
    "value", ["123", 123, 1, 1.0, -0.0, 1e300, 10**30, True, None, "", [], {"b": 1.0, "a": [None]}]
)
def test_types_and_order_are_preserved(owner: Owner, memory: WorkingMemoryService, value: Any) -> None:
    memory.store("key", value)
    persist_to_database(owner, now=NOW)
    client().flushdb()

    load_from_database(owner)

    assert repr(memory.retrieve("key")) == repr(value)


def test_each_value_keeps_its_remaining_time(owner: Owner, memory: WorkingMemoryService) -> None:
    for key, left_ms in (("short", 40_500), ("long", 400_900)):
        memory.store(key, 1)
        client().pexpire(key_of(owner, key), left_ms)
    persist_to_database(owner, now=NOW)
    saved = {name: value["ttl_ms"] for name, value in SavedWorkingMemory.objects.get().values.items()}
    client().flushdb()

    load_from_database(owner)

    left = {stored.name: stored.ttl_ms for stored in memory.snapshot()}
    assert 20_500 < left["short"] <= saved["short"] <= 40_500
    assert 380_900 < left["long"] <= saved["long"] <= 400_900


def test_saving_returns_the_number_and_the_time(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("one", 1)
    memory.store("two", 2)

    saved = persist_to_database(owner, now=NOW)

    assert saved == load_from_database(owner) == SavedValues(count=2, saved_at=NOW)


def test_saving_replaces_the_values_saved_before(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("old", 1)
    persist_to_database(owner, now=NOW)
    memory.clear()
    memory.store("new", 2)

    saved = persist_to_database(owner, now=LATER)

    client().flushdb()
    assert saved == load_from_database(owner) == SavedValues(count=1, saved_at=LATER)
    assert contents(memory) == {"new": "2"}
    assert SavedWorkingMemory.objects.count() == 1


def test_an_empty_memory_is_saved_as_empty(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("key", 1)
    persist_to_database(owner, now=NOW)
    memory.clear()

    persist_to_database(owner, now=LATER)

    assert load_from_database(owner).count == 0
    assert memory.keys() == []


def test_loading_overwrites_its_names_and_keeps_the_rest(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("changed", "saved", ttl=500)
    persist_to_database(owner, now=NOW)
    memory.store("changed", ["meanwhile"], ttl=50)
    memory.store("added", 1, ttl=50)

    load_from_database(owner)

    assert contents(memory) == {"changed": '"saved"', "added": "1"}
    assert memory.expiries()["changed"] in left_of(500)
    assert memory.expiries()["added"] in left_of(50)


def test_saved_values_can_be_loaded_again(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("key", 1)
    persist_to_database(owner, now=NOW)

    for _ in range(2):
        memory.clear()
        load_from_database(owner)

    assert memory.retrieve("key") == 1


def test_loading_without_saved_values_is_refused(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("key", 1)

    with pytest.raises(NotFound):
        load_from_database(owner)

    assert memory.retrieve("key") == 1
    assert not Agent.objects.exists()


def test_never_more_than_the_limit_is_loaded(
    owner: Owner, memory: WorkingMemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.store("one", "saved")
    memory.store("two", "saved")
    persist_to_database(owner, now=NOW)
    memory.remove("two")
    memory.store("one", "meanwhile")
    memory.store("three", 3)
    monkeypatch.setattr(conf, "AGENT_MEMORY_VALUES", 2)

    with pytest.raises(Unprocessable):
        load_from_database(owner)

    assert contents(memory) == {"one": '"meanwhile"', "three": "3"}


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=str)
def test_each_task_and_run_is_saved_separately(owner: Owner, narrowing: dict[str, str]) -> None:
    WorkingMemoryService(owner, **narrowing).store("key", 1)

    persist_to_database(owner, **narrowing, now=NOW)

    client().flushdb()
    for other in NARROWINGS:
        if other != narrowing:
            with pytest.raises(NotFound):
                load_from_database(owner, **other)
    assert load_from_database(owner, **narrowing).count == 1
    assert WorkingMemoryService(owner, **narrowing).retrieve("key") == 1


def test_other_agents_and_accounts_load_nothing(owner: Owner, stranger: Account, memory: WorkingMemoryService) -> None:
    memory.store("key", "secret")
    persist_to_database(owner, now=NOW)

    for other in (
        Owner(account_id=owner.account_id, agent_id="ben"),
        Owner(account_id=stranger.id, agent_id=owner.agent_id),
    ):
        with pytest.raises(NotFound):
            load_from_database(other)
        persist_to_database(other, now=LATER)

    assert load_from_database(owner).count == 1


def test_saving_and_loading_are_in_the_audit_log(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("secret", "secret")

    persist_to_database(owner, now=NOW)
    persist_to_database(owner, now=LATER)
    load_from_database(owner)

    entries = AuditEntry.objects.filter(account_id=owner.account_id).order_by("id")
    saved_id = str(SavedWorkingMemory.objects.get().id)
    assert [(entry.operation, entry.memory_type, entry.affected_ids, entry.result_count) for entry in entries] == [
        ("persist", "working", [saved_id], 1),
        ("persist", "working", [saved_id], 1),
        ("load", "working", [saved_id], 1),
    ]
    assert "secret" not in str(entries.values())


def test_saving_and_loading_cost_a_round_trip_each(
    owner: Owner, memory: WorkingMemoryService, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    memory.store("key", 1)
    persist_to_database(owner, now=NOW)
    load_from_database(owner)

    # the row, its id and the audit log, between BEGIN and COMMIT
    with django_assert_num_queries(3 + 2), counted_commands() as saving:
        persist_to_database(owner, now=NOW)
    with django_assert_num_queries(2), counted_commands() as loading:
        load_from_database(owner)

    assert (len(saving), len(loading)) == (1, 1)


def test_a_stored_value_is_shared_in_one_round_trip(
    owner: Owner,
    memory: WorkingMemoryService,
    django_assert_num_queries: DjangoAssertNumQueries,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    memory.store("key", {"plan": 1.0}, ttl=100)
    with django_capture_on_commit_callbacks(execute=True):
        share_value(owner, "key", target_agent_id="ben")

    with django_assert_num_queries(0), counted_commands() as commands:
        shared = share_value(owner, "key", target_agent_id="ben")

    assert (shared.value, len(commands)) == ({"plan": 1.0}, 1)
    assert shared.ttl_seconds in left_of(100)
    assert Agent.objects.get().agent_id == owner.agent_id


def test_a_missing_value_cannot_be_shared(owner: Owner) -> None:
    with pytest.raises(NotFound):
        share_value(owner, "key", target_agent_id="ben")

    assert not Agent.objects.exists()


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=str)
def test_a_value_is_shared_from_the_memory_that_has_it(owner: Owner, narrowing: dict[str, Any]) -> None:
    WorkingMemoryService(owner, **narrowing).store("key", 1)

    share_value(owner, "key", target_agent_id="ben", **narrowing)

    ben = Owner(account_id=owner.account_id, agent_id="ben")
    read = [WorkingMemoryService(ben, **other).retrieve_shared(owner.agent_id, "key") for other in NARROWINGS]
    assert read == [1 if other == narrowing else None for other in NARROWINGS]
