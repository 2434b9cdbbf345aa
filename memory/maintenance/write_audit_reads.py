"""Moves the audit log's entries of reads from Redis into the table."""

from datetime import datetime, timedelta

from memory.maintenance.base import Batch, BatchReport, job
from memory.services.audit import preview_reads, write_reads


@job(every=timedelta(seconds=15), batch_size=1_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Write the audit log's read entries from Redis into its table.

    Entries that a killed worker had written before count as examined alone.
    """
    move = preview_reads if batch.dry_run else write_reads
    done = move(batch.size, after=batch.cursor, account_id=batch.account_id)
    counts = {"reads_written": done.changed, "reads_refused": done.failed}
    return BatchReport(
        examined=done.examined,
        changed=done.changed,
        failed=done.failed,
        cursor=done.cursor,
        figures={name: count for name, count in counts.items() if count},
    )
