"""Makes the ledger durable: what was injected, when, by whom, into which conversation, from Redis into rows."""

from datetime import datetime, timedelta

from ledger.journal import flush_journal, preview_flush
from memory.maintenance.base import Batch, BatchReport, job


@job(every=timedelta(seconds=15), batch_size=1_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Copy the injection ledger's changes from Redis into the durable journal."""
    step = preview_flush if batch.dry_run else flush_journal
    flushed = step(batch.size, after=batch.cursor, account_id=batch.account_id)
    return BatchReport(examined=flushed.examined, changed=flushed.changed, cursor=flushed.cursor)
