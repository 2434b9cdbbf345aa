"""Tests of the access log of contexts: who sees it, and how its lines become rows, once each."""

import subprocess
import sys
from collections import Counter
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.errors import Forbidden, NotFound
from memory.models import AccessControl, Account, ContextAccessLog, ContextEntry, Memory, PersistentContext
from memory.owner import Owner
from memory.services.account_walk import BatchReport
from memory.services.contexts.access_log import (
    Action,
    access_logs,
    log_reads,
    preview_access_lines,
    write_access_lines,
)
from memory.services.memories.correct import delete_memories
from memory.tiers.access_log import count_waiting_access_lines
from memory_project.redis import SHARED_KEYS, client
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.memory.maintenance.workers import environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

LATER = NOW + timedelta(minutes=1)

WRITE_AND_DIE = """
import os, signal, django
from django.db import transaction
django.setup()
from django.utils import timezone
from memory.services.contexts.access_log import write_access_lines
with transaction.atomic():
    # once the rows are safe, before their lines are deleted
    transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
    write_access_lines(100, after="", account_id=None, now=timezone.now())
"""


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


def write(size: int = 100, *, after: str = "", account_id: UUID | None = None) -> BatchReport:
    return write_access_lines(size, after=after, account_id=account_id, now=LATER)


def read(owner: Owner, *rows: ContextEntry, action: Action = Action.READ) -> None:
    log_reads(owner, [(row.context_id, row.id) for row in rows if row.context_id], action=action, now=LATER)


def logged() -> Counter[tuple[UUID | None, str, int]]:
    """Lines of one moment have no order."""
    lines = ContextAccessLog.objects.exclude(action=Action.CREATE)
    return Counter(lines.values_list("entry_id", "action", "count"))


def test_lines_become_rows_and_count_on_their_entries(owner: Owner, context: PersistentContext) -> None:
    often, once, never = keep(owner, context, entry("often"), entry("once"), entry("never"))
    read(owner, often, once)
    read(owner, often, action=Action.SEARCH)

    assert write() == BatchReport(examined=3, changed=3, cursor="")

    assert logged() == Counter([(often.id, "read", 1), (once.id, "read", 1), (often.id, "search", 1)])
    counts = {row.id: (row.access_count, row.last_accessed) for row in Memory.objects.all()}
    assert counts == {often.id: (2, LATER), once.id: (1, LATER), never.id: (0, None)}
    assert count_waiting_access_lines() == 0


def test_a_log_line_names_the_reading_agent_and_its_key(owner: Owner, context: PersistentContext) -> None:
    rows = keep(owner, context, entry("one"))
    reader = Owner(account_id=owner.account_id, agent_id="reader", actor="key:abc")

    read(reader, *rows)
    write()

    line = ContextAccessLog.objects.get(action=Action.READ)
    assert (line.account_id, line.context_id) == (owner.account_id, context.id)
    assert (line.agent_id, line.actor, line.accessed_at) == ("reader", "key:abc", LATER)


def test_counting_reads_does_not_change_the_entry(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("one"))
    Memory.objects.filter(id=row.id).update(last_accessed=LATER + timedelta(days=1))
    before = Memory.objects.get(id=row.id)

    read(owner, row)
    write()

    after = Memory.objects.get(id=row.id)
    assert (after.version, after.updated_at, after.access_count) == (before.version, before.updated_at, 1)
    assert after.last_accessed == before.last_accessed


