"""Helpers for tests of the audit log, with its reads as rows."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models import Account, AuditEntry
from memory.services.audit import write_reads


def written_reads() -> list[AuditEntry]:
    """Run the job that writes rows of reads, and return these rows, oldest first."""
    write_reads(1_000, after="", account_id=None)
    return list(AuditEntry.objects.filter(operation="retrieve").order_by("id"))


def written_read() -> AuditEntry:
    """Return the only read that was written."""
    (entry,) = written_reads()
    return entry


def entered(account: Account, at: datetime, **columns: Any) -> AuditEntry:
    """An entry of that time, whose day gets its partition."""
    make_partition(at)
    named = {"operation": "store", "memory_type": "episodic"} | columns
    return AuditEntry.objects.create(account_id=account.id, timestamp=at, **named)


def make_partition(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT memory_audit_make_partition(%s)", [at])


def run_deferred_trigger() -> None:
    """Run the deferred trigger that a commit runs for entries whose day has no partition."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS audit_late_settles IMMEDIATE")
        cursor.execute("SET CONSTRAINTS audit_late_settles DEFERRED")


def partition_of(entry_id: UUID) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM memory_audit_log WHERE id = %s", [entry_id])
        return str(cursor.fetchone()[0])


def partitions() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'memory_audit_log'::regclass"
        )
        return sorted(name for (name,) in cursor.fetchall())


def drop_partitions() -> None:
    """Drop all partitions, as if none had been made."""
    with connection.cursor() as cursor:
        for name in partitions():
            cursor.execute(f"DROP TABLE {name}")
