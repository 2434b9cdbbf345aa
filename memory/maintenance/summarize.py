"""Summarizes conversations: long ones, ended ones, those that fell idle, and those somebody asked for."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.models import Conversation
from memory.services.summaries import summarize_due


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of due conversations. Goes on while some are due, or have parts left; stops when the model is down.

    The rows are their own queue, so the cursor only counts batches.
    """
    due = Conversation.objects.due_for_summary(now)
    if batch.account_id is not None:
        due = due.filter(account_id=batch.account_id)
    if batch.dry_run:
        return Report(examined=due.count(), changed=0, failed=0)
    done = summarize_due(now=now, limit=batch.size, account_id=batch.account_id)
    more = done.claimed and not done.stopped and due.exists()
    cursor = str(int(batch.cursor or 0) + 1) if more else ""
    return Report(examined=done.claimed, changed=done.stored, failed=done.failed, cursor=cursor)
