"""Deletes what has expired: short-term entries, results of tools, pools with all that is in them, kept answers.

Short-term entries that were read often enough to be promoted stay, unreadable, until they are. Answers are those kept
for repeated requests (`Idempotency-Key`): such a request is answered afresh then.
"""

from collections.abc import Mapping
from datetime import datetime

from memory.maintenance.base import Batch, Report, Run
from memory.maintenance.forgetting import forget_rows
from memory.maintenance.stages import run_stages
from memory.models import AgentShortTermMemory, IdempotentRequest, MemoryPool, ToolCacheEntry
from memory.services.pools.share import delete_expired_results


def forget_entries(*, now: datetime, batch: Batch) -> Report:
    return forget_rows(AgentShortTermMemory.objects.disposable(now), batch)


def forget_results(*, now: datetime, batch: Batch) -> Report:
    """Results count in their pool as long as they are there."""
    rows = ToolCacheEntry.objects.filter(expires_at__lte=now)
    return forget_rows(rows, batch, delete=lambda _rows, ids: delete_expired_results(ids, now=now))


def forget_pools(*, now: datetime, batch: Batch) -> Report:
    return forget_rows(MemoryPool.objects.filter(expires_at__lte=now), batch)


def forget_answers(*, now: datetime, batch: Batch) -> Report:
    return forget_rows(IdempotentRequest.objects.filter(expires_at__lte=now), batch)


STAGES: Mapping[str, Run] = {
    "short_term": forget_entries,
    "tool_cache": forget_results,
    "pools": forget_pools,
    "answers": forget_answers,
}


def run(*, now: datetime, batch: Batch) -> Report:
    return run_stages(STAGES, now=now, batch=batch)
