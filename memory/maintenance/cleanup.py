"""Puts away what is old: conversations, lines of the contexts' access log, runs of jobs.

Conversations that nobody wrote to for MEMORY_RETENTION_DAYS are archived: still to be read, not found by searches.

The time of the last write to a conversation counts, not of its last message: an import of old ones is fresh. A new turn
brings a conversation back; what was archived of it stays so.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.audit import record
from memory.maintenance.base import Batch, Report, Run
from memory.maintenance.forgetting import forget_rows
from memory.maintenance.stages import run_stages
from memory.models import ContextAccessLog, Conversation, JobRun
from memory.owner import Owner
from memory.services.conversations.staff_edits import archive_locked

ACTOR = "job:cleanup"


def archive_conversations(*, now: datetime, batch: Batch) -> Report:
    rows = Conversation.objects.filter(archived=False, updated_at__lt=now - timedelta(days=conf.RETENTION_DAYS))
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    after = rows.filter(id__gt=UUID(batch.cursor)) if batch.cursor else rows
    ids = list(after.order_by("id").values_list("id", flat=True)[: batch.size])
    changed = len(ids) if batch.dry_run else sum(archive(conversation_id, now=now) for conversation_id in ids)
    return Report(examined=len(ids), changed=changed, cursor=str(ids[-1]) if len(ids) == batch.size else "")


def archive(conversation_id: UUID, *, now: datetime) -> bool:
    """The conversation and its turns in one transaction; False for one that was written to meanwhile."""
    oldest = now - timedelta(days=conf.RETENTION_DAYS)
    with transaction.atomic():
        rows = Conversation.objects.filter(id=conversation_id, archived=False, updated_at__lt=oldest)
        # locked as writers lock it, so that no turn comes between; what was saved of its session may be large
        conversation = rows.defer("saved_session").select_for_update(no_key=True).first()
        if conversation is None:
            return False
        owner = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
        archive_locked(owner, conversation, now=now)
        record(owner, operation="archive", memory_type="conversation", conversation_id=conversation.conversation_id)
    return True


def forget_access_log(*, now: datetime, batch: Batch) -> Report:
    oldest = now - timedelta(days=conf.ACCESS_LOG_RETENTION_DAYS)
    return forget_rows(ContextAccessLog.objects.filter(accessed_at__lt=oldest), batch)


def forget_runs(*, now: datetime, batch: Batch) -> Report:
    """What waits or runs stays, however old."""
    oldest = now - timedelta(days=conf.JOB_RUN_RETENTION_DAYS)
    return forget_rows(JobRun.objects.finished().filter(finished_at__lt=oldest), batch)


STAGES: Mapping[str, Run] = {
    "conversations": archive_conversations,
    "access_log": forget_access_log,
    "job_runs": forget_runs,
}


def run(*, now: datetime, batch: Batch) -> Report:
    return run_stages(STAGES, now=now, batch=batch)
