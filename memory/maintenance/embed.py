"""Gives pending memories their vector: those written while the embedder was down, slow, or sent too many at once."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.models import Memory
from memory.services.embedding.queue import embed_pending


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of due rows. Goes on while batches come back full, and stops when the embedder is down.

    The rows are their own queue, so the cursor only counts batches (it moves even when all rows of one went away), and
    tells after a colon how much was embedded at once at last.
    """
    if batch.dry_run:
        due = Memory.objects.filter(embed_after__lte=now)
        if batch.account_id is not None:
            due = due.filter(account_id=batch.account_id)
        waiting = due.count()
        return Report(examined=waiting, changed=waiting)
    count, _, room = batch.cursor.partition(":")
    done = embed_pending(
        now=now,
        limit=batch.size,
        account_id=batch.account_id,
        room=int(room) if room else None,
        renew=batch.renew,
    )
    more = not done.stopped and (done.claimed == batch.size or done.left > 0)
    return Report(
        examined=done.claimed - done.left,
        changed=done.stored,
        failed=done.failed,
        cursor=f"{int(count or 0) + 1}:{done.room}" if more else "",
        figures={"vectors_stored": done.stored},
    )
