"""A Redis that lost its data, all of it or its tail, gets its ledgers back before it answers."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import store
from ledger.journal import (
    EPOCH,
    JOURNAL,
    RESTORED,
    Change,
    Restored,
    flush,
    fold,
    has_every_ledger,
    restore,
    restore_all,
)
from ledger.models import Injection
from memory.models import Account
from memory_project.ids import uuid7
from memory_project.redis import Place, client
from tests.ledger.processes import start_python

committing = pytest.mark.django_db(transaction=True)
kept = pytest.mark.usefixtures("kept")


COPY = "copy:"


def lose_redis() -> None:
    client().flushdb()


changes = st.builds(
    Change,
    event=st.sampled_from(["marked", "marked", "evicted", "ended"]),
    item_key=st.sampled_from("abc"),
    value=st.sampled_from("123"),
)


def first_mark_since_reset(history: list[Change], item_key: str) -> str | None:
    """The same rule by another way: item by item, from the last time it was taken out."""
    resets = [
        index
        for index, change in enumerate(history)
        if change.event == "ended" or (change.event == "evicted" and change.item_key == item_key)
    ]
    since = history[resets[-1] + 1 :] if resets else history
    marks = [change.value for change in since if change.event == "marked" and change.item_key == item_key]
    return marks[0] if marks else None


@given(history=st.lists(changes, max_size=30))
def test_folding_agrees_with_looking_each_item_up(history: list[Change]) -> None:
    ledger = fold(history)

    assert {item: ledger.get(item) for item in "abc"} == {item: first_mark_since_reset(history, item) for item in "abc"}


@committing
@kept
def test_a_check_after_a_loss_still_says_injected(place: Place) -> None:
    store.mark_many(place, {"a": "1", "b": "2", "c": "3"})
    store.evict(place, "b")
    flush(100)

    lose_redis()

    assert store.check(place, "a") == "1"
    assert store.get_all(place) == {"a": "1", "c": "3"}
    assert store.mark(place, "c", "4") == store.Mark(value="3", first=False)
    assert store.mark(place, "b", "5").first


@committing
@kept
def test_what_happened_after_a_loss_is_not_undone_by_another_restoration(place: Place) -> None:
    store.mark_many(place, {"a": "1", "b": "2"})
    flush(100)
    lose_redis()

    store.evict(place, "a")
    restore(place)
    restore_all()

    assert store.get_all(place) == {"b": "2"}


@committing
@kept
def test_a_lost_epoch_alone_does_not_cost_what_is_not_yet_a_row(place: Place) -> None:
    store.mark_many(place, {"a": "1", "b": "2"})
    flush(100)
    store.evict(place, "a")
    store.mark(place, "c", "3")
    client().delete(EPOCH)

    assert store.get_all(place) == {"b": "2", "c": "3"}


@committing
def test_a_new_installation_starts_with_an_epoch_and_nothing_else() -> None:
    assert restore_all() == Restored(examined=0, changed=0)

    assert has_every_ledger()
    assert client().keys() == [EPOCH]


@committing
@kept
def test_all_ledgers_come_back_at_once(account: Account) -> None:
    places = [Place(account_id=account.id, conversation_id=f"call {number}") for number in range(5)]
    for number, place in enumerate(places):
        store.mark(place, "item", str(number))
    store.end(places[4])
    flush(100)
    lose_redis()

    restored = restore_all()

    assert restored == Restored(examined=5, changed=5)
    assert [store.get_all(place) for place in places] == [*({"item": str(number)} for number in range(4)), {}]
    assert not client().exists(RESTORED)


@committing
@kept
def test_a_redis_lost_again_while_all_is_restored_does_not_pass_for_whole(place: Place) -> None:
    store.mark(place, "a")
    flush(100)
    lose_redis()

    with connection.execute_wrapper(lose_redis_at_histories):
        restore_all()

    assert not has_every_ledger()
    restore_all()
    assert has_every_ledger()
    assert store.get_all(place) == {"a": "injected"}


def lose_redis_at_histories(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    """Between the token that `restore_all` leaves behind and the first ledger that it makes again."""
    if "ORDER BY" in sql:
        lose_redis()
    return execute(sql, *rest)


@committing
@kept
def test_nothing_is_restored_while_nothing_is_lost(place: Place) -> None:
    store.mark(place, "a")
    flush(100)

    assert restore_all() == Restored(examined=0, changed=0)


@committing
@kept
def test_restoring_one_account_leaves_the_epoch_to_the_restoration_of_all(place: Place) -> None:
    store.mark(place, "a")
    flush(100)
    lose_redis()

    assert restore_all(place.account_id) == Restored(examined=1, changed=1)
    assert restore_all(uuid7()) == Restored(examined=0, changed=0)
    assert not has_every_ledger()


def keep_copy() -> None:
    """Of all that this Redis holds, as a replica that lags or a backup has it."""
    for key in live_keys():
        client().copy(key, f"{COPY}{key}", replace=True)


def put_copy_back() -> None:
    if keys := live_keys():
        client().delete(*keys)
    for key in client().scan_iter(f"{COPY}*"):
        client().copy(str(key), str(key).removeprefix(COPY))


def live_keys() -> list[str]:
    return [str(key) for key in client().scan_iter() if not str(key).startswith(COPY)]


@pytest.fixture
def reverted(place: Place, kept: None) -> Place:
    """A conversation whose Redis came back from a copy made before its last two changes were."""
    store.mark(place, "old", "1")
    flush(100)
    keep_copy()
    store.mark(place, "new", "2")
    store.evict(place, "old")
    flush(100)
    put_copy_back()
    return place


@committing
def test_a_redis_from_an_old_copy_gets_its_tail_back(reverted: Place) -> None:
    assert store.get_all(reverted) == {"old": "1"}

    restore_all()

    assert store.get_all(reverted) == {"new": "2"}
    assert has_every_ledger()
    assert restore_all() == Restored(examined=0, changed=0)


@committing
def test_a_redis_from_an_old_copy_is_known_by_its_gap_whatever_was_marked_since(reverted: Place) -> None:
    store.mark(elsewhere(reverted), "since")

    restore_all()

    assert store.get_all(reverted) == {"new": "2"}
    assert store.get_all(elsewhere(reverted)) == {"since": "injected"}


@committing
def test_a_flush_does_not_paper_over_the_gap_of_an_old_copy(reverted: Place) -> None:
    store.mark(elsewhere(reverted), "since")

    flush(100)

    assert store.get_all(reverted) == {"new": "2"}


@committing
@kept
def test_an_old_copy_put_back_in_the_middle_of_a_flush_is_noticed_by_the_next_look(place: Place) -> None:
    keep_copy()
    store.mark(place, "new")
    with transaction.atomic():
        flush(100)
        put_copy_back()
    store.mark(elsewhere(place), "since")

    restore_all()

    assert store.get_all(place) == {"new": "injected"}


@committing
@kept
def test_an_old_copy_that_lacks_nothing_is_left_alone(place: Place) -> None:
    store.mark(place, "new")
    keep_copy()
    flush(100)
    put_copy_back()

    assert restore_all() == Restored(examined=0, changed=0)
    assert store.get_all(place) == {"new": "injected"}


def elsewhere(place: Place) -> Place:
    return replace(place, conversation_id="elsewhere")


@committing
@kept
def test_the_order_of_events_survives_a_clock_that_goes_back(place: Place) -> None:
    tomorrow = int((time.time() + 86_400) * 1_000)
    client().xadd(JOURNAL, {"event": "none"}, id=f"{tomorrow}-7")
    client().xtrim(JOURNAL, maxlen=0)
    store.mark(place, "a", "1")
    flush(100)
    lose_redis()

    store.evict(place, "a")
    store.mark(place, "a", "2")
    flush(100)

    assert [row.event for row in Injection.objects.in_order()] == ["marked", "evicted", "marked"]
    lose_redis()
    assert store.check(place, "a") == "2"


steps = st.sampled_from(
    ["mark a 1", "mark a 2", "mark b 3", "evict a", "evict b", "end", "flush", "lose", "epoch", "all", "copy", "revert"]
)


@committing
@given(history=st.lists(steps, max_size=15))
@settings(max_examples=25)
def test_a_ledger_survives_anything_once_it_is_flushed(account: Account, history: list[str]) -> None:
    place = Place(account_id=account.id, conversation_id=str(uuid7()))
    expected: dict[str, str] = {}

    for step in history:
        take_step(place, expected, step.split())
        assert store.get_all(place) == expected


def take_step(place: Place, expected: dict[str, str], step: list[str]) -> None:
    match step:
        case ["mark", item_key, value]:
            assert store.mark(place, item_key, value).first == (item_key not in expected)
            expected.setdefault(item_key, value)
        case ["evict", item_key]:
            assert store.evict(place, item_key) == (expected.pop(item_key, None) is not None)
        case ["end"]:
            store.end(place)
            expected.clear()
        case ["flush"]:
            flush(1_000)
        case ["lose"]:
            flush(1_000)
            lose_redis()
        case ["epoch"]:
            client().delete(EPOCH)
        case ["copy"]:
            keep_copy()
        case ["revert"]:
            flush(1_000)
            put_copy_back()
            store.mark(elsewhere(place), str(uuid7()))
            restore_all()
        case _:
            restore_all()


WITHOUT_POSTGRESQL = """
import django
django.setup()
from uuid import UUID
from ledger import store
from ledger.journal import EPOCH
from memory_project.redis import Place, client
from django.db import OperationalError
place = Place(account_id=UUID(int=7), conversation_id="c")
print(store.mark(place, "a").first, store.check(place, "a"), store.evict(place, "a"))
client().delete(EPOCH)
try:
    store.check(place, "a")
except OperationalError:
    print("down")
"""


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
from memory_project.redis import Place
try:
    store.check(Place(account_id=UUID(int=7), conversation_id="c"), "a")
except redis.ConnectionError:
    print("down")
"""


def test_without_redis_a_call_fails() -> None:
    process = start_python(WITHOUT_REDIS, REDIS_URL="unix:///nowhere/at/all.sock")

    output, _ = process.communicate(timeout=60)

    assert output.splitlines() == ["down"]
