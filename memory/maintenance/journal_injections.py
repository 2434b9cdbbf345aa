"""Makes the ledger durable: what was injected, when, by whom, into which conversation, from Redis into rows."""

from datetime import datetime

from ledger.journal import flush, look
from memory.maintenance.base import Batch, Report


def run(*, now: datetime, batch: Batch) -> Report:
    step = look if batch.dry_run else flush
    flushed = step(batch.size, after=batch.cursor, account_id=batch.account_id)
    return Report(examined=flushed.examined, changed=flushed.changed, cursor=flushed.cursor)
