"""Notices a Redis that lost its data, and makes its ledgers again. A new installation has none to make."""

from datetime import datetime

from ledger.journal import count_lost, restore_all
from memory.maintenance.base import Batch, Report


def run(*, now: datetime, batch: Batch) -> Report:
    """All in one batch: a ledger restored is a ledger less to do when it is interrupted and begins again."""
    if batch.dry_run:
        lost = count_lost(batch.account_id)
        return Report(examined=lost, changed=lost)
    restored = restore_all(batch.account_id)
    return Report(examined=restored.examined, changed=restored.changed)
