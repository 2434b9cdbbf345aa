"""Tests of an agent's working memory: types, expiries, separate memories per task and run, privacy."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from memory import conf
from memory.errors import TooLarge, Unprocessable
from memory.owner import Owner
from memory.tiers.agent_working import MAX_TTL_SECONDS, WorkingMemoryService
from memory.tiers.base import TierStats
from memory.tiers.named_values import StoredText
from memory_project.ids import uuid7
from memory_project.redis import AgentMemoryRef, agent_key, client, scan_agents
from tests.memory.expiries import left_of
from tests.memory.tiers.test_working import names, values
from tests.properties import examples
from tests.round_trips import counted_commands

HOSTILE_IDS = ("a", "a:b", "{a}", "%7Ba%7D", "a%3Ab", "}{", "}:", "*", "memory", ":", "a:memory", "ü 7/8")
NARROWINGS: tuple[dict[str, str], ...] = (
    {},
    {"task_id": "x"},
    {"workflow_run_id": "x"},
    {"task_id": "x", "workflow_run_id": "x"},
    {"task_id": "x:", "workflow_run_id": "x"},
    {"task_id": "x", "workflow_run_id": ":x"},
    {"task_id": ":"},
)


@pytest.fixture
def account_id() -> UUID:
    return uuid7()


@pytest.fixture
def memory(account_id: UUID) -> WorkingMemoryService:
    return WorkingMemoryService(Owner(account_id=account_id, agent_id="ana"))


def some_memory() -> WorkingMemoryService:
    return WorkingMemoryService(Owner(account_id=uuid7(), agent_id="ana"))


def ttl_of(memory: WorkingMemoryService, key: str) -> int:
    stored = memory.find(key)
    assert stored is not None
    return stored.ttl_seconds


def expire_now(account_id: UUID, key: str) -> None:
    """Make the value look expired: delete it, and give its name a past expiry."""
    ref = AgentMemoryRef(account_id=account_id, agent_id="ana")
    client().delete(agent_key(ref, "memory", key))
    client().zadd(agent_key(ref, "memory"), {key: 1})


@given(key=names, value=values)
@examples(100)
def test_any_json_value_comes_back_as_it_went_in(key: str, value: Any) -> None:
    memory = some_memory()

    memory.store(key, value)

    # as JSON, since to Python 1 == 1.0 == True
    assert json.dumps(memory.retrieve(key), sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(
    "value", ["123", 123, 1, 1.0, -0.0, 1e300, 10**30, True, None, "", "null", [], {}, {"a": [None, 1.0]}]
)
def test_types_are_not_mixed_up(memory: WorkingMemoryService, value: Any) -> None:
    memory.store("key", value)

    assert repr(memory.retrieve("key")) == repr(value)


def test_a_stored_none_differs_from_a_missing_value(memory: WorkingMemoryService) -> None:
    memory.store("nothing", None)

    stored = memory.find("nothing")

    assert stored is not None
    assert stored.value is None
    assert memory.find("missing") is None
    assert (memory.exists("nothing"), memory.exists("missing")) == (True, False)


def test_storing_a_key_again_replaces_its_value_and_expiry(memory: WorkingMemoryService) -> None:
    memory.store("key", "old", ttl=50)
    memory.store("key", "new", ttl=500)

    assert memory.retrieve("key") == "new"
    assert ttl_of(memory, "key") in left_of(500)


def test_a_value_lives_for_the_default_ttl(memory: WorkingMemoryService) -> None:
    memory.store("default", 1)
    memory.store("longest", 1, ttl=MAX_TTL_SECONDS)

    assert conf.AGENT_MEMORY_TTL_SECONDS == 3_600
    assert ttl_of(memory, "default") in left_of(3_600)
    assert ttl_of(memory, "longest") in left_of(604_800)


@pytest.mark.parametrize("ttl_seconds", [0, -1, MAX_TTL_SECONDS + 1])
def test_a_ttl_out_of_bounds_is_refused(memory: WorkingMemoryService, ttl_seconds: int) -> None:
    with pytest.raises(ValueError, match=r"^ttl_seconds must be from 1 to 604800$"):
        memory.store("key", 1, ttl=ttl_seconds)

    assert memory.keys() == []


def test_each_value_expires_by_itself(account_id: UUID, memory: WorkingMemoryService) -> None:
    memory.store("short", 1, ttl=5)
    memory.store("long", 2, ttl=500)
    expire_now(account_id, "short")

    assert (memory.retrieve("short"), memory.exists("short"), memory.retrieve("long")) == (None, False, 2)
    assert memory.keys() == ["long"]
    assert memory.expiries()["long"] in left_of(500)


def test_time_alone_makes_a_value_expire(account_id: UUID, memory: WorkingMemoryService) -> None:
    memory.store("short", 1, ttl=1)

    time.sleep(1.05)

    assert (memory.find("short"), memory.keys(), memory.stats().entries) == (None, [], 0)
    assert list(client().scan_iter(f"account:{account_id}:*")) == []


def test_reading_does_not_renew(memory: WorkingMemoryService, account_id: UUID) -> None:
    memory.store("key", 1, ttl=100)
    client().pexpire(agent_key(AgentMemoryRef(account_id=account_id, agent_id="ana"), "memory", "key"), 40_000)

    memory.retrieve("key")
    memory.append("list", 1)

    assert ttl_of(memory, "key") in left_of(40)


def test_a_removed_value_is_gone(memory: WorkingMemoryService) -> None:
    memory.store("key", 1)

    assert memory.remove("key") is True

    assert memory.remove("key") is False
    assert (memory.find("key"), memory.keys()) == (None, [])


def test_keys_come_in_order(memory: WorkingMemoryService) -> None:
    for key in ("b", "ü", "a", "B", "a:b"):
        memory.store(key, key)

    assert memory.keys() == ["B", "a", "a:b", "b", "ü"]


def test_clearing_returns_the_number_of_values(account_id: UUID, memory: WorkingMemoryService) -> None:
    for key in ("one", "two", "expired"):
        memory.store(key, key)
    expire_now(account_id, "expired")

    assert memory.clear() == 2

    assert (memory.clear(), memory.keys()) == (0, [])
    assert list(client().scan_iter(f"account:{account_id}:*")) == []


def test_stats_count_entries_and_bytes_of_names_and_json(account_id: UUID, memory: WorkingMemoryService) -> None:
    memory.store("ü", "ü")
    memory.store("list", [1, 2])
    memory.store("expired", "x" * 100)
    expire_now(account_id, "expired")

    # ü is 2 bytes, "ü" 4, list 4, [1,2] 5
    assert memory.stats() == TierStats(entries=2, size_bytes=2 + 4 + 4 + 5)


def test_one_value_too_many_is_refused(memory: WorkingMemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AGENT_MEMORY_VALUES", 2)
    memory.store("one", 1)
    memory.store("two", 2)

    for write in (memory.store, memory.append):
        with pytest.raises(Unprocessable, match=r"^at most 2 values are allowed; nothing was stored$"):
            write("three", 3)

    memory.store("two", "II")
    assert memory.keys() == ["one", "two"]


def test_concurrent_writers_cannot_pass_the_bound_together(
    memory: WorkingMemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AGENT_MEMORY_VALUES", 5)

    def write(number: int) -> bool:
        try:
            memory.store(f"value-{number}", number)
        except Unprocessable:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(write, range(40)))

    assert outcomes.count(True) == len(memory.keys()) == 5


def test_a_value_of_the_largest_size_is_stored_and_one_byte_more_is_not(memory: WorkingMemoryService) -> None:
    memory.store("fits", "ü" * (conf.TIER_VALUE_BYTES // 2 - 1))

    with pytest.raises(TooLarge) as refused:
        memory.store("large", "x" * (conf.TIER_VALUE_BYTES - 1))

    assert refused.value.facts == {"stored": False, "size_bytes": 65_537, "limit_bytes": 65_536}
    assert memory.keys() == ["fits"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "\ud800", {"\udfff": 1}])
def test_a_value_without_json_form_is_refused(memory: WorkingMemoryService, bad: Any) -> None:
    for write in (memory.store, memory.append):
        with pytest.raises(ValueError, match=r".+"):
            write("key", bad)

    assert memory.keys() == []


@pytest.mark.parametrize("name", ["", "n" * 201, "a\x00b", "\ud800"])
def test_an_invalid_name_is_refused(memory: WorkingMemoryService, name: str) -> None:
    for call in (
        lambda: memory.store(name, 1),
        lambda: memory.find(name),
        lambda: memory.exists(name),
        lambda: memory.remove(name),
        lambda: memory.append(name, 1),
    ):
        with pytest.raises(ValueError, match=r".+"):
            call()


def test_working_memory_needs_an_agent() -> None:
    with pytest.raises(ValueError, match=r"^working memory belongs to an agent"):
        WorkingMemoryService(Owner(account_id=uuid7()))


@pytest.mark.parametrize("bad", ["x" * 101, "a\x00b", "\ud800"])
@pytest.mark.parametrize("field", ["task_id", "workflow_run_id"])
def test_an_invalid_id_is_refused(field: str, bad: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        WorkingMemoryService(Owner(account_id=uuid7(), agent_id="ana"), **{field: bad})


def test_each_task_and_run_has_a_memory_of_its_own(account_id: UUID) -> None:
    owner = Owner(account_id=account_id, agent_id="ana")
    memories = [WorkingMemoryService(owner, **narrowing) for narrowing in NARROWINGS]

    for number, memory in enumerate(memories):
        memory.store("key", number)
        memory.store(f"only-{number}", number)

    assert [memory.retrieve("key") for memory in memories] == list(range(len(memories)))
    assert [memory.keys() for memory in memories] == [["key", f"only-{n}"] for n in range(len(memories))]


def test_clearing_one_memory_leaves_the_others(account_id: UUID) -> None:
    owner = Owner(account_id=account_id, agent_id="ana")
    memories = [WorkingMemoryService(owner, **narrowing) for narrowing in NARROWINGS]
    for memory in memories:
        memory.store("key", 1)

    for number, memory in enumerate(memories):
        assert memory.clear() == 1
        assert [other.exists("key") for other in memories[number + 1 :]] == [True] * (len(memories) - number - 1)


def test_workflow_memory_is_that_of_the_run(account_id: UUID) -> None:
    owner = Owner(account_id=account_id, agent_id="ana")
    WorkingMemoryService(owner).workflow_memory("run").store("key", "run")
    WorkingMemoryService(owner, task_id="task").workflow_memory("run").store("key", "task of the run")

    assert WorkingMemoryService(owner, workflow_run_id="run").retrieve("key") == "run"
    assert WorkingMemoryService(owner, task_id="task", workflow_run_id="run").retrieve("key") == "task of the run"
    assert WorkingMemoryService(owner).retrieve("key") is None


def test_other_agents_and_accounts_see_nothing(account_id: UUID, memory: WorkingMemoryService) -> None:
    memory.store("key", "secret")

    for owner in (Owner(account_id=account_id, agent_id="ben"), Owner(account_id=uuid7(), agent_id="ana")):
        other = WorkingMemoryService(owner)
        assert (other.find("key"), other.exists("key"), other.keys()) == (None, False, [])
        assert (other.remove("key"), other.clear(), other.stats().entries) == (False, 0, 0)

    assert memory.retrieve("key") == "secret"


def test_hostile_ids_name_memories_of_their_own(account_id: UUID) -> None:
    for agent_id in HOSTILE_IDS:
        WorkingMemoryService(Owner(account_id=account_id, agent_id=agent_id)).store(agent_id, agent_id)

    for agent_id in HOSTILE_IDS:
        memory = WorkingMemoryService(Owner(account_id=account_id, agent_id=agent_id))
        assert (memory.keys(), memory.retrieve(agent_id)) == ([agent_id], agent_id)


def test_staff_find_every_memory_of_the_account_and_no_other(account_id: UUID) -> None:
    places = [AgentMemoryRef(account_id=account_id, agent_id=hostile, task_id=hostile) for hostile in HOSTILE_IDS]
    places += [AgentMemoryRef(account_id=account_id, agent_id="ana", **narrowing) for narrowing in NARROWINGS]
    for ref in places:
        memory = WorkingMemoryService(
            Owner(account_id=account_id, agent_id=ref.agent_id),
            task_id=ref.task_id,
            workflow_run_id=ref.workflow_run_id,
        )
        memory.store("a:memory", 1)
        memory.share_with_agent("memory", "memory", 1)
    some_memory().store("key", 1)

    found, cursor = scan_agents(account_id=account_id, cursor=0)
    while cursor:
        more, cursor = scan_agents(account_id=account_id, cursor=cursor)
        found += more

    assert set(found) == set(places)


def test_every_call_is_one_round_trip(memory: WorkingMemoryService) -> None:
    saved = [StoredText(name="key", json="[1]", ttl_ms=10_000)]
    calls: list[Callable[[], object]] = [
        lambda: memory.store("key", [1]),
        lambda: memory.retrieve("key"),
        lambda: memory.find("key"),
        lambda: memory.exists("key"),
        lambda: memory.append("key", 2),
        memory.keys,
        memory.stats,
        memory.snapshot,
        lambda: memory.append_to_conversation("Hello"),
        lambda: memory.append_to_scratch_pad("Hello"),
        lambda: memory.share_with_agent("ben", "key", 1),
        lambda: memory.share_stored("ben", "key"),
        lambda: memory.find_shared("ben", "key"),
        lambda: memory.take_back("ben", "key"),
        lambda: memory.restore(saved),
        lambda: memory.remove("key"),
        memory.clear,
    ]
    for call in calls:
        call()

    with counted_commands() as commands:
        for call in calls:
            call()

    assert len(commands) == len(calls)
