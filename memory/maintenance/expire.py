"""Deletes what has expired: short-term entries, results of tools, pools with all that is in them, kept answers.

Short-term entries that were read often enough to be promoted stay, unreadable, until they are. Answers are those kept
for repeated requests (`Idempotency-Key`): such a request is answered afresh then.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.forgetting import forget_rows
from memory.maintenance.stages import run_stages
from memory.models import AgentShortTermMemory, IdempotentRequest, MemoryPool, ToolCacheEntry
from memory.services.pools.share import delete_expired_results


def forget_entries(*, now: datetime, batch: Batch) -> BatchReport:
    return forget_rows(AgentShortTermMemory.objects.disposable(now), batch)


def forget_results(*, now: datetime, batch: Batch) -> BatchReport:
    """Results count in their pool as long as they are there."""
    rows = ToolCacheEntry.objects.filter(expires_at__lte=now)
    return forget_rows(rows, batch, delete=lambda _rows, ids: delete_expired_results(ids, now=now))


def forget_pools(*, now: datetime, batch: Batch) -> BatchReport:
    return forget_rows(MemoryPool.objects.filter(expires_at__lte=now), batch)


def forget_answers(*, now: datetime, batch: Batch) -> BatchReport:
    return forget_rows(IdempotentRequest.objects.filter(expires_at__lte=now), batch)


STAGES: Mapping[str, RunBatch] = {
    "short_term": forget_entries,
    "tool_cache": forget_results,
    "pools": forget_pools,
    "answers": forget_answers,
}


@job(every=timedelta(minutes=1), batch_size=1_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Delete expired short-term entries (unless they wait for promotion), tool results, pools and kept answers."""
    return run_stages(STAGES, now=now, batch=batch)
