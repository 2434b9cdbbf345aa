"""Clears session, working memory and ledger of ended conversations, where that was cut short: Redis down, a kill."""

from datetime import datetime
from uuid import UUID

from memory.maintenance.base import Batch, Report
from memory.models import Conversation
from memory.services.conversations.lifecycle import clear_live_side


def run(*, now: datetime, batch: Batch) -> Report:
    """The next of them by id. One whose live side could not be cleared counts as failed, and is met again next time."""
    rows = Conversation.objects.ended_uncleared().order_by("id")
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    if batch.cursor:
        rows = rows.filter(id__gt=UUID(batch.cursor))
    found = list(rows[: batch.size])
    cursor = str(found[-1].id) if len(found) == batch.size else ""
    if batch.dry_run:
        return Report(examined=len(found), changed=len(found), cursor=cursor)
    cleared = sum(clear_live_side(conversation, now=now) for conversation in found)
    return Report(examined=len(found), changed=cleared, failed=len(found) - cleared, cursor=cursor)
