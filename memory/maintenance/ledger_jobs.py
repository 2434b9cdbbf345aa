"""Jobs of the injection ledgers: what Redis holds of conversations becomes durable, comes back, and is cleared."""

from datetime import datetime, timedelta

from ledger.journal import count_lost_ledgers, flush_journal, preview_flush, restore_all_ledgers
from memory.maintenance.base import Batch, BatchReport, job
from memory.models import Conversation
from memory.services.conversations.end import clear_live_side


@job(every=timedelta(seconds=15), batch_size=1_000)
def journal_injections(*, now: datetime, batch: Batch) -> BatchReport:
    """Copy the injection ledger's changes from Redis into the durable journal.

    The journal's rows say what was injected, when, by whom, and into which conversation.
    """
    step = preview_flush if batch.dry_run else flush_journal
    flushed = step(batch.size, after=batch.cursor, account_id=batch.account_id)
    return BatchReport(examined=flushed.examined, changed=flushed.changed, cursor=flushed.cursor)


# until it looks, a Redis from an old copy may call an item new that was injected before
@job(every=timedelta(seconds=10), batch_size=1)
def restore_ledgers(*, now: datetime, batch: Batch) -> BatchReport:
    """Rebuild every injection ledger from the journal after Redis has lost its data.

    All in one batch: a ledger restored is a ledger less to do when it is interrupted and begins again. A new
    installation has none to restore.
    """
    if batch.dry_run:
        lost = count_lost_ledgers(batch.account_id)
        return BatchReport(examined=lost, changed=lost)
    restored = restore_all_ledgers(batch.account_id)
    return BatchReport(examined=restored.examined, changed=restored.changed)


@job(every=timedelta(minutes=1), batch_size=100)
def clear_ended(*, now: datetime, batch: Batch) -> BatchReport:
    """Clear the session, working memory and ledger of ended conversations where that was interrupted.

    Redis was down, or a worker was killed. The next of them by account and id. One whose live side could not be cleared
    counts as failed, and is met again next time.
    """
    page = batch.page_of(Conversation.objects.ended_uncleared())
    found = len(page.rows)
    if batch.dry_run:
        return BatchReport(examined=found, changed=found, cursor=page.cursor)
    cleared = sum(clear_live_side(conversation, now=now) for conversation in page.rows)
    return BatchReport(examined=found, changed=cleared, failed=found - cleared, cursor=page.cursor)