def test_a_batch_takes_two_statements(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows = keep(owner, context, *(entry(f"entry {number}") for number in range(50)))
    read(owner, *rows)

    # and begin and commit
    with django_assert_num_queries(4):
        write()


def test_a_line_that_was_sent_twice_counts_once(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("one"))
    read(owner, row)
    ((_place, fields),) = cast("Any", client().xrange(SHARED_KEYS["access_log"]))
    client().xadd(SHARED_KEYS["access_log"], fields)

    written = write()

    assert (written.examined, written.changed) == (2, 1)
    assert Memory.objects.get(id=row.id).access_count == 1


@pytest.mark.slow
def test_lines_read_again_after_a_kill_change_nothing(owner: Owner, context: PersistentContext) -> None:
    rows = keep(owner, context, entry("one"), entry("two"))
    read(owner, *rows)
    killed = subprocess.run([sys.executable, "-c", WRITE_AND_DIE], env=environment(), check=False, timeout=200)
    assert (killed.returncode, count_waiting_access_lines(), len(logged())) == (-9, 2, 2)

    again = write()

    assert again == BatchReport(examined=2, changed=0, cursor="")
    assert (count_waiting_access_lines(), len(logged())) == (0, 2)
    assert set(Memory.objects.values_list("access_count", flat=True)) == {1}


def test_lost_lines_are_reported_in_the_table_once(
    owner: Owner, context: PersistentContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = keep(owner, context, entry("one"), entry("two"), entry("three"))
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 1)
    read(owner, *rows)

    for _again in range(2):
        write()

    assert logged() == Counter([(rows[0].id, "read", 1), (None, "lost", 2)])
    assert sum(Memory.objects.values_list("access_count", flat=True)) == 1


def test_lines_of_a_deleted_context_are_dropped(owner: Owner, context: PersistentContext) -> None:
    rows = keep(owner, context, entry("one"))
    (kept,) = keep(owner, context_of(owner, "other"), entry("two"))
    read(owner, *rows, kept)
    PersistentContext.objects.filter(id=context.id).delete()

    assert write() == BatchReport(examined=2, changed=1, cursor="")

    assert logged() == Counter([(kept.id, "read", 1)])
    assert count_waiting_access_lines() == 0


def test_the_log_outlives_an_entry(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("gone"))
    read(owner, row)
    delete_memories(Owner(account_id=owner.account_id), [row.id], now=NOW)

    assert write().changed == 1
    assert logged() == Counter([(row.id, "read", 1)])


def test_texts_that_the_table_refuses_are_adapted(owner: Owner, context: PersistentContext) -> None:
    rows = keep(owner, context, entry("one"))

    read(Owner(account_id=owner.account_id, agent_id="a\x00" * 101), *rows)
    write()

    assert ContextAccessLog.objects.get(action=Action.READ).agent_id == "a" * 100


def test_lines_of_other_accounts_stay_in_the_stream(owner: Owner, context: PersistentContext) -> None:
    read(owner, *keep(owner, context, entry("one")))

    assert write(account_id=uuid4()) == BatchReport(examined=0, changed=0, cursor="")
    assert (count_waiting_access_lines(), logged()) == (1, Counter())


def test_another_accounts_entry_is_not_counted(owner: Owner, context: PersistentContext, stranger: Account) -> None:
    (row,) = keep(owner, context, entry("one"))
    other = Owner(account_id=stranger.id)
    theirs = context_of(other)

    log_reads(other, [(theirs.id, row.id), (context.id, row.id)], action=Action.READ, now=LATER)

    assert write().changed == 1
    assert Memory.objects.get(id=row.id).access_count == 0


def test_a_preview_changes_nothing(owner: Owner, context: PersistentContext, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = keep(owner, context, entry("one"), entry("two"))
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 1)
    read(owner, *rows)

    looked = [
        preview_access_lines(100, after="", account_id=account_id) for account_id in (None, owner.account_id, uuid4())
    ]

    assert [found.changed for found in looked] == [2, 2, 0]
    assert (count_waiting_access_lines(), logged()) == (1, Counter())


def test_only_a_manager_sees_the_log_of_a_context(owner: Owner, stranger: Account) -> None:
    grants = AccessControl.parse({"read": ["reader"], "write": ["writer"]})
    context = context_of(owner, access_control=grants)
    keep(owner, context, entry("one"))

    for manager in (owner, Owner(account_id=owner.account_id)):
        assert access_logs(manager, context.id).count() == 1
    for agent_id in ("reader", "writer"):
        with pytest.raises(Forbidden):
            access_logs(Owner(account_id=owner.account_id, agent_id=agent_id), context.id)
    for other in (Owner(account_id=owner.account_id, agent_id="other"), Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            access_logs(other, context.id)
