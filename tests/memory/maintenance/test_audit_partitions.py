"""Partitions of the audit log are created ahead of time and dropped after their retention, even while it is used."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection, transaction

from memory import conf
from memory.audit import record_audit
from memory.maintenance import JOBS, Batch
from memory.maintenance.audit_partitions import audit_partitions
from memory.maintenance.runner import run_at_once
from memory.models import Account, AuditEntry, JobRun
from memory.owner import Owner
from tests.concurrency import PATIENCE_SECONDS, over_own_connection, wait_until_lock_is_awaited
from tests.memory.audits import drop_partitions, entered, make_partition, partition_of, partitions

pytestmark = pytest.mark.django_db

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
TODAY = NOW.date()
AHEAD = [TODAY + timedelta(days=days) for days in range(conf.AUDIT_PARTITIONS_AHEAD + 1)]
PAST = datetime(2020, 1, 2, 3, 4, tzinfo=UTC)


@pytest.fixture
def no_partitions(db: None) -> None:
    drop_partitions()


def keep_partitions(*, now: datetime = NOW, dry_run: bool = False) -> JobRun:
    return run_at_once(JOBS["audit_partitions"], JobRun(job="audit_partitions", dry_run=dry_run), clock=lambda: now)


def partition_names(days: list[date]) -> list[str]:
    return [f"memory_audit_log_{day:%Y%m%d}" for day in days]


def detach(name: str, how: str = "") -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE memory_audit_log DETACH PARTITION {name} {how}")


def test_today_and_at_least_seven_days_ahead_have_their_partitions(no_partitions: None) -> None:
    done = keep_partitions()

    assert (done.status, done.changed, done.figures) == ("completed", len(AHEAD), {"partitions_made": len(AHEAD)})
    assert partitions() == partition_names(AHEAD)
    assert len(AHEAD) >= 8


def test_a_second_run_finds_nothing_to_do(no_partitions: None) -> None:
    keep_partitions()

    again = keep_partitions()

    assert (again.status, again.examined, again.changed) == ("completed", 0, 0)


def test_the_next_day_adds_one_partition(no_partitions: None) -> None:
    keep_partitions()

    done = keep_partitions(now=NOW + timedelta(days=1))

    assert done.changed == 1
    assert partitions()[-1] == f"memory_audit_log_{AHEAD[-1] + timedelta(days=1):%Y%m%d}"


def test_a_dry_run_makes_and_drops_nothing(no_partitions: None) -> None:
    make_partition(PAST)

    done = keep_partitions(dry_run=True)

    assert done.changed == len(AHEAD) + 1
    assert done.figures == {"partitions_made": len(AHEAD), "partitions_dropped": 1}
    assert partitions() == ["memory_audit_log_20200102"]


def test_entries_past_their_retention_go_with_their_partitions(no_partitions: None, account: Account) -> None:
    now = datetime.now(UTC)
    oldest = now - timedelta(days=conf.AUDIT_RETENTION_DAYS)
    old, kept = (entered(account, oldest - timedelta(days=days)).id for days in (1, 0))

    done = keep_partitions(now=now)

    assert not AuditEntry.objects.filter(id=old).exists()
    assert AuditEntry.objects.filter(id=kept).exists()
    assert partitions()[0] == f"memory_audit_log_{oldest:%Y%m%d}"
    assert (done.status, done.figures["partitions_dropped"], done.figures["entries_dropped"]) == ("completed", 1, 1)


def test_a_run_as_of_a_future_time_drops_no_partition(no_partitions: None, account: Account) -> None:
    kept = entered(account, datetime.now(UTC)).id

    done = keep_partitions()

    assert done.figures == {"partitions_made": len(AHEAD)}
    assert AuditEntry.objects.filter(id=kept).exists()


def test_a_partition_has_the_documented_indexes(no_partitions: None) -> None:
    keep_partitions()

    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'memory_audit_log_20300102'")
        columns = {definition[definition.index("(") :] for (definition,) in cursor.fetchall()}
    documented = {"user_id", "session_id", "operation", "memory_type", "source_channel"}
    assert columns == {'(id, account_id, "timestamp")', '(account_id, "timestamp")'} | {
        f'(account_id, {column}, "timestamp")' for column in documented
    }


def test_one_batch_is_one_day(no_partitions: None) -> None:
    report = audit_partitions(now=NOW, batch=Batch(size=1))

    assert (report.examined, report.changed, report.cursor) == (1, 1, "2030-01-02")
    assert partitions() == ["memory_audit_log_20300102"]


@pytest.mark.django_db(transaction=True)
def test_a_partition_detached_by_a_killed_worker_is_dropped_by_the_next_run(account: Account) -> None:
    entered(account, PAST)
    detach("memory_audit_log_20200102")

    done = keep_partitions(now=datetime.now(UTC))

    assert (done.figures["partitions_dropped"], done.figures["entries_dropped"]) == (1, 1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('memory_audit_log_20200102')")
        assert cursor.fetchone() == (None,)


@pytest.mark.django_db(transaction=True)
def test_a_partition_partly_detached_by_a_killed_worker_is_dropped_by_the_next_run(
    account: Account, owner: Owner
) -> None:
    name = partition_of(entered(account, PAST).id)
    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        record_audit(owner, operation="store", memory_type="t")
        begun = other.submit(over_own_connection, lambda: detach(name, "CONCURRENTLY"))
        wait_until_lock_is_awaited()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%CONCURRENTLY%'"
                " AND datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(Exception, match="cancel"):
            begun.result(PATIENCE_SECONDS)

    done = keep_partitions(now=datetime.now(UTC))

    assert (done.status, done.figures["partitions_dropped"]) == ("completed", 1)
    assert name not in partitions()


@pytest.mark.django_db(transaction=True)
def test_dropping_an_old_partition_waits_for_writers_without_blocking_new_ones(account: Account, owner: Owner) -> None:
    now = datetime.now(UTC)
    # the days ahead, which may be others than when the database was made
    keep_partitions(now=now)
    entered(account, PAST)
    with ThreadPoolExecutor(2) as others:
        with transaction.atomic():
            record_audit(owner, operation="store", memory_type="t")
            dropping = others.submit(over_own_connection, lambda: keep_partitions(now=now))
            wait_until_lock_is_awaited()
            newcomer = others.submit(
                over_own_connection, lambda: record_audit(owner, operation="delete", memory_type="t")
            )
            newcomer.result(PATIENCE_SECONDS)
            record_audit(owner, operation="update", memory_type="t")
        done = dropping.result(PATIENCE_SECONDS)

    assert (done.status, done.figures) == ("completed", {"partitions_dropped": 1, "entries_dropped": 1})
    assert set(AuditEntry.objects.values_list("operation", flat=True)) == {"store", "delete", "update"}


@pytest.mark.django_db(transaction=True)
def test_an_old_partition_in_use_is_left_to_the_next_run(
    account: Account, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.maintenance.audit_partitions.LOCK_TIMEOUT", "100ms")
    entered(account, PAST)
    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        record_audit(owner, operation="store", memory_type="t")
        keeping = other.submit(over_own_connection, lambda: keep_partitions(now=datetime.now(UTC)))
        late = keeping.result(PATIENCE_SECONDS)

    done = keep_partitions(now=datetime.now(UTC))

    assert (late.status, late.failed) == ("incomplete", 1)
    assert (done.status, done.figures["partitions_dropped"]) == ("completed", 1)


@pytest.mark.django_db(transaction=True)
def test_a_run_within_a_transaction_leaves_an_old_partition_in_use(
    account: Account, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.maintenance.audit_partitions.LOCK_TIMEOUT", "100ms")
    entered(account, PAST)

    def keep_within_a_transaction() -> JobRun:
        with transaction.atomic():
            kept = keep_partitions(now=datetime.now(UTC))
            # which goes on
            record_audit(owner, operation="delete", memory_type="t")
            return kept

    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        record_audit(owner, operation="store", memory_type="t")
        late = other.submit(over_own_connection, keep_within_a_transaction).result(PATIENCE_SECONDS)

    done = keep_partitions(now=datetime.now(UTC))

    assert (late.status, late.failed) == ("incomplete", 1)
    assert (done.status, done.figures["partitions_dropped"]) == ("completed", 1)
    assert set(AuditEntry.objects.values_list("operation", flat=True)) == {"store", "delete"}
