"""Moves the audit log's entries of reads from Redis into the table."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.services.audit.log import look_at_reads, write_reads


def run(*, now: datetime, batch: Batch) -> Report:
    """Entries that a killed worker had written before count as examined alone."""
    move = look_at_reads if batch.dry_run else write_reads
    done = move(batch.size, after=batch.cursor, account_id=batch.account_id)
    counts = {"reads_written": done.changed, "reads_refused": done.failed}
    return Report(
        examined=done.examined,
        changed=done.changed,
        failed=done.failed,
        cursor=done.cursor,
        figures={name: count for name, count in counts.items() if count},
    )
