"""The audit log beyond single entries: reads that go through Redis, queries, erasing of texts, audited writes of staff.

Writes are logged in their own transaction (`audit.record_audit`). Reads are pushed to a stream (`tiers.audit_reads`) if
the account's level keeps them, so that no read waits for a database write; a job turns the stream into rows.
`create_audited_row` and its siblings write plain rows edited by staff (accounts, links, participants, …) with their
audit entry. Rows with rules of their own have their own services: memories (`memories.correct`), API keys and teams
(`accounts.register`).
"""

import logging
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError, connection, models, transaction
from django.db.models import QuerySet

from memory import conf
from memory.audit import (
    audit_json,
    audit_level_of,
    build_audit_entry,
    level_includes,
    record_audit,
    time_of_uuid7,
    write_audit_entry,
)
from memory.errors import NotFound, Unprocessable
from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.services.account_walk import BatchReport
from memory.tiers import audit_reads
from memory.tiers.audit_reads import ReadLine
from memory_project.ids import uuid7

logger = logging.getLogger(__name__)

# errors caused by the line itself, which would recur at every run
REJECTED_ROW_ERRORS = (DataError, IntegrityError, UnicodeEncodeError)

READS_A_BATCH = 1_000
MAX_ERASED_ENTRIES = 10_000
"""Entries whose texts one call may erase."""

MAKE_PARTITIONS = """
SELECT memory_audit_make_partition(min(at)) FROM unnest(%s::timestamptz[]) AS at GROUP BY (at AT TIME ZONE 'UTC')::date
"""

# an entry may arrive twice, if Redis took it without confirming and it was written directly as well
INSERT_READS = """
INSERT INTO memory_audit_log SELECT * FROM jsonb_populate_recordset(NULL::memory_audit_log, %s::jsonb)
ON CONFLICT DO NOTHING RETURNING id
"""

ERASE_PAYLOADS = "SELECT memory_erase_audit_payloads(%s, %s::uuid[])"


def record_read(
    owner: Owner, *, memory_type: str, affected_ids: Sequence[UUID | str], operation: str = "retrieve", **columns: Any
) -> None:
    """Record that the owner read these items, if its level keeps reads. One round trip to Redis, else nothing.

    An entry that Redis does not accept is written to the table immediately. `columns` as in `audit.record_audit`.
    """
    level = audit_level_of(owner)
    if not level_includes(level, "reads"):
        return
    entry_id = uuid7()
    columns |= {"operation": operation, "memory_type": memory_type, "affected_ids": affected_ids}
    entry = dict(build_audit_entry(owner, id=entry_id, timestamp=time_of_uuid7(entry_id), **columns))
    entry["config_snapshot"] = {"audit_level": level} | entry["config_snapshot"]
    if level != "verbose":
        entry["metadata"] = {}
    if not audit_reads.push_audit_read(owner.account_id, audit_json(entry)):
        write_audit_entry(entry, needed="reads")


def records_reads(owner: Owner) -> bool:
    """Return True if the owner's level keeps reads."""
    return level_includes(audit_level_of(owner), "reads")


def count_other_channels(owner: Owner, channels: Collection[str]) -> int:
    """Return the number of results, each given by its channel, that are not from the active channel."""
    return sum(1 for channel in channels if channel != owner.channel)


def preview_reads(size: int, *, after: str, account_id: UUID | None) -> BatchReport:
    """Return what `write_reads` would do (`changed` is an upper bound). Changes nothing."""
    lines, cursor = audit_reads.read_audit_lines(size, after=after, account_id=account_id)
    return BatchReport(examined=len(lines), changed=len(lines), cursor=cursor)


def write_reads(size: int, *, after: str, account_id: UUID | None) -> BatchReport:
    """Move up to `size` reads after the cursor into the table, into the partitions of their days.

    It may be killed at any point and run again: nothing is lost or doubled, because an entry has its id and its time
    since it was pushed. A line that the table refuses is set aside and holds up no other. With an account, others'
    lines stay.
    """
    lines, cursor = audit_reads.read_audit_lines(size, after=after, account_id=account_id)
    if not lines:
        return BatchReport(examined=0, changed=0, cursor=cursor)
    refused: list[ReadLine] = []
    try:
        new = insert_reads(lines)
    except REJECTED_ROW_ERRORS:
        new, refused = insert_reads_one_by_one(lines)
    # after the outermost commit: a line must not be deleted before its row is safe
    transaction.on_commit(lambda: audit_reads.delete_audit_lines(lines, aside=refused))
    return BatchReport(examined=len(lines), changed=new, failed=len(refused), cursor=cursor)


