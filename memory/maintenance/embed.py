"""Embedding of pending memories: those written while the embedder was down, slow, or received too many at once."""

from datetime import datetime, timedelta

from memory import conf
from memory.maintenance.base import Batch, BatchReport, job
from memory.models import Memory
from memory.services.embedding.queue import embed_pending


@job(every=timedelta(seconds=30), batch_size=conf.EMBED_BATCH_ROWS)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Compute and store the vectors of pending memories.

    Does one batch of due rows, continues while batches come back full, and stops when the embedder is down. The rows
    are their own queue, so the cursor only counts batches (it moves even when all rows of a batch disappeared); after a
    colon it holds how many texts were embedded in one request at last.
    """
    if batch.dry_run:
        due = Memory.objects.filter(embed_after__lte=now)
        if batch.account_id is not None:
            due = due.filter(account_id=batch.account_id)
        waiting = due.count()
        return BatchReport(examined=waiting, changed=waiting)
    count, _, room = batch.cursor.partition(":")
    done = embed_pending(
        now=now,
        limit=batch.size,
        account_id=batch.account_id,
        portion_tokens=int(room) if room else None,
        renew=batch.renew,
    )
    more = not done.stopped and (done.claimed == batch.size or done.left > 0)
    return BatchReport(
        examined=done.claimed - done.left,
        changed=done.stored,
        failed=done.failed,
        cursor=f"{int(count or 0) + 1}:{done.portion_tokens}" if more else "",
        figures={"vectors_stored": done.stored},
    )
