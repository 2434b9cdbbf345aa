"""Notices a Redis that lost its data, and makes its ledgers again. A new installation has none to make."""

from datetime import datetime, timedelta

from ledger.journal import count_lost_ledgers, restore_all_ledgers
from memory.maintenance.base import Batch, BatchReport, job


# until it looks, a Redis from an old copy may call an item new that was injected before
@job(every=timedelta(seconds=10), batch_size=1)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Rebuild every injection ledger from the journal after Redis has lost its data.

    All in one batch: a ledger restored is a ledger less to do when it is interrupted and begins again.
    """
    if batch.dry_run:
        lost = count_lost_ledgers(batch.account_id)
        return BatchReport(examined=lost, changed=lost)
    restored = restore_all_ledgers(batch.account_id)
    return BatchReport(examined=restored.examined, changed=restored.changed)