def write_waiting_reads(account_id: UUID) -> None:
    """Move all reads of the account into the table. Raises RedisError.

    Call it before the transaction that needs them: within it, the job that moves reads would wait for its end.
    """
    cursor = write_reads(READS_A_BATCH, after="", account_id=account_id).cursor
    while cursor:
        cursor = write_reads(READS_A_BATCH, after=cursor, account_id=account_id).cursor


def insert_reads(lines: Sequence[ReadLine]) -> int:
    """Insert the entries, all or none, and return the number of new ones. Missing partitions are created first."""
    entries = [line.entry for line in lines]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(MAKE_PARTITIONS, [[entry["timestamp"] for entry in entries]])
        cursor.execute(INSERT_READS, [audit_json(entries)])
        return int(cursor.rowcount)


def insert_reads_one_by_one(lines: Sequence[ReadLine]) -> tuple[int, list[ReadLine]]:
    """Insert the entries one by one; return the number of new ones, and those that the table refuses."""
    new, refused = 0, []
    for line in lines:
        try:
            new += insert_reads([line])
        except REJECTED_ROW_ERRORS as err:
            logger.error("the audit log refuses the read at %s: %s", line.stream_id, type(err).__name__)
            refused.append(line)
    return new, refused


def audit_entries(owner: Owner) -> QuerySet[AuditEntry]:
    """Return the account's entries; for an owner that is an agent, only that agent's."""
    entries = AuditEntry.objects.in_account(owner.account_id)
    return entries.filter(agent_id=owner.agent_id) if owner.agent_id else entries


def erase_payloads(owner: Owner, entry_ids: Collection[UUID]) -> int:
    """Blank query, error and metadata of these entries for good and return their number. The erasure itself is logged.

    Operation, affected ids and actor stay. Raises NotFound if none of them is the account's, Unprocessable for more
    than MAX_ERASED_ENTRIES.
    """
    if len(entry_ids) > MAX_ERASED_ENTRIES:
        raise Unprocessable(f"at most {MAX_ERASED_ENTRIES} entries can be erased in one call")
    ids = sorted(set(entry_ids))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ERASE_PAYLOADS, [owner.account_id, ids])
        (erased,) = cursor.fetchone()
        if not erased:
            raise NotFound("no such entries")
        record_audit(owner, operation="erase_audit", memory_type="audit", affected_ids=ids, result_count=erased)
    return int(erased)


def set_audit_level(owner: Owner, *, level: str) -> None:
    """Set the account's audit level; "" follows the installation's. Logged at every level."""
    if level not in ("", *conf.AUDIT_LEVELS):
        raise Unprocessable(f"level must be empty or one of {', '.join(conf.AUDIT_LEVELS)}")
    with transaction.atomic():
        account = Account.objects.select_for_update(no_key=True).get(id=owner.account_id)
        before, account.audit_level = account.audit_level, level
        account.save(update_fields=["audit_level"])
        record_audit(
            owner,
            operation="set_audit_level",
            memory_type="account",
            affected_ids=[account.id],
            config_snapshot={"audit_level_before": before or conf.AUDIT_LEVEL},
        )


def create_audited_row(owner: Owner, row: models.Model, *, memory_type: str) -> None:
    """Insert the row and its audit entry in one transaction."""
    with transaction.atomic():
        row.save(force_insert=True)
        record_audit(owner, operation="create", memory_type=memory_type, affected_ids=[str(row.pk)])


def update_audited_row(owner: Owner, row: models.Model, *, columns: Sequence[str], memory_type: str) -> None:
    """Store these columns of the row, and no others, with its audit entry in one transaction."""
    with transaction.atomic():
        row.save(update_fields=columns)
        record_audit(
            owner,
            operation="update",
            memory_type=memory_type,
            affected_ids=[str(row.pk)],
            metadata={"columns": sorted(columns)},
        )


def delete_audited_row(owner: Owner, row: models.Model, *, memory_type: str) -> None:
    """Delete the row and everything that belongs to it, with its audit entry in one transaction."""
    row_id = str(row.pk)
    with transaction.atomic():
        row.delete()
        record_audit(owner, operation="delete", memory_type=memory_type, affected_ids=[row_id])
