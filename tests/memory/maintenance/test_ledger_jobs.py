"""The ledger's two jobs: changes become rows in batches, lost ledgers come back."""

from datetime import UTC, datetime

import pytest

from ledger import store
from ledger.journal import JOURNAL, has_every_ledger
from ledger.models import Injection
from memory.maintenance import Batch, BatchReport
from memory.maintenance.ledger_jobs import journal_injections, restore_ledgers
from memory.models import Account
from memory_project.redis import ConversationRef, client

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)


@pytest.fixture
def place(account: Account) -> ConversationRef:
    restore_ledgers(now=NOW, batch=Batch(size=1))
    return ConversationRef(account_id=account.id, conversation_id="c1")


def test_ledger_changes_are_stored_as_rows_in_batches(place: ConversationRef) -> None:
    store.mark_many(place, {"a": "1", "b": "1", "c": "1"})

    first = journal_injections(now=NOW, batch=Batch(size=2))
    second = journal_injections(now=NOW, batch=Batch(size=2, cursor=first.cursor))

    assert ((first.changed, second.changed), second.cursor) == ((2, 1), "")
    assert Injection.objects.count() == 3


def test_a_dry_run_counts_and_moves_nothing(place: ConversationRef) -> None:
    store.mark_many(place, {"a": "1", "b": "1"})

    report = journal_injections(now=NOW, batch=Batch(size=5, dry_run=True))

    assert report == BatchReport(examined=2, changed=2)
    assert (client().xlen(JOURNAL), Injection.objects.count()) == (2, 0)


def test_lost_ledgers_are_restored(place: ConversationRef) -> None:
    store.mark(place, "a")
    journal_injections(now=NOW, batch=Batch(size=5))
    client().flushdb()

    would_change = restore_ledgers(now=NOW, batch=Batch(size=1, dry_run=True))
    was_left_alone = not has_every_ledger()
    changed = restore_ledgers(now=NOW, batch=Batch(size=1))

    assert was_left_alone
    assert would_change == changed == BatchReport(examined=1, changed=1)
    assert store.check(place, "a") == "injected"


def test_restoring_does_nothing_if_no_ledger_was_lost(place: ConversationRef) -> None:
    store.mark(place, "a")
    journal_injections(now=NOW, batch=Batch(size=5))

    for dry_run in (True, False):
        assert restore_ledgers(now=NOW, batch=Batch(size=1, dry_run=dry_run)) == BatchReport(examined=0, changed=0)
