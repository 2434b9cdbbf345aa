"""Moves the access log's lines of reads from Redis into the table, and the counts of those that were lost."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.services.contexts.access_log import look_at_lines, write_lines


def run(*, now: datetime, batch: Batch) -> Report:
    """Lines whose context is gone, and those that a killed worker had written before, count as examined alone."""
    if batch.dry_run:
        done = look_at_lines(batch.size, after=batch.cursor, account_id=batch.account_id)
    else:
        done = write_lines(batch.size, after=batch.cursor, account_id=batch.account_id, now=now)
    return Report(examined=done.examined, changed=done.changed, cursor=done.cursor)
