"""Retention: archives idle conversations, deletes old lines of the contexts' access log and old runs of jobs.

Conversations without a write for MEMORY_RETENTION_DAYS are archived: still readable, no longer found by searches. The
time of the last write counts, not that of the last message, so an import of old conversations is fresh. A new turn
brings a conversation back; what was archived of it stays archived.
"""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.audit import record_audit
from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.forgetting import forget_rows
from memory.maintenance.stages import run_stages
from memory.models import ContextAccessLog, Conversation, JobRun
from memory.owner import Owner
from memory.services.conversations.staff_edits import archive_locked_conversation

ACTOR = "job:cleanup"


def archive_conversations(*, now: datetime, batch: Batch) -> BatchReport:
    rows = Conversation.objects.filter(archived=False, updated_at__lt=now - timedelta(days=conf.RETENTION_DAYS))
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    after = rows.filter(id__gt=UUID(batch.cursor)) if batch.cursor else rows
    ids = list(after.order_by("id").values_list("id", flat=True)[: batch.size])
    changed = (
        len(ids)
        if batch.dry_run
        else sum(archive_idle_conversation(conversation_id, now=now) for conversation_id in ids)
    )
    return BatchReport(examined=len(ids), changed=changed, cursor=str(ids[-1]) if len(ids) == batch.size else "")


def archive_idle_conversation(conversation_id: UUID, *, now: datetime) -> bool:
    """Archive a conversation and its turns in one transaction; return False if it was written to meanwhile."""
    oldest = now - timedelta(days=conf.RETENTION_DAYS)
    with transaction.atomic():
        rows = Conversation.objects.filter(id=conversation_id, archived=False, updated_at__lt=oldest)
        # locked as writers lock it, so that no turn comes between; what was saved of its session may be large
        conversation = rows.defer("saved_session").select_for_update(no_key=True).first()
        if conversation is None:
            return False
        owner = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
        archive_locked_conversation(owner, conversation, now=now)
        record_audit(
            owner, operation="archive", memory_type="conversation", conversation_id=conversation.conversation_id
        )
    return True


def forget_access_log(*, now: datetime, batch: Batch) -> BatchReport:
    oldest = now - timedelta(days=conf.ACCESS_LOG_RETENTION_DAYS)
    return forget_rows(ContextAccessLog.objects.filter(accessed_at__lt=oldest), batch)


def forget_runs(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete old finished runs; waiting and running ones stay, however old."""
    oldest = now - timedelta(days=conf.JOB_RUN_RETENTION_DAYS)
    return forget_rows(JobRun.objects.finished().filter(finished_at__lt=oldest), batch)


STAGES: Mapping[str, RunBatch] = {
    "conversations": archive_conversations,
    "access_log": forget_access_log,
    "job_runs": forget_runs,
}


@job(every=time(hour=2, minute=30), batch_size=1_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Archive conversations that nobody writes to; delete old access-log lines and old job runs."""
    return run_stages(STAGES, now=now, batch=batch)
