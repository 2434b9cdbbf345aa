"""Archives conversations that nobody wrote to for MEMORY_RETENTION_DAYS: still to be read, no longer found by searches.

The time of the last write counts, not of the last message: an import of old conversations is fresh. A new turn brings
the conversation back; what was archived of it stays so.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.audit import record
from memory.maintenance.base import Batch, Report
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversation_corrections import archive_locked

ACTOR = "job:archive_conversations"


def run(*, now: datetime, batch: Batch) -> Report:
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
