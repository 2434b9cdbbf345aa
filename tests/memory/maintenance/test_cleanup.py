"""Conversations without a write during the retention period are archived."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import conf
from memory.maintenance import Batch
from memory.maintenance.retention_jobs import cleanup
from memory.models import Account, AuditEntry, Memory, Turn, Vector
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation
from memory.services.turns import get_conversation
from tests.memory.episodes import NOW
from tests.memory.turns import say, talk, turn

pytestmark = pytest.mark.django_db

DUE = NOW + timedelta(days=conf.RETENTION_DAYS, seconds=1)


def test_a_conversation_without_a_write_for_ninety_days_is_archived_and_stays_readable(owner: Owner) -> None:
    say(owner, turn("hello", angle=0.1))

    report = cleanup(now=DUE, batch=Batch(size=10))

    assert (report.examined, report.changed) == (1, 1)
    assert find_conversation(owner, "c1").archived
    assert [each.archived for each in get_conversation(owner, "c1")] == [True]
    assert list(Vector.objects.values_list("live", flat=True)) == [False]
    assert AuditEntry.objects.filter(operation="archive", conversation_id="c1").count() == 1


def test_a_conversation_is_not_archived_one_day_too_early(owner: Owner) -> None:
    talk(owner, 1)

    assert cleanup(now=DUE - timedelta(days=1), batch=Batch(size=10)).examined == 0


def test_a_conversation_of_old_messages_stored_recently_is_not_archived(owner: Owner) -> None:
    say(owner, turn("from an export", timestamp=NOW - timedelta(days=1000)))

    assert cleanup(now=DUE - timedelta(days=1), batch=Batch(size=10)).examined == 0


def test_a_pinned_turn_is_not_archived(owner: Owner) -> None:
    talk(owner, 2)
    Memory.objects.filter(id=Turn.objects.get(index=0).id).update(pinned=True)

    cleanup(now=DUE, batch=Batch(size=10))

    assert [each.archived for each in get_conversation(owner, "c1")] == [False, True]


def test_a_new_turn_brings_the_conversation_back(owner: Owner) -> None:
    talk(owner, 1)
    cleanup(now=DUE, batch=Batch(size=10))

    talk(owner, 1, start=1, now=DUE)

    assert not find_conversation(owner, "c1").archived
    assert [each.archived for each in get_conversation(owner, "c1")] == [True, False]


def test_cleanup_does_not_read_saved_sessions(owner: Owner) -> None:
    talk(owner, 1)

    with CaptureQueriesContext(connection) as captured:
        cleanup(now=DUE, batch=Batch(size=10))

    assert not [query for query in captured.captured_queries if "saved_session" in query["sql"]]


def test_a_run_of_an_account_leaves_others_alone(owner: Owner, stranger: Account) -> None:
    other = Owner(account_id=stranger.id)
    for each in (owner, other):
        talk(each, 1)

    cleanup(now=DUE, batch=Batch(size=10, account_id=stranger.id))

    assert (find_conversation(owner, "c1").archived, find_conversation(other, "c1").archived) == (False, True)


def test_a_dry_run_counts_and_archives_nothing(owner: Owner) -> None:
    talk(owner, 1)

    assert cleanup(now=DUE, batch=Batch(size=10, dry_run=True)).changed == 1
    assert not find_conversation(owner, "c1").archived
