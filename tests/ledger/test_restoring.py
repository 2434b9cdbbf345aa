"""Tests that a Redis that lost its data, or its latest changes, gets its ledgers back before it answers."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from ledger import store
from ledger.journal import (
    EPOCH,
    JOURNAL,
    RESTORED,
    JournalStep,
    LedgerChange,
    flush_journal,
    has_every_ledger,
    replay_changes,
    restore_all_ledgers,
    restore_ledger,
)
from ledger.models import Injection
from memory.models import Account
from memory_project.ids import uuid7
from memory_project.redis import ConversationRef, client
from tests.ledger.processes import start_python
from tests.properties import examples

committing = pytest.mark.django_db(transaction=True)
kept = pytest.mark.usefixtures("kept")


COPY = "copy:"


def lose_redis() -> None:
    client().flushdb()


changes = st.builds(
    LedgerChange,
    event=st.sampled_from(["marked", "marked", "evicted", "ended"]),
    item_key=st.sampled_from("abc"),
    value=st.sampled_from("123"),
)


def first_mark_since_reset(history: list[LedgerChange], item_key: str) -> str | None:
    """Compute the expected value item by item, from the last time that the item was taken out."""
    resets = [
        index
        for index, change in enumerate(history)
        if change.event == "ended" or (change.event == "evicted" and change.item_key == item_key)
    ]
    since = history[resets[-1] + 1 :] if resets else history
    marks = [change.value for change in since if change.event == "marked" and change.item_key == item_key]
    return marks[0] if marks else None


@given(history=st.lists(changes, max_size=30))
def test_replaying_agrees_with_an_item_by_item_replay(history: list[LedgerChange]) -> None:
    ledger = replay_changes(history)

    assert {item: ledger.get(item) for item in "abc"} == {item: first_mark_since_reset(history, item) for item in "abc"}


@committing
@kept
def test_a_check_after_a_redis_loss_still_returns_the_marked_value(conversation: ConversationRef) -> None:
    store.mark_many(conversation, {"a": "1", "b": "2", "c": "3"})
    store.evict(conversation, "b")
    flush_journal(100)

    lose_redis()

    assert store.check(conversation, "a") == "1"
    assert store.get_all(conversation) == {"a": "1", "c": "3"}
    assert store.mark(conversation, "c", "4") == store.Mark(value="3", first=False)
    assert store.mark(conversation, "b", "5").first


@committing
@kept
def test_changes_after_a_loss_survive_another_restore(conversation: ConversationRef) -> None:
    store.mark_many(conversation, {"a": "1", "b": "2"})
    flush_journal(100)
    lose_redis()

    store.evict(conversation, "a")
    restore_ledger(conversation)
    restore_all_ledgers()

    assert store.get_all(conversation) == {"b": "2"}


@committing
@kept
def test_a_lost_epoch_loses_no_change_that_is_not_yet_a_row(conversation: ConversationRef) -> None:
    store.mark_many(conversation, {"a": "1", "b": "2"})
    flush_journal(100)
    store.evict(conversation, "a")
    store.mark(conversation, "c", "3")
    client().delete(EPOCH)

    assert store.get_all(conversation) == {"b": "2", "c": "3"}


@committing
def test_a_new_installation_starts_with_an_epoch_and_nothing_else() -> None:
    assert restore_all_ledgers() == JournalStep(examined=0, changed=0)

    assert has_every_ledger()
    assert client().keys() == [EPOCH]


@committing
@kept
def test_all_ledgers_are_restored_together(account: Account) -> None:
    places = [ConversationRef(account_id=account.id, conversation_id=f"call {number}") for number in range(5)]
    for number, conversation in enumerate(places):
        store.mark(conversation, "item", str(number))
    store.end_ledger(places[4])
    flush_journal(100)
    lose_redis()

    restored = restore_all_ledgers()

    assert restored == JournalStep(examined=5, changed=5)
    assert [store.get_all(conversation) for conversation in places] == [
        *({"item": str(number)} for number in range(4)),
        {},
    ]
    assert not client().exists(RESTORED)


@committing
@kept
def test_a_redis_lost_again_during_the_restore_gets_no_epoch(conversation: ConversationRef) -> None:
    store.mark(conversation, "a")
    flush_journal(100)
    lose_redis()

    with connection.execute_wrapper(lose_redis_at_histories):
        restore_all_ledgers()

    assert not has_every_ledger()
    restore_all_ledgers()
    assert has_every_ledger()
    assert store.get_all(conversation) == {"a": "injected"}


def lose_redis_at_histories(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    """Lose Redis between the token that `restore_all_ledgers` stores and the first ledger that it restores."""
    if "ORDER BY" in sql:
        lose_redis()
    return execute(sql, *rest)


@committing
@kept
def test_nothing_is_restored_while_nothing_is_lost(conversation: ConversationRef) -> None:
    store.mark(conversation, "a")
    flush_journal(100)

    assert restore_all_ledgers() == JournalStep(examined=0, changed=0)


@committing
@kept
def test_restoring_one_account_does_not_set_the_epoch(conversation: ConversationRef) -> None:
    store.mark(conversation, "a")
    flush_journal(100)
    lose_redis()

    assert restore_all_ledgers(conversation.account_id) == JournalStep(examined=1, changed=1)
    assert restore_all_ledgers(uuid7()) == JournalStep(examined=0, changed=0)
    assert not has_every_ledger()


def live_keys() -> list[str]:
    return [str(key) for key in client().scan_iter() if not str(key).startswith(COPY)]


def keep_copy() -> None:
    """Copy all keys of this Redis, as a lagging replica or a backup has them."""
    for key in live_keys():
        client().copy(key, f"{COPY}{key}", replace=True)


def restore_copy() -> None:
    if keys := live_keys():
        client().delete(*keys)
    for key in client().scan_iter(f"{COPY}*"):
        client().copy(str(key), str(key).removeprefix(COPY))


def elsewhere(conversation: ConversationRef) -> ConversationRef:
    return replace(conversation, conversation_id="elsewhere")


@committing
@kept
def test_the_order_of_events_survives_a_clock_that_goes_back(conversation: ConversationRef) -> None:
    tomorrow = int((time.time() + 86_400) * 1_000)
    client().xadd(JOURNAL, {"event": "none"}, id=f"{tomorrow}-7")
    client().xtrim(JOURNAL, maxlen=0)
    store.mark(conversation, "a", "1")
    flush_journal(100)
    lose_redis()

    store.evict(conversation, "a")
    store.mark(conversation, "a", "2")
    flush_journal(100)

    assert [row.event for row in Injection.objects.in_order()] == ["marked", "evicted", "marked"]
    lose_redis()
    assert store.check(conversation, "a") == "2"


steps = st.sampled_from(
    ["mark a 1", "mark a 2", "mark b 3", "evict a", "evict b", "end", "flush", "lose", "epoch", "all", "copy", "revert"]
)


@committing
@given(history=st.lists(steps, max_size=15))
@examples(25)
def test_a_ledger_survives_anything_once_it_is_flushed(account: Account, history: list[str]) -> None:
    conversation = ConversationRef(account_id=account.id, conversation_id=str(uuid7()))
    expected: dict[str, str] = {}

    for step in history:
        take_step(conversation, expected, step.split())
        assert store.get_all(conversation) == expected


def take_step(conversation: ConversationRef, expected: dict[str, str], step: list[str]) -> None:
    match step:
        case ["mark", item_key, value]:
            assert store.mark(conversation, item_key, value).first == (item_key not in expected)
            expected.setdefault(item_key, value)
        case ["evict", item_key]:
            assert store.evict(conversation, item_key) == (expected.pop(item_key, None) is not None)
        case ["end"]:
            store.end_ledger(conversation)
            expected.clear()
        case ["flush"]:
            flush_journal(1_000)
        case ["lose"]:
            flush_journal(1_000)
            lose_redis()
        case ["epoch"]:
            client().delete(EPOCH)
        case ["copy"]:
            keep_copy()
        case ["revert"]:
            flush_journal(1_000)
            restore_copy()
            store.mark(elsewhere(conversation), str(uuid7()))
            restore_all_ledgers()
        case _:
            restore_all_ledgers()


WITHOUT_POSTGRESQL = """
import django
django.setup()
from uuid import UUID
from ledger import store
from ledger.journal import EPOCH
from memory_project.redis import ConversationRef, client
from django.db import OperationalError
conversation = ConversationRef(account_id=UUID(int=7), conversation_id="c")
print(store.mark(conversation, "a").first, store.check(conversation, "a"), store.evict(conversation, "a"))
client().delete(EPOCH)
try:
    store.check(conversation, "a")
