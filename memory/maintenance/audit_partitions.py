"""Daily partitions of the audit log (memory_audit_log_YYYYMMDD, by UTC): created ahead of time, dropped when too old.

An entry whose day has no partition creates it, so a late job loses nothing; ahead of time it costs no writer anything.
Neither stops writers: ATTACH lets them continue, and DETACH CONCURRENTLY waits for the current ones while new ones
come. A table of an old day that is no longer a partition was detached by a worker that was killed: it is dropped.
Partitions hold all accounts, so a run for one account does the same as any other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql
from psycopg.errors import LockNotAvailable

from memory import conf
from memory.maintenance.base import Batch, BatchReport, job
from memory_project.postgresql.roles import owner_connection

PARENT = "memory_audit_log"

# for transactions that stay open: the next run goes on where this one gave up
LOCK_TIMEOUT = "30s"
SET_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %s, false)"

DAYS = """
SELECT to_date(right(c.relname, 8), 'YYYYMMDD'), i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false)
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = %s::regclass
WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = %s::regclass)
    AND c.relname ~ %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTable:
    """The table of one day in its current state."""

    day: date
    is_attached: bool
    is_half_detached: bool = False

    @property
    def name(self) -> str:
        return f"{PARENT}_{self.day:%Y%m%d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStep:
    """One day's work: its partition is missing, or its entries are past their retention."""

    table: DayTable
    outdated: bool

    @property
    def cursor(self) -> str:
        return str(self.table.day)


@job(every=time(hour=0, minute=10), batch_size=1, of_installation=True)
def audit_partitions(*, now: datetime, batch: Batch) -> BatchReport:
    """Create the audit log's daily partitions ahead of time and drop those past their retention.

    One day's partition a batch, in the order of days; the cursor is the day. Only the owner of the log may drop days.
    """
    with owner_connection(), connection.cursor() as cursor:
        steps = [step for step in plan_steps(cursor, now) if step.cursor > batch.cursor]
        if not steps:
            return BatchReport(examined=0, changed=0)
        after = steps[0].cursor if len(steps) > 1 else ""
        if batch.dry_run:
            would = "partitions_dropped" if steps[0].outdated else "partitions_made"
            return BatchReport(examined=1, changed=1, cursor=after, figures={would: 1})
        act = drop_day if steps[0].outdated else make_day
        figures = act(cursor, steps[0].table)
    done = any(figures.values())
    return BatchReport(examined=1, changed=int(done), failed=int(not done), cursor=after, figures=figures)


def plan_steps(cursor: CursorWrapper, now: datetime) -> list[PartitionStep]:
    """Return what is missing or outdated, oldest first.

    Nothing is outdated before it is so by the database's clock: a run with a future `now` creates days and drops none.
    """
    today = now.astimezone(UTC).date()
    cursor.execute("SELECT (now() AT TIME ZONE 'UTC')::date")
    oldest_kept = min(today, cursor.fetchone()[0]) - timedelta(days=conf.AUDIT_RETENTION_DAYS)
    # the partitions, and the tables that used to be partitions
    cursor.execute(DAYS, [PARENT, PARENT, f"^{PARENT}_[0-9]{{8}}$"])
    found = {
        day: DayTable(day=day, is_attached=attached, is_half_detached=half) for day, attached, half in cursor.fetchall()
    }
    ahead = (today + timedelta(days=days) for days in range(conf.AUDIT_PARTITIONS_AHEAD + 1))
    missing = [day for day in ahead if day not in found or not found[day].is_attached]
    wanted = [PartitionStep(table=DayTable(day=day, is_attached=False), outdated=False) for day in missing]
    outdated = [PartitionStep(table=table, outdated=True) for day, table in found.items() if day < oldest_kept]
    return sorted([*wanted, *outdated], key=lambda step: step.table.day)


def make_day(cursor: CursorWrapper, table: DayTable) -> dict[str, int]:
    """Create a day's partition as writers do that find none; if both try, one of the two creates it."""
    cursor.execute("SELECT memory_audit_make_partition(%s)", [datetime.combine(table.day, time(), UTC)])
    return {"partitions_made": 1}


def drop_day(cursor: CursorWrapper, table: DayTable) -> dict[str, int]:
    """Drop a day's table. Does nothing while a transaction on the log stays open too long: the next run finishes it."""
    try:
        detach(cursor, table)
    except OperationalError as err:
        if isinstance(err.__cause__, LockNotAvailable):
            return {}
        raise
    cursor.execute(statement("SELECT count(*) FROM {table}", table))
    (entries,) = cursor.fetchone()
    cursor.execute(statement("DROP TABLE {table}", table))
    return {"partitions_dropped": 1, "entries_dropped": entries}


def detach(cursor: CursorWrapper, table: DayTable) -> None:
    """Detach a partition without blocking others.

    Inside a transaction of the caller, where that is impossible, new readers wait until it ends; and in a distributed
    database, for as long as it takes.
    """
    if not table.is_attached:
        return
    blocks = connection.in_atomic_block or settings.DATABASE_IS_DISTRIBUTED
    how = "FINALIZE" if table.is_half_detached else "" if blocks else "CONCURRENTLY"
    with impatience(cursor):
        cursor.execute(statement(f"ALTER TABLE {PARENT} DETACH PARTITION {{table}} {how}", table))


@contextmanager
def impatience(cursor: CursorWrapper) -> Iterator[None]:
    """Wait at most LOCK_TIMEOUT for locks. A transaction of the caller stays usable, also after an error."""
    if connection.in_atomic_block:
        with transaction.atomic():
            cursor.execute(SET_LOCK_TIMEOUT, [LOCK_TIMEOUT])
            yield
            cursor.execute(SET_LOCK_TIMEOUT, ["0"])
    else:
        cursor.execute(SET_LOCK_TIMEOUT, [LOCK_TIMEOUT])
        try:
            yield
        finally:
            cursor.execute(SET_LOCK_TIMEOUT, ["0"])


def statement(text: str, table: DayTable) -> str:
    """Return a statement about the table; names cannot be parameters."""
    return sql.SQL(text).format(table=sql.Identifier(table.name)).as_string()
