"""The audit log's partitions: some days ahead, taking in what came without one, gone when their time is over."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection

from memory import conf
from memory.maintenance import JOBS, Batch
from memory.maintenance.audit_partitions import run
from memory.maintenance.runner import run_at_once
from memory.models import Account, AuditEntry, JobRun

pytestmark = pytest.mark.django_db

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
TODAY = NOW.date()
AHEAD = [TODAY + timedelta(days=days) for days in range(conf.AUDIT_PARTITIONS_AHEAD + 1)]


def keep_partitions(*, now: datetime = NOW, dry_run: bool = False) -> JobRun:
    return run_at_once(JOBS["audit_partitions"], JobRun(job="audit_partitions", dry_run=dry_run), clock=lambda: now)


def partitions() -> list[str]:
    """Of days; the DEFAULT partition is always there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'memory_audit_log'::regclass"
        )
        return sorted(name for (name,) in cursor.fetchall() if name != "memory_audit_log_default")


def partition_names(days: list[date]) -> list[str]:
    return [f"memory_audit_log_{day:%Y%m%d}" for day in days]


def log_entry(account: Account, at: datetime) -> UUID:
    return AuditEntry.objects.create(account_id=account.id, operation="store", memory_type="t", timestamp=at).id


def partition_of(entry_id: UUID) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM memory_audit_log WHERE id = %s", [entry_id])
        return str(cursor.fetchone()[0])


def test_today_and_the_days_ahead_have_their_partitions() -> None:
    done = keep_partitions()

    assert (done.status, done.changed) == ("completed", conf.AUDIT_PARTITIONS_AHEAD + 1)
    assert partitions() == partition_names(AHEAD)


def test_a_second_run_finds_nothing_to_do() -> None:
    keep_partitions()

    again = keep_partitions()

    assert (again.status, again.examined, again.changed) == ("completed", 0, 0)


def test_the_next_day_adds_one_partition() -> None:
    keep_partitions()

    done = keep_partitions(now=NOW + timedelta(days=1))

    assert done.changed == 1
    assert partitions()[-1] == f"memory_audit_log_{AHEAD[-1] + timedelta(days=1):%Y%m%d}"


def test_a_dry_run_makes_no_partition() -> None:
    done = keep_partitions(dry_run=True)

    assert done.changed == conf.AUDIT_PARTITIONS_AHEAD + 1
    assert partitions() == []


def test_a_new_entry_goes_into_the_partition_of_its_day(account: Account) -> None:
    keep_partitions()

    entry = log_entry(account, NOW)

    assert partition_of(entry) == "memory_audit_log_20300102"


@pytest.mark.parametrize(
    ("at", "partition"),
    [
        (datetime(2030, 1, 2, 0, 0, tzinfo=UTC), "memory_audit_log_20300102"),
        (datetime(2030, 1, 2, 23, 59, 59, 999_999, tzinfo=UTC), "memory_audit_log_20300102"),
        (datetime(2030, 1, 3, 0, 0, tzinfo=UTC), "memory_audit_log_20300103"),
        (datetime(2029, 12, 24, 12, 0, tzinfo=UTC), "memory_audit_log_20291224"),
        (datetime(2030, 2, 1, 12, 0, tzinfo=UTC), "memory_audit_log_20300201"),
    ],
)
def test_an_entry_without_a_partition_moves_into_its_days(account: Account, at: datetime, partition: str) -> None:
    entry = log_entry(account, at)
    assert partition_of(entry) == "memory_audit_log_default"

    keep_partitions()

    assert partition_of(entry) == partition
    assert AuditEntry.objects.get(id=entry).timestamp == at


def test_entries_past_their_retention_go_with_their_partitions(account: Account) -> None:
    old, kept = (log_entry(account, NOW - timedelta(days=days)) for days in (1, 0))
    keep_partitions()

    done = keep_partitions(now=NOW + timedelta(days=conf.AUDIT_RETENTION_DAYS))

    assert not AuditEntry.objects.filter(id=old).exists()
    assert AuditEntry.objects.filter(id=kept).exists()
    assert partitions()[0] == "memory_audit_log_20300102"
    assert done.status == "completed"


def test_entries_past_their_retention_go_though_they_never_had_a_partition(account: Account) -> None:
    old = log_entry(account, NOW - timedelta(days=conf.AUDIT_RETENTION_DAYS + 1))

    keep_partitions()

    assert not AuditEntry.objects.filter(id=old).exists()
    assert partitions() == partition_names(AHEAD)


def test_a_partition_has_the_documented_indexes(account: Account) -> None:
    keep_partitions()

    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'memory_audit_log_20300102'")
        columns = {definition[definition.index("(") :] for (definition,) in cursor.fetchall()}
    documented = {"user_id", "session_id", "operation", "memory_type", "source_channel"}
    assert columns == {'(id, "timestamp")', '(account_id, "timestamp")'} | {
        f'(account_id, {column}, "timestamp")' for column in documented
    }


def test_one_batch_is_one_day() -> None:
    report = run(now=NOW, batch=Batch(size=1))

    assert (report.examined, report.changed, report.cursor) == (1, 1, "2030-01-02")
    assert partitions() == ["memory_audit_log_20300102"]
