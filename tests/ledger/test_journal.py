"""Tests of the journal: changes become rows, without loss or duplicates."""

import signal
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from ledger import store
from ledger.journal import JOURNAL, flush_journal, sortable_stream_id
from ledger.journal_scripts import DELETE_ENTRIES
from ledger.models import Injection
from memory.models import Account
from memory_project.redis import ConversationRef, client
from tests.concurrency import wait_until
from tests.ledger.processes import redis_that_hangs_at, start_python

committing = pytest.mark.django_db(transaction=True)
kept = pytest.mark.usefixtures("kept")


def rows() -> list[tuple[str, str, str, str]]:
    columns = ("event", "item_key", "value", "agent_id")
    return list(Injection.objects.in_order().values_list(*columns))


@committing
@kept
def test_a_flush_stores_the_changes(conversation: ConversationRef) -> None:
    before = datetime.now(UTC)
    store.mark(conversation, "skill:a", "1", agent_id="ana")
    store.mark(conversation, "skill:a", "2", agent_id="ben")
    store.evict(conversation, "skill:a", agent_id="ben")
    store.mark(conversation, "skill:b")
    store.end_ledger(conversation)

    flushed = flush_journal(100)

    assert rows() == [
        ("marked", "skill:a", "1", "ana"),
        ("evicted", "skill:a", "", "ben"),
        ("marked", "skill:b", "injected", ""),
        ("ended", "", "", ""),
    ]
    assert (flushed.examined, flushed.changed, flushed.cursor, client().xlen(JOURNAL)) == (4, 4, "", 0)
    times = Injection.objects.values_list("at", flat=True)
    assert all(before - timedelta(seconds=1) < at < before + timedelta(minutes=1) for at in times)


@committing
@kept
def test_a_flush_continues_after_the_last_one(conversation: ConversationRef) -> None:
    store.mark_many(conversation, {f"item:{number}": "1" for number in range(25)})

    first = flush_journal(10)
    second = flush_journal(10, after=first.cursor)
    third = flush_journal(10, after=second.cursor)

    assert [flushed.examined for flushed in (first, second, third)] == [10, 10, 5]
    assert (third.cursor, client().xlen(JOURNAL), Injection.objects.count()) == ("", 0, 25)


@committing
@kept
def test_a_flush_for_one_account_leaves_the_others_entries(conversation: ConversationRef) -> None:
    other = Account.objects.create(name="other")
    store.mark(conversation, "a")
    store.mark(ConversationRef(account_id=other.id, conversation_id="c"), "b")

    flush_journal(10, account_id=other.id)

    assert [item_key for _, item_key, _, _ in rows()] == ["b"]
    assert client().xlen(JOURNAL) == 1


@committing
@kept
def test_entries_of_a_deleted_account_do_not_block_the_others(
    conversation: ConversationRef, anywhere: ConversationRef
) -> None:
    store.mark(anywhere, "nobody's")
    store.mark(conversation, "somebody's")

    flushed = flush_journal(10)

    assert (flushed.examined, flushed.changed, client().xlen(JOURNAL)) == (2, 1, 0)


@committing
@kept
def test_a_rolled_back_transaction_keeps_the_entries_in_redis(conversation: ConversationRef) -> None:
    store.mark(conversation, "a")

    with transaction.atomic():
        flush_journal(10)
        transaction.set_rollback(True)

    assert (client().xlen(JOURNAL), Injection.objects.count()) == (1, 0)


FLUSH_IN_DATABASE = """
import sys
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from ledger.journal import flush_journal
flush_journal(100)
"""


@committing
@kept
def test_a_flush_killed_between_insert_and_delete_creates_no_duplicates(conversation: ConversationRef) -> None:
    store.mark_many(conversation, {"a": "1", "b": "2"})
    with redis_that_hangs_at(sha1(DELETE_ENTRIES.encode()).hexdigest().encode()) as url:
        process = start_python(FLUSH_IN_DATABASE, settings.DATABASES["default"]["NAME"], REDIS_URL=url)
        wait_until(lambda: Injection.objects.count() == 2)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert (client().xlen(JOURNAL), Injection.objects.count()) == (2, 2)

    flush_journal(100)

    assert rows() == [("marked", "a", "1", ""), ("marked", "b", "2", "")]
    assert client().xlen(JOURNAL) == 0


@committing
@kept
def test_a_flush_of_stored_entries_only_deletes_them(conversation: ConversationRef) -> None:
    store.mark(conversation, "a")
    entries: Any = client().xrange(JOURNAL)
    ((stream_id, entry),) = entries
    flush_journal(10)
    client().delete(JOURNAL)
    client().xadd(JOURNAL, entry, id=stream_id)

    flushed = flush_journal(10)

    assert (flushed.examined, flushed.changed, client().xlen(JOURNAL)) == (1, 0, 0)
    assert Injection.objects.count() == 1


def test_ids_of_entries_sort_as_numbers() -> None:
    ids = ["9-1", "10-0", "10-9", "10-10", "1795225000000-0"]

    assert sorted(ids, key=sortable_stream_id) == ids
