"""The access log's two jobs: lines become rows in batches, and rows go when their time is over."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from memory import conf
from memory.maintenance import JOBS, Batch, BatchReport
from memory.models import Account, ContextAccessLog, PersistentContext
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_reads, log_writes
from memory.tiers.access_log import count_waiting_access_lines
from tests.memory.contexts import context_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=conf.ACCESS_LOG_RETENTION_DAYS, seconds=1)


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


def read(owner: Owner, context: PersistentContext, count: int) -> None:
    log_reads(owner, [(context.id, uuid4()) for _ in range(count)], action=Action.READ, now=NOW)


def run(
    name: str, *, size: int = 100, cursor: str = "", dry_run: bool = False, account: Account | None = None
) -> BatchReport:
    batch = Batch(size=size, cursor=cursor, dry_run=dry_run, account_id=account.id if account else None)
    return JOBS[name].run(now=NOW, batch=batch)


def test_access_log_lines_are_stored_as_rows_in_batches(owner: Owner, context: PersistentContext) -> None:
    read(owner, context, 3)

    first = run("write_access_log", size=2)
    second = run("write_access_log", size=2, cursor=first.cursor)

    assert ((first.changed, second.changed), second.cursor) == ((2, 1), "")
    assert (ContextAccessLog.objects.count(), count_waiting_access_lines()) == (3, 0)


def test_a_dry_run_counts_and_moves_nothing(owner: Owner, context: PersistentContext) -> None:
    read(owner, context, 3)

    assert run("write_access_log", dry_run=True) == BatchReport(examined=3, changed=3)
    assert (ContextAccessLog.objects.count(), count_waiting_access_lines()) == (0, 3)


def test_a_run_of_an_account_writes_only_its_lines(owner: Owner, context: PersistentContext, stranger: Account) -> None:
    theirs = Owner(account_id=stranger.id)
    read(owner, context, 2)
    read(theirs, context_of(theirs), 1)

    assert run("write_access_log", account=stranger) == BatchReport(examined=1, changed=1)
    assert count_waiting_access_lines() == 2


def test_access_log_lines_past_their_retention_are_deleted(
    owner: Owner, context: PersistentContext, stranger: Account
) -> None:
    for moment in (LONG_AGO, LONG_AGO, NOW):
        log_writes(owner, [(context.id, uuid4())], action=Action.UPDATE, now=moment)

    assert run("cleanup", cursor="access_log:", account=stranger).changed == 0
    assert run("cleanup", cursor="access_log:", dry_run=True).changed == 2
    assert run("cleanup", cursor="access_log:").changed == 2
    assert [line.accessed_at for line in ContextAccessLog.objects.all()] == [NOW]