except OperationalError:
    print("down")
"""


@pytest.mark.slow
@kept
def test_without_postgresql_only_a_lost_ledger_is_refused() -> None:
    process = start_python(WITHOUT_POSTGRESQL, DATABASE_URL="postgres://nobody@127.0.0.1:1/nothing")

    output, _ = process.communicate(timeout=60)

    assert output.splitlines() == ["True injected True", "down"]


WITHOUT_REDIS = """
import django
django.setup()
from uuid import UUID
from ledger import store
import redis
from memory_project.redis import ConversationRef
try:
    store.check(ConversationRef(account_id=UUID(int=7), conversation_id="c"), "a")
except redis.ConnectionError:
    print("down")
"""


@pytest.mark.slow
def test_without_redis_a_call_fails() -> None:
    process = start_python(WITHOUT_REDIS, REDIS_URL="unix:///nowhere/at/all.sock")

    output, _ = process.communicate(timeout=60)

    assert output.splitlines() == ["down"]


@committing
@kept
def test_an_older_postgresql_takes_over_what_a_newer_redis_has(account: Account, conversation: ConversationRef) -> None:
    later = replace(conversation, conversation_id="later")
    store.mark_many(conversation, {"stays": "1", "evicted": "2", "changed": "3"})
    flush_journal(100)
    rows_then = list(Injection.objects.values_list("id", flat=True))
    store.evict(conversation, "evicted")
    store.evict(conversation, "changed")
    store.mark_many(conversation, {"new": "4", "changed": "5"})
    store.mark(later, "a")
    flush_journal(100)

    Injection.objects.exclude(id__in=rows_then).delete()
    restore_all_ledgers()
    flush_journal(100)
    lose_redis()

    assert store.get_all(conversation) == {"stays": "1", "new": "4", "changed": "5"}
    assert store.get_all(later) == {"a": "injected"}


@committing
@kept
def test_an_older_postgresql_makes_no_item_new_again(conversation: ConversationRef) -> None:
    store.mark(conversation, "a")
    flush_journal(100)
    Injection.objects.all().delete()

    restore_all_ledgers()

    assert not store.mark(conversation, "a").first
    assert restore_all_ledgers() == JournalStep(examined=0, changed=0)
