"""One batch of a queue that conversations' rows are, for the jobs that work them off."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memory.maintenance.base import Batch, BatchReport
from memory.services.conversations.queue import BatchResult, ConversationQueue


class WorkDue(Protocol):
    def __call__(
        self, *, now: datetime, limit: int, account_id: UUID | None, renew: Callable[[], None]
    ) -> BatchResult: ...


def run_queue(queue: ConversationQueue, work_due: WorkDue, *, now: datetime, batch: Batch) -> BatchReport:
    """Goes on while some are due, or have parts left; stops when the model is down.

    The rows are their own queue, so the cursor only counts batches.
    """
    due = queue.due_rows(now, account_id=batch.account_id)
    if batch.dry_run:
        waiting = due.count()
        return BatchReport(examined=waiting, changed=waiting)
    done = work_due(now=now, limit=batch.size, account_id=batch.account_id, renew=batch.renew)
    more = done.claimed and not done.stopped and due.exists()
    cursor = str(int(batch.cursor or 0) + 1) if more else ""
    return BatchReport(
        examined=done.claimed, changed=done.stored, failed=done.failed, cursor=cursor, figures=done.figures
    )
