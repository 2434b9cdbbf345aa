"""Tests of short-term entries: upsert by agent, session and key; counted reads; expiry with and without cleanup."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.errors import NotFound, TooLarge
from memory.models import Account, Agent, AgentShortTermMemory, AuditEntry
from memory.models.short_term import ShortTermKey
from memory.owner import Owner
from memory.services.short_term import (
    ShortTermDraft,
    delete_entry,
    find_entry_by_id,
    read_entry,
    refresh_entry,
    store_entry,
)
from tests.concurrency import over_own_connection
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

DRAFT = ShortTermDraft(memory_key="plan", memory_value={"step": 1}, session_id="s1", ttl_seconds=60)
LATER = NOW + timedelta(seconds=60)
"""A time after the expiry."""


def store(owner: Owner, value: Any = 1, **changes: Any) -> AgentShortTermMemory:
    return store_entry(owner, replace(DRAFT, memory_value=value, **changes), now=NOW)


def read(owner: Owner, times: int = 1, *, now: Any = NOW) -> AgentShortTermMemory:
    entries = [read_entry(owner, ShortTermKey(key="plan", session_id="s1"), now=now) for _ in range(times)]
    return entries[-1]


def wait_beside(owner: Owner, *, session_id: str = "s1") -> AgentShortTermMemory:
    """Store an entry that waits for promotion, then write "new" under its key."""
    old = store(owner, "old", session_id=session_id)
    AgentShortTermMemory.objects.filter(id=old.id).update(access_count=3)
    store_entry(owner, replace(DRAFT, memory_value="new", session_id=session_id), now=LATER)
    return old


def count_of(entry: AgentShortTermMemory) -> int:
    return AgentShortTermMemory.objects.get(id=entry.id).access_count


def test_a_stored_entry_is_read_with_all_its_fields(owner: Owner) -> None:
    stored = store_entry(owner, replace(DRAFT, memory_type="reflection"), now=NOW)

    found = read(owner)

    assert (found.id, found.agent_id, found.session_id, found.memory_key) == (stored.id, "assistant", "s1", "plan")
    assert (found.memory_value, found.memory_type) == ({"step": 1}, "reflection")
    assert (found.ttl_seconds, found.expires_at, found.created_at) == (60, LATER, NOW)
    assert (found.access_count, found.last_accessed_at) == (1, NOW)


def test_an_entry_lives_for_an_hour_by_default() -> None:
    assert ShortTermDraft(memory_key="k", memory_value=1).ttl_seconds == conf.SHORT_TERM_TTL_SECONDS == 3_600


@pytest.mark.parametrize(
    "value",
    ["123", 123, 1.0, 1, True, None, "", [], {}, {"b": [None, {"a": 10**30}], "a": "ä\\u0000"}, 0.1, -0.0, "null"],
    ids=repr,
)
def test_values_of_every_type_come_back_exact(owner: Owner, value: Any) -> None:
    store(owner, value)

    assert json.dumps(read(owner).memory_value) == json.dumps(value)


def test_writing_again_replaces_value_type_and_time_and_keeps_the_count(owner: Owner) -> None:
    first = store(owner)
    read(owner)

    second = store_entry(owner, replace(DRAFT, memory_type="observation", ttl_seconds=90), now=NOW)

    assert (second.id, second.access_count, second.last_accessed_at) == (first.id, 1, NOW)
    assert (second.memory_value, second.memory_type) == ({"step": 1}, "observation")
    assert (second.ttl_seconds, second.expires_at) == (90, NOW + timedelta(seconds=90))


def test_sessions_and_agents_do_not_share_keys(owner: Owner) -> None:
    other = replace(owner, agent_id="planner")
    store(owner, "mine")
    store(owner, "elsewhere", session_id="s2")
    store(other, "theirs")

    assert (read(owner).memory_value, read(other).memory_value) == ("mine", "theirs")
    assert read_entry(owner, ShortTermKey(key="plan", session_id="s2"), now=NOW).memory_value == "elsewhere"
    with pytest.raises(NotFound):
        read_entry(owner, ShortTermKey(key="plan"), now=NOW)


def test_an_expired_entry_starts_again_as_if_the_cleaner_had_come(owner: Owner) -> None:
    store(owner)
    read(owner, 2)

    again = store_entry(owner, DRAFT, now=LATER)

    assert (again.access_count, again.last_accessed_at, again.created_at) == (0, None, LATER)


def test_an_expired_entry_keeps_waiting_for_promotion_next_to_the_new_one(owner: Owner) -> None:
    old = store(owner, "old")
    read(owner, 3)

    new = store_entry(owner, replace(DRAFT, memory_value="new"), now=LATER)

    assert (new.access_count, new.last_accessed_at, new.created_at) == (0, None, LATER)
    assert list(AgentShortTermMemory.objects.to_promote()) == [old]
    assert read(owner, now=LATER).memory_value == "new"
    assert list(AgentShortTermMemory.objects.visible_to(owner).live(NOW)) == [new]


@pytest.mark.parametrize("now", [NOW, LATER], ids=["by who is behind the times", "in time"])
def test_a_waiting_entry_is_not_read_refreshed_or_cleaned_up(owner: Owner, now: Any) -> None:
    old = wait_beside(owner)

    for act in (read_entry, refresh_entry):
        with pytest.raises(NotFound):
            act(owner, ShortTermKey(id=old.id), now=now)

    assert AgentShortTermMemory.objects.cleanup_expired(LATER) == 0
    assert count_of(old) == 3


def test_deleting_a_waiting_entry_keeps_the_new_value_of_its_key(owner: Owner) -> None:
    old = wait_beside(owner)

    with pytest.raises(NotFound):
        delete_entry(owner, ShortTermKey(id=old.id), now=LATER)

    assert AgentShortTermMemory.objects.get().memory_value == "new"


@pytest.mark.parametrize("by_id", [True, False])
def test_deleting_a_live_entry_deletes_the_waiting_one_of_its_key(owner: Owner, by_id: bool) -> None:
    old = wait_beside(owner)
    new = read(owner, now=LATER)

    if by_id:
        delete_entry(owner, ShortTermKey(id=new.id), now=LATER)
    else:
        delete_entry(owner, ShortTermKey(key="plan", session_id="s1"), now=LATER)

    assert not AgentShortTermMemory.objects.exists()
    deleted = AuditEntry.objects.get(operation="delete")
    assert (set(deleted.affected_ids), deleted.result_count) == ({str(old.id), str(new.id)}, 2)


def test_deleting_an_entry_leaves_other_keys_waiting(owner: Owner) -> None:
    wait_beside(owner, session_id="s2")
    wait_beside(replace(owner, agent_id="planner"))
    entry = store(owner)

    delete_entry(owner, ShortTermKey(id=entry.id), now=NOW)

    assert AgentShortTermMemory.objects.count() == 4


@pytest.mark.django_db(transaction=True)
def test_concurrent_writes_over_a_waiting_entry_leave_one_new_entry(owner: Owner) -> None:
    store(owner, "old")
    read(owner, 3)
    anew = partial(store_entry, owner, DRAFT, now=LATER)

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(over_own_connection, anew) for _ in range(8)]
        ids = {write.result().id for write in writing}

    assert len(ids) == 1
    assert sorted(AgentShortTermMemory.objects.values_list("superseded", "access_count")) == [(False, 0), (True, 3)]


def test_an_expired_entry_that_was_promoted_starts_again(owner: Owner) -> None:
    store(owner)
    read(owner, 3)
    AgentShortTermMemory.objects.update(promoted_at=NOW)

    again = store_entry(owner, DRAFT, now=LATER)

    assert (again.access_count, again.promoted_at) == (0, None)


def test_a_rewritten_entry_is_not_promoted_yet(owner: Owner) -> None:
    store(owner)
    AgentShortTermMemory.objects.update(promoted_at=NOW)

    assert store(owner, 2).promoted_at is None


@pytest.mark.parametrize("reads", [0, 3])
def test_an_expired_entry_is_not_found(owner: Owner, reads: int) -> None:
    entry = store(owner)
    if reads:
        read(owner, reads)

    for attempt in (
        partial(read, owner),
        partial(read_entry, owner, ShortTermKey(id=entry.id)),
        partial(refresh_entry, owner, ShortTermKey(id=entry.id)),
    ):
        with pytest.raises(NotFound):
            attempt(now=LATER)
    assert count_of(entry) == reads


def test_an_entry_is_readable_until_it_expires(owner: Owner) -> None:
    store(owner)

    assert read(owner, now=LATER - timedelta(microseconds=1)).memory_value == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_reads_lose_no_count(owner: Owner) -> None:
    entry = store(owner)

    with ThreadPoolExecutor(8) as threads:
        counted = [threads.submit(over_own_connection, partial(read, owner, 5)) for _ in range(8)]
        latest = [reading.result().access_count for reading in counted]

    assert max(latest) == count_of(entry) == 40


@pytest.mark.django_db(transaction=True)
def test_concurrent_writes_of_one_key_leave_one_entry(owner: Owner) -> None:
    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(over_own_connection, partial(store, owner, number)) for number in range(20)]
        ids = {write.result().id for write in writing}

    assert len(ids) == 1
    assert AgentShortTermMemory.objects.get().memory_value in range(20)


@pytest.mark.parametrize(("seconds", "lives"), [(None, 60), (600, 600), (1, 1)])
def test_refreshing_extends_the_life_from_now(owner: Owner, seconds: int | None, lives: int) -> None:
    entry = store(owner)
    soon = NOW + timedelta(seconds=59)

    refreshed = refresh_entry(owner, ShortTermKey(id=entry.id), ttl_seconds=seconds, now=soon)

    assert (refreshed.ttl_seconds, refreshed.expires_at) == (lives, soon + timedelta(seconds=lives))
    assert (refreshed.access_count, refreshed.memory_value) == (0, 1)


def test_refreshing_never_shortens_the_life_and_stores_the_given_ttl(owner: Owner) -> None:
    entry = store(owner)

    refreshed = refresh_entry(owner, ShortTermKey(id=entry.id), ttl_seconds=5, now=NOW)

    assert (refreshed.ttl_seconds, refreshed.expires_at) == (5, LATER)


@pytest.mark.parametrize("seconds", [0, -1, 2_592_001])
def test_a_ttl_of_zero_or_beyond_30_days_is_refused(owner: Owner, seconds: int) -> None:
    entry = store(owner)

    with pytest.raises(ValueError, match="ttl_seconds"):
        store(owner, ttl_seconds=seconds)
    with pytest.raises(ValueError, match="ttl_seconds"):
        refresh_entry(owner, ShortTermKey(id=entry.id), ttl_seconds=seconds, now=NOW)


@pytest.mark.parametrize("changes", [{"memory_key": ""}, {"memory_key": "k" * 201}, {"memory_type": "dream"}])
def test_an_invalid_key_or_type_is_refused(owner: Owner, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"name|dream"):
        store(owner, **changes)

    assert not AgentShortTermMemory.objects.exists()


def test_a_value_over_the_limit_changes_nothing(owner: Owner) -> None:
    store(owner, "small")

    with pytest.raises(TooLarge) as refused:
        store(owner, "x" * (conf.TIER_VALUE_BYTES - 1))

    assert refused.value.facts["size_bytes"] == conf.TIER_VALUE_BYTES + 1
    assert read(owner).memory_value == "small"
    assert store(owner, "x" * (conf.TIER_VALUE_BYTES - 2)).access_count == 1


def test_looking_at_an_entry_counts_no_access_and_finds_no_expired_one(owner: Owner) -> None:
    entry = store(owner)

    assert find_entry_by_id(owner, entry.id, now=NOW).memory_value == 1

    assert count_of(entry) == 0
    with pytest.raises(NotFound):
        find_entry_by_id(owner, entry.id, now=LATER)


def test_a_deleted_entry_is_gone(owner: Owner) -> None:
    store(owner)

    delete_entry(owner, ShortTermKey(key="plan", session_id="s1"), now=NOW)

    for again in (partial(delete_entry, owner, ShortTermKey(key="plan", session_id="s1")), partial(read, owner)):
        with pytest.raises(NotFound):
            again(now=NOW)


def test_deleting_an_expired_entry_raises_not_found_and_prevents_its_promotion(owner: Owner) -> None:
    entry = store(owner)
    read(owner, 3)

    with pytest.raises(NotFound):
        delete_entry(owner, ShortTermKey(id=entry.id), now=LATER)

    assert not AgentShortTermMemory.objects.exists()


def test_another_agent_and_another_account_find_nothing_and_change_nothing(owner: Owner, stranger: Account) -> None:
    entry = store(owner)
    others = [replace(owner, agent_id="planner"), Owner(account_id=stranger.id), replace(owner, account_id=stranger.id)]

    for other in others:
        for act in (read_entry, refresh_entry, delete_entry):
            with pytest.raises(NotFound):
                act(other, ShortTermKey(id=entry.id), now=NOW)
        with pytest.raises(NotFound):
            read(other)
        assert not AgentShortTermMemory.objects.visible_to(other).exists()
    assert count_of(entry) == 0


def test_the_account_sees_and_manages_entries_of_its_agents(owner: Owner) -> None:
    entry, account = store(owner), replace(owner, agent_id="")

    assert read_entry(account, ShortTermKey(id=entry.id), now=NOW).access_count == 1
    assert refresh_entry(account, ShortTermKey(id=entry.id), now=NOW).id == entry.id
    delete_entry(account, ShortTermKey(id=entry.id), now=NOW)

    assert not AgentShortTermMemory.objects.exists()


def test_the_cleanup_deletes_disposable_entries_in_one_statement(owner: Owner) -> None:
    store(owner)
    often = store(owner, session_id="s2")
    AgentShortTermMemory.objects.filter(id=often.id).update(access_count=3)

    assert AgentShortTermMemory.objects.cleanup_expired(LATER) == 1
    assert AgentShortTermMemory.objects.get() == often


def test_the_first_entry_creates_the_agent(
    owner: Owner, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        store(owner)

    assert Agent.objects.in_account(owner.account_id).filter(agent_id="assistant").exists()


def test_writes_are_in_the_audit_log_without_their_texts(owner: Owner) -> None:
    entry = store(owner, "secret")
    refresh_entry(owner, ShortTermKey(id=entry.id), now=NOW)
    delete_entry(owner, ShortTermKey(id=entry.id), now=NOW)

    entries = AuditEntry.objects.filter(memory_type="short_term").order_by("id")
    assert [found.operation for found in entries] == ["store", "update", "delete"]
    assert {(*found.affected_ids, found.session_id) for found in entries} == {(str(entry.id), "s1")}


def test_a_read_is_one_statement_and_a_write_three(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store(owner)

    with django_assert_num_queries(1):
        read(owner)
    # a savepoint's two, since the test is a transaction; what waits, the entry and its audit line
    with django_assert_num_queries(2 + 3):
        store(owner)
