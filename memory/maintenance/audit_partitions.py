"""The audit log's daily partitions (named memory_audit_log_YYYYMMDD, by UTC): made ahead of time, dropped when too old.

A day without its partition loses nothing: its rows lie in the DEFAULT partition, and move when the partition is made.
Partitions hold all accounts, so a run that one account asked for does the same as any other.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from memory import conf
from memory.maintenance.base import Batch, Report

PARENT = "memory_audit_log"
DEFAULT = f"{PARENT}_default"

# while we wait for our lock, every writer of the audit log waits behind us: give up soon, the job comes round again
LOCK_TIMEOUT = "2s"

# The parent is locked first. A writer that waited for DEFAULT only would have been sent there already, and then be
# refused, since DEFAULT takes no more rows of a day that has its partition.
MAKE = """
LOCK TABLE ONLY {parent} IN ACCESS EXCLUSIVE MODE;
CREATE TABLE {partition} (LIKE {parent} INCLUDING DEFAULTS);
WITH moved AS (DELETE FROM {default} WHERE timestamp >= {start} AND timestamp < {end} RETURNING *)
    INSERT INTO {partition} SELECT * FROM moved;
ALTER TABLE {parent} ATTACH PARTITION {partition} FOR VALUES FROM ({start}) TO ({end});
"""

DROP = """
LOCK TABLE ONLY {parent} IN ACCESS EXCLUSIVE MODE;
DROP TABLE IF EXISTS {partition};
DELETE FROM {default} WHERE timestamp >= {start} AND timestamp < {end};
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One day's work: its partition is wanted, or its rows are past their retention."""

    day: date
    outdated: bool

    def statements(self) -> str:
        """What to execute, in one transaction. Partition bounds take no parameters, so all of it is text."""
        composed = sql.SQL(DROP if self.outdated else MAKE).format(
            parent=sql.Identifier(PARENT),
            default=sql.Identifier(DEFAULT),
            partition=sql.Identifier(f"{PARENT}_{self.day:%Y%m%d}"),
            start=sql.Literal(f"{self.day} 00:00:00+00"),
            end=sql.Literal(f"{self.day + timedelta(days=1)} 00:00:00+00"),
        )
        return composed.as_string()


def run(*, now: datetime, batch: Batch) -> Report:
    """One day's partition a batch, in the order of days; the cursor is the day."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [PARENT])
        steps = [step for step in plan_steps(cursor, now) if str(step.day) > batch.cursor]
        if not steps:
            return Report(examined=0, changed=0)
        if not batch.dry_run:
            cursor.execute(steps[0].statements())
    return Report(examined=1, changed=1, cursor=str(steps[0].day) if len(steps) > 1 else "")


def plan_steps(cursor: CursorWrapper, now: datetime) -> list[Step]:
    """What is missing or outdated, oldest first; empty when all is as it should be."""
    today = now.astimezone(UTC).date()
    oldest_kept = today - timedelta(days=conf.AUDIT_RETENTION_DAYS)
    made, stray = days_with_partition(cursor), days_in_default(cursor)
    ahead = {today + timedelta(days=days) for days in range(conf.AUDIT_PARTITIONS_AHEAD + 1)}
    wanted = {day for day in (ahead | stray) - made if day >= oldest_kept}
    outdated = {day for day in made | stray if day < oldest_kept}
    return [Step(day=day, outdated=day in outdated) for day in sorted(wanted | outdated)]


def days_with_partition(cursor: CursorWrapper) -> set[date]:
    cursor.execute(
        "SELECT to_date(right(relname, 8), 'YYYYMMDD') FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
        " WHERE inhparent = %s::regclass AND relname ~ %s",
        [PARENT, f"^{PARENT}_[0-9]{{8}}$"],
    )
    return {day for (day,) in cursor.fetchall()}


def days_in_default(cursor: CursorWrapper) -> set[date]:
    cursor.execute("SELECT DISTINCT (timestamp AT TIME ZONE 'UTC')::date FROM memory_audit_log_default")
    return {day for (day,) in cursor.fetchall()}
