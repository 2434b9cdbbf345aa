"""Keeps the statistics of words small: each write appends to them, and what says the same thing becomes one row."""

from datetime import datetime
from uuid import UUID

from memory.maintenance.base import Batch, Report
from memory.services.recall.term_statistics import Stretch, changed_account, fold_terms, rehearse_folding


def run(*, now: datetime, batch: Batch) -> Report:
    """Fold the next terms of one account that changed. A cursor is an account, a colon, and the last term's row."""
    named, _, after = batch.cursor.partition(":")
    account_id = UUID(named) if named else changed_account(after=None, only=batch.account_id)
    if account_id is None:
        return Report(examined=0, changed=0)
    stretch = Stretch(account_id=account_id, after=int(after or 0), size=batch.size)
    folded = rehearse_folding(stretch) if batch.dry_run else fold_terms(stretch)
    cursor = f"{account_id}:{folded.mark}" if folded.mark else cursor_behind(account_id, batch)
    return Report(examined=folded.examined, changed=folded.fewer, cursor=cursor)


def cursor_behind(account_id: UUID, batch: Batch) -> str:
    """Where the next account begins."""
    following = changed_account(after=account_id, only=batch.account_id)
    return f"{following}:" if following else ""
