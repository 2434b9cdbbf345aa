"""Clears session, working memory and ledger of ended conversations, where that was cut short: Redis down, a kill."""

from datetime import datetime, timedelta
from uuid import UUID

from memory.maintenance.base import Batch, BatchReport, job
from memory.models import Conversation
from memory.services.conversations.lifecycle import clear_live_side


@job(every=timedelta(minutes=1), batch_size=100)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Clear the session, working memory and ledger of ended conversations where that was interrupted.

    The next of them by id. One whose live side could not be cleared counts as failed, and is met again next time.
    """
    rows = Conversation.objects.ended_uncleared().order_by("id")
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    if batch.cursor:
        rows = rows.filter(id__gt=UUID(batch.cursor))
    found = list(rows[: batch.size])
    cursor = str(found[-1].id) if len(found) == batch.size else ""
    if batch.dry_run:
        return BatchReport(examined=len(found), changed=len(found), cursor=cursor)
    cleared = sum(clear_live_side(conversation, now=now) for conversation in found)
    return BatchReport(examined=len(found), changed=cleared, failed=len(found) - cleared, cursor=cursor)
