"""Moves the access log's lines of reads from Redis into the table, and the counts of those that were lost."""

from datetime import datetime, timedelta

from memory.maintenance.base import Batch, BatchReport, job
from memory.services.contexts.access_log import preview_access_lines, write_access_lines


@job(every=timedelta(seconds=15), batch_size=1_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Write the access log of contexts from Redis into its table, and count the reads of entries.

    Lines whose context is gone, and those that a killed worker had written before, count as examined alone.
    """
    if batch.dry_run:
        done = preview_access_lines(batch.size, after=batch.cursor, account_id=batch.account_id)
    else:
        done = write_access_lines(batch.size, after=batch.cursor, account_id=batch.account_id, now=now)
    return BatchReport(examined=done.examined, changed=done.changed, cursor=done.cursor)
