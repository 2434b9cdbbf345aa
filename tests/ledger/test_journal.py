"""The journal: what happened becomes rows, nothing lost and nothing doubled."""

import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from ledger import store
from ledger.journal import FORGET, JOURNAL, flush, pending, sortable
from ledger.models import Injection
from memory.models import Account
from memory_project.redis import Place, client
from tests.ledger.processes import redis_that_hangs_at, start_python

committing = pytest.mark.django_db(transaction=True)
kept = pytest.mark.usefixtures("kept")


def rows() -> list[tuple[str, str, str, str]]:
    columns = ("event", "item_key", "value", "agent_id")
    return list(Injection.objects.in_order().values_list(*columns))


@committing
@kept
def test_a_flush_writes_down_what_happened(place: Place) -> None:
    before = datetime.now(UTC)
    store.mark(place, "skill:a", "1", agent_id="ana")
    store.mark(place, "skill:a", "2", agent_id="ben")
    store.evict(place, "skill:a", agent_id="ben")
    store.mark(place, "skill:b")
    store.end(place)

    flushed = flush(100)

    assert rows() == [
        ("marked", "skill:a", "1", "ana"),
        ("evicted", "skill:a", "", "ben"),
        ("marked", "skill:b", "injected", ""),
        ("ended", "", "", ""),
    ]
    assert (flushed.examined, flushed.changed, flushed.cursor, pending()) == (4, 4, "", 0)
    times = Injection.objects.values_list("at", flat=True)
    assert all(before - timedelta(seconds=1) < at < before + timedelta(minutes=1) for at in times)


@committing
@kept
def test_a_flush_goes_on_where_the_last_one_stopped(place: Place) -> None:
    store.mark_many(place, {f"item:{number}": "1" for number in range(25)})

    first = flush(10)
    second = flush(10, after=first.cursor)
    third = flush(10, after=second.cursor)

    assert [flushed.examined for flushed in (first, second, third)] == [10, 10, 5]
    assert (third.cursor, pending(), Injection.objects.count()) == ("", 0, 25)


@committing
@kept
def test_a_flush_for_one_account_leaves_the_others_entries(place: Place) -> None:
    other = Account.objects.create(name="other")
    store.mark(place, "a")
    store.mark(Place(account_id=other.id, conversation_id="c"), "b")

    flush(10, account_id=other.id)

    assert [item_key for _, item_key, _, _ in rows()] == ["b"]
    assert pending() == 1


@committing
@kept
def test_entries_of_an_account_that_is_gone_do_not_hold_up_the_rest(place: Place, anywhere: Place) -> None:
    store.mark(anywhere, "nobody's")
    store.mark(place, "somebody's")

    flushed = flush(10)

    assert (flushed.examined, flushed.changed, pending()) == (2, 1, 0)


@committing
@kept
def test_a_transaction_that_is_undone_keeps_the_entries_in_redis(place: Place) -> None:
    store.mark(place, "a")

    with transaction.atomic():
        flush(10)
        transaction.set_rollback(True)

    assert (pending(), Injection.objects.count()) == (1, 0)


FLUSH_IN_DATABASE = """
import sys
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from ledger.journal import flush
flush(100)
"""


def wait_until(condition: Callable[[], bool], *, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@committing
@kept
def test_a_flush_killed_between_insert_and_delete_doubles_nothing(place: Place) -> None:
    store.mark_many(place, {"a": "1", "b": "2"})
    with redis_that_hangs_at(sha1(FORGET.encode()).hexdigest().encode()) as url:
        process = start_python(FLUSH_IN_DATABASE, settings.DATABASES["default"]["NAME"], REDIS_URL=url)
        wait_until(lambda: Injection.objects.count() == 2)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert (pending(), Injection.objects.count()) == (2, 2)

    flush(100)

    assert rows() == [("marked", "a", "1", ""), ("marked", "b", "2", "")]
    assert pending() == 0


@committing
@kept
def test_a_flush_of_what_has_rows_already_only_deletes(place: Place) -> None:
    store.mark(place, "a")
    entries: Any = client().xrange(JOURNAL)
    ((stream_id, entry),) = entries
    flush(10)
    client().delete(JOURNAL)
    client().xadd(JOURNAL, entry, id=stream_id)

    flushed = flush(10)

    assert (flushed.examined, flushed.changed, pending()) == (1, 0, 0)
    assert Injection.objects.count() == 1


def test_ids_of_entries_sort_as_numbers() -> None:
    ids = ["9-1", "10-0", "10-9", "10-10", "1795225000000-0"]

    assert sorted(ids, key=sortable) == ids
