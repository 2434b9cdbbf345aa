"""Gives pending memories their vector: those written while the embedder was down, slow, or sent too many at once."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.models import Memory
from memory.services.embedding_queue import embed_pending


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of due rows. Goes on while batches come back full, and stops when the embedder is down.

    The rows are their own queue, so the cursor only counts batches: it moves even when all rows of one went away.
    """
    if batch.dry_run:
        due = Memory.objects.filter(embed_after__lte=now)
        if batch.account_id is not None:
            due = due.filter(account_id=batch.account_id)
        return Report(examined=due.count(), changed=0, failed=0)
    done = embed_pending(now=now, limit=batch.size, account_id=batch.account_id)
    more = done.claimed == batch.size and not done.stopped
    cursor = str(int(batch.cursor or 0) + 1) if more else ""
    return Report(examined=done.claimed, changed=done.stored, failed=done.failed, cursor=cursor)
