"""Jobs of retention: what is over is archived or deleted.

Conversations without a write for MEMORY_RETENTION_DAYS are archived: still readable, no longer found by searches. The
time of the last write counts, not that of the last message, so an import of old conversations is fresh. A new turn
brings a conversation back; what was archived of it stays archived.

Short-term entries that expired, but were read often enough to be promoted, stay, unreadable, until they are. Expired
answers are those kept for repeated requests (`Idempotency-Key`): such a request is answered afresh then.
"""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from ledger.journal import read_last_changes
from ledger.models import Injection
from ledger.store import end_ledger
from memory import conf
from memory.audit import record_audit
from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.stages import forget_installation_rows, forget_rows, forgetting, run_stages
from memory.models import (
    AgentShortTermMemory,
    ContextAccessLog,
    Conversation,
    IdempotentRequest,
    JobRun,
    MemoryPool,
    ToolCacheEntry,
)
from memory.owner import Owner
from memory.services.conversations.staff_edits import archive_locked_conversation
from memory.services.pools.data import delete_expired_results

ACTOR = "job:cleanup"


def archive_conversations(*, now: datetime, batch: Batch) -> BatchReport:
    rows = Conversation.objects.filter(archived=False, updated_at__lt=now - timedelta(days=conf.RETENTION_DAYS))
    page = batch.page_of(rows.only("account"))
    changed = len(page.rows)
    if not batch.dry_run:
        changed = sum(archive_idle_conversation(row.account_id, row.id, now=now) for row in page.rows)
    return BatchReport(examined=len(page.rows), changed=changed, cursor=page.cursor)


def archive_idle_conversation(account_id: UUID, conversation_id: UUID, *, now: datetime) -> bool:
    """Archive a conversation and its turns in one transaction; return False if it was written to meanwhile."""
    oldest = now - timedelta(days=conf.RETENTION_DAYS)
    with transaction.atomic():
        rows = Conversation.objects.filter(account_id=account_id, id=conversation_id, archived=False)
        # locked as writers lock it, so that no turn comes between; what was saved of its session may be large
        idle = rows.filter(updated_at__lt=oldest).defer("saved_session")
        conversation = idle.select_for_update(no_key=True).first()
        if conversation is None:
            return False
        owner = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
        archive_locked_conversation(owner, conversation, now=now)
        record_audit(
            owner, operation="archive", memory_type="conversation", conversation_id=conversation.conversation_id
        )
    return True


def old_access_lines(now: datetime) -> QuerySet[ContextAccessLog]:
    return ContextAccessLog.objects.filter(accessed_at__lt=now - timedelta(days=conf.ACCESS_LOG_RETENTION_DAYS))


def old_runs(now: datetime) -> QuerySet[JobRun]:
    """Return old finished runs; waiting and running ones stay, however old."""
    return JobRun.objects.finished().filter(finished_at__lt=now - timedelta(days=conf.JOB_RUN_RETENTION_DAYS))


def forget_runs(*, now: datetime, batch: Batch) -> BatchReport:
    rows = old_runs(now)
    return forget_installation_rows(
        rows if batch.account_id is None else rows.filter(account_id=batch.account_id), batch
    )


def end_idle_ledgers(*, now: datetime, batch: Batch) -> BatchReport:
    """Clear ledgers that nobody changed for MEMORY_LEDGER_RETENTION_DAYS, by the journal's last change of each."""
    account, _, conversation_id = batch.cursor.partition(",")
    after = (UUID(account), conversation_id) if account else None
    found = read_last_changes(after=after, limit=batch.size, account_id=batch.account_id)
    before = now - timedelta(days=conf.LEDGER_RETENTION_DAYS)
    idle = [ref for ref, event, at in found if at < before and event != Injection.Event.ENDED]
    changed = len(idle) if batch.dry_run else sum(end_ledger(ref) for ref in idle)
    is_last = len(found) < batch.size
    cursor = "" if is_last else f"{found[-1][0].account_id},{found[-1][0].conversation_id}"
    return BatchReport(examined=len(idle), changed=changed, cursor=cursor)


CLEANUP_STAGES: Mapping[str, RunBatch] = {
    "conversations": archive_conversations,
    "ledgers": end_idle_ledgers,
    "access_log": forgetting(old_access_lines),
    "job_runs": forget_runs,
}


@job(every=time(hour=2, minute=30), batch_size=1_000)
def cleanup(*, now: datetime, batch: Batch) -> BatchReport:
    """Archive conversations that nobody writes to; clear idle ledgers; delete old access-log lines and job runs."""
    return run_stages(CLEANUP_STAGES, now=now, batch=batch)


def forget_results(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete expired tool results, which count towards the size of their pool until then."""
    rows = ToolCacheEntry.objects.filter(expires_at__lte=now)
    return forget_rows(rows, batch, delete=partial(delete_expired_results, now=now))


EXPIRE_STAGES: Mapping[str, RunBatch] = {
    "short_term": forgetting(lambda now: AgentShortTermMemory.objects.disposable(now)),
    "tool_cache": forget_results,
    "pools": forgetting(lambda now: MemoryPool.objects.filter(expires_at__lte=now)),
    "answers": forgetting(lambda now: IdempotentRequest.objects.filter(expires_at__lte=now)),
}


@job(every=timedelta(minutes=1), batch_size=1_000)
def expire(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete expired short-term entries (unless they wait for promotion), tool results, pools and kept answers."""
    return run_stages(EXPIRE_STAGES, now=now, batch=batch)
