"""Tests of sharing: only the target reads a shared value, unchanged, until it is taken back or expires."""

import json
import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from memory import conf
from memory.errors import NotFound, TooLarge, Unprocessable
from memory.owner import Owner
from memory.tiers.agent_working import WorkingMemoryService
from memory_project.ids import uuid7
from memory_project.redis import AgentMemoryRef, agent_key, client
from tests.memory.expiries import left_of
from tests.memory.tiers.test_agent_working import HOSTILE_IDS, NARROWINGS
from tests.memory.tiers.test_working import names, values
from tests.properties import examples


@pytest.fixture
def account_id() -> UUID:
    return uuid7()


@pytest.fixture
def ana(account_id: UUID) -> WorkingMemoryService:
    return memory_of(account_id, "ana")


@pytest.fixture
def ben(account_id: UUID) -> WorkingMemoryService:
    return memory_of(account_id, "ben")


def memory_of(account_id: UUID, agent_id: str, **narrowing: str) -> WorkingMemoryService:
    return WorkingMemoryService(Owner(account_id=account_id, agent_id=agent_id), **narrowing)


@given(key=names, value=values)
@examples(100)
def test_a_shared_value_is_read_exactly(key: str, value: Any) -> None:
    account_id = uuid7()
    memory_of(account_id, "ana").share_with_agent("ben", key, value)

    read = memory_of(account_id, "ben").retrieve_shared("ana", key)

    # as JSON, since to Python 1 == 1.0 == True
    assert json.dumps(read, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_only_the_target_reads_it(account_id: UUID, ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", "secret")

    others = [memory_of(account_id, "carl"), memory_of(uuid7(), "ben"), ana]

    assert ben.retrieve_shared("ana", "key") == "secret"
    assert [other.find_shared("ana", "key") for other in others] == [None, None, None]


def test_sharing_is_not_mutual(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", 1)

    assert ana.find_shared("ben", "key") is None
    assert (ana.keys(), ben.keys()) == ([], [])


def test_only_shared_values_are_readable(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.store("shared", 1)
    ana.store("kept", 2)

    ana.share_stored("ben", "shared")

    assert (ben.retrieve_shared("ana", "shared"), ben.find_shared("ana", "kept")) == (1, None)


def test_a_shared_value_is_a_copy(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.store("key", "as it was")
    ana.share_stored("ben", "key")

    ana.store("key", "as it is")
    ana.store("other", 1)
    ana.clear()

    assert ben.retrieve_shared("ana", "key") == "as it was"


def test_sharing_again_replaces_it(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", "old", ttl_seconds=500)
    ana.share_with_agent("ben", "key", "new", ttl_seconds=50)

    found = ben.find_shared("ana", "key")

    assert found is not None
    assert found.value == "new"
    assert found.ttl_seconds in left_of(50)


def test_a_share_that_was_taken_back_is_gone(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", 1)
    ana.share_with_agent("carl", "key", 1)

    assert ana.take_back("ben", "key") is True

    assert (ben.find_shared("ana", "key"), ana.take_back("ben", "key")) == (None, False)
    assert ana.take_back("carl", "key") is True


def test_only_the_sharing_agent_can_take_a_share_back(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", 1)

    assert (ben.take_back("ben", "key"), ben.take_back("ana", "key")) == (False, False)

    assert ben.retrieve_shared("ana", "key") == 1


def test_a_stored_value_is_shared_for_its_remaining_life(
    account_id: UUID, ana: WorkingMemoryService, ben: WorkingMemoryService
) -> None:
    ana.store("key", 1, ttl=500)
    client().pexpire(agent_key(AgentMemoryRef(account_id=account_id, agent_id="ana"), "memory", "key"), 40_000)

    shared = ana.share_stored("ben", "key")

    found = ben.find_shared("ana", "key")
    assert found is not None
    assert shared.ttl_seconds in left_of(40)
    assert found.ttl_seconds in left_of(40)


def test_a_share_may_live_longer_or_shorter(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.store("key", 1, ttl=100)

    lives = [ana.share_stored("ben", "key", seconds).ttl_seconds for seconds in (10, 1_000)]
    ana.share_with_agent("ben", "other", 1)

    other = ben.find_shared("ana", "other")
    assert other is not None
    assert lives == [10, 1_000]
    assert other.ttl_seconds in left_of(conf.AGENT_MEMORY_TTL_SECONDS)


def test_an_expired_share_is_gone(account_id: UUID, ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", 1, ttl_seconds=1)

    time.sleep(1.05)

    assert (ben.find_shared("ana", "key"), ana.take_back("ben", "key")) == (None, False)
    assert list(client().scan_iter(f"account:{account_id}:*")) == []


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=str)
def test_a_share_is_not_readable_from_another_task(account_id: UUID, narrowing: dict[str, str]) -> None:
    memory_of(account_id, "ana", **narrowing).share_with_agent("ben", "key", "secret")

    read = [memory_of(account_id, "ben", **other).retrieve_shared("ana", "key") for other in NARROWINGS]

    assert read == ["secret" if other == narrowing else None for other in NARROWINGS]


def test_hostile_ids_read_only_their_own(account_id: UUID) -> None:
    for target in HOSTILE_IDS:
        for key in ("key", *HOSTILE_IDS):
            memory_of(account_id, "ana").share_with_agent(target, key, f"{key} for {target}")

    for target in HOSTILE_IDS:
        reader = memory_of(account_id, target)
        read = [reader.retrieve_shared("ana", key) for key in ("key", *HOSTILE_IDS)]
        assert read == [f"{key} for {target}" for key in ("key", *HOSTILE_IDS)]
        assert reader.find_shared("an", "key") is None


def test_a_missing_value_cannot_be_shared(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    ana.share_with_agent("ben", "key", "from before")

    with pytest.raises(NotFound):
        ana.share_stored("ben", "key")

    assert ben.retrieve_shared("ana", "key") == "from before"


def test_one_share_too_many_is_refused(
    ana: WorkingMemoryService, ben: WorkingMemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AGENT_MEMORY_VALUES", 1)
    ana.store("two", 2)
    ana.share_with_agent("ben", "one", 1)

    for share in (lambda: ana.share_with_agent("ben", "two", 2), lambda: ana.share_stored("ben", "two")):
        with pytest.raises(Unprocessable):
            share()

    ana.share_with_agent("carl", "two", 2)
    assert ben.find_shared("ana", "two") is None


def test_a_large_value_is_not_shared(ana: WorkingMemoryService, ben: WorkingMemoryService) -> None:
    with pytest.raises(TooLarge):
        ana.share_with_agent("ben", "key", "x" * conf.TIER_VALUE_BYTES)

    assert ben.find_shared("ana", "key") is None


@pytest.mark.parametrize("ttl_seconds", [0, 604_801])
def test_a_ttl_out_of_bounds_is_refused(ana: WorkingMemoryService, ttl_seconds: int) -> None:
    ana.store("key", 1)

    with pytest.raises(ValueError, match=r"^ttl_seconds must be from 1 to 604800$"):
        ana.share_with_agent("ben", "key", 1, ttl_seconds)
    with pytest.raises(ValueError, match=r"^ttl_seconds must be from 1 to 604800$"):
        ana.share_stored("ben", "key", ttl_seconds)


@pytest.mark.parametrize("agent_id", ["", "x" * 101, "a\x00b"])
def test_an_invalid_agent_is_refused(ana: WorkingMemoryService, agent_id: str) -> None:
    for call in (
        lambda: ana.share_with_agent(agent_id, "key", 1),
        lambda: ana.take_back(agent_id, "key"),
        lambda: ana.find_shared(agent_id, "key"),
    ):
        with pytest.raises(ValueError, match=r".+"):
            call()
