"""Jobs of retention: what is over is archived or deleted.

The rules of accounts are in `services.retention`. Archived conversations are still readable, and no longer found by
searches. A new turn brings a conversation back; what was archived of it stays archived.

Short-term entries that expired, but were read often enough to be promoted, stay, unreadable, until they are. Expired
answers are those kept for repeated requests (`Idempotency-Key`): such a request is answered afresh then.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from redis.exceptions import RedisError

from ledger.journal import read_last_changes
from ledger.models import Injection
from ledger.store import end_ledger
from memory import conf
from memory.errors import MemoryServiceError
from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.stages import delete_rows, forget_installation_rows, forget_rows, forgetting, run_stages
from memory.models import (
    AgentShortTermMemory,
    ContextAccessLog,
    IdempotentRequest,
    JobRun,
    MemoryPool,
    ToolCacheEntry,
)
from memory.owner import Owner
from memory.services import retention
from memory.services.memories.correct import delete_memories
from memory.services.pools.data import delete_expired_results
from memory.services.pools.manage import forget_expired_pools

logger = logging.getLogger(__name__)


def archive_conversations(*, now: datetime, batch: Batch) -> BatchReport:
    page = batch.page_of(retention.idle_conversations(now).only("account"))
    changed = len(page.rows)
    if not batch.dry_run:
        changed = sum(retention.archive_idle_conversation(row.account_id, row.id, now=now) for row in page.rows)
    return BatchReport(examined=len(page.rows), changed=changed, cursor=page.cursor)


def erase_conversations(*, now: datetime, batch: Batch) -> BatchReport:
    """Erase archived conversations, each in batches of its own. One that cannot be erased is tried again next time."""
    page = batch.page_of(retention.expired_conversations(now).only("account"))
    if batch.dry_run:
        return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)
    changed = failed = 0
    for row in page.rows:
        batch.renew()
        try:
            changed += retention.erase_expired_conversation(row.account_id, row.id, now=now)
        except (MemoryServiceError, RedisError) as err:
            logger.warning("conversation %s was not erased: %s", row.id, type(err).__name__)
            failed += 1
    return BatchReport(examined=len(page.rows), changed=changed, failed=failed, cursor=page.cursor)


def forget_memories(find_rows: Callable[[datetime], QuerySet[Any]]) -> RunBatch:
    """Return the stage that deletes the memories that `find_rows` finds, with their links and vectors."""

    def forget(*, now: datetime, batch: Batch) -> BatchReport:
        def delete(account_id: UUID, ids: Sequence[UUID]) -> int:
            # one that was read meanwhile stays
            due = list(find_rows(now).filter(account_id=account_id, id__in=ids).values_list("id", flat=True))
            return delete_memories(Owner(account_id=account_id, actor=retention.ACTOR), due, now=now)

        return forget_rows(find_rows(now), batch, delete=delete)

    return forget


def forget_old(find_rows: Callable[[datetime], QuerySet[Any]]) -> RunBatch:
    """Return the stage that deletes the rows that `find_rows` finds, which grow older whatever happens."""

    def forget(*, now: datetime, batch: Batch) -> BatchReport:
        rows = find_rows(now)

        def delete(account_id: UUID, ids: Sequence[UUID]) -> int:
            return delete_rows(rows.model._default_manager.filter(account_id=account_id, id__in=ids))

        return forget_rows(rows, batch, delete=delete)

    return forget


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
    "expired_conversations": erase_conversations,
    "entities": forget_memories(retention.forgotten_entities),
    "strategies": forget_memories(retention.unused_strategies),
    "tool_invocations": forget_old(retention.old_invocations),
    "injections": forget_old(retention.marks_before_end),
    "ledger_ends": forget_old(retention.ends_of_ledgers),
    "model_usage": forget_old(retention.old_usage),
    "ledgers": end_idle_ledgers,
    "access_log": forgetting(old_access_lines),
    "job_runs": forget_runs,
}


@job(every=time(hour=2, minute=30), batch_size=1_000)
def cleanup(*, now: datetime, batch: Batch) -> BatchReport:
    """Archive idle conversations; delete what the retention of accounts says; clear idle ledgers; delete old logs."""
    return run_stages(CLEANUP_STAGES, now=now, batch=batch)


def forget_results(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete expired tool results, which count towards the size of their pool until then."""
    rows = ToolCacheEntry.objects.filter(expires_at__lte=now)
    return forget_rows(rows, batch, delete=partial(delete_expired_results, now=now))


def forget_pools(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete expired pools, with the kept answers that quote them."""
    rows = MemoryPool.objects.filter(expires_at__lte=now)
    return forget_rows(rows, batch, delete=partial(forget_expired_pools, now=now))


EXPIRE_STAGES: Mapping[str, RunBatch] = {
    "short_term": forgetting(lambda now: AgentShortTermMemory.objects.disposable(now)),
    "tool_cache": forget_results,
    "pools": forget_pools,
    "answers": forgetting(lambda now: IdempotentRequest.objects.filter(expires_at__lte=now)),
}


@job(every=timedelta(minutes=1), batch_size=1_000)
def expire(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete expired short-term entries (unless they wait for promotion), tool results, pools and kept answers."""
    return run_stages(EXPIRE_STAGES, now=now, batch=batch)
