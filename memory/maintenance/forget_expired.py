"""Deletes what has expired: short-term entries, results of tools, pools with all that is in them.

Short-term entries that were read often enough to be promoted stay, unreadable, until they are.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from memory.maintenance.base import Batch, Report
from memory.maintenance.forgetting import Delete, forget_rows
from memory.models import AgentShortTermMemory, MemoryPool, ToolCacheEntry
from memory.services.shared_context_pools import delete_expired_results

TABLES = ("short_term", "tool_cache", "pools")
"""One after the other. A cursor is the name of a table and, behind a colon, the last id that was looked at in it."""


def run(*, now: datetime, batch: Batch) -> Report:
    table, _, after = (batch.cursor or f"{TABLES[0]}:").partition(":")
    delete = forget_results(now) if table == "tool_cache" else None
    report = forget_rows(expired_rows(table, now), replace(batch, cursor=after), delete=delete)
    if report.cursor:
        return replace(report, cursor=f"{table}:{report.cursor}")
    rest = TABLES[TABLES.index(table) + 1 :]
    return replace(report, cursor=f"{rest[0]}:" if rest else "")


def forget_results(now: datetime) -> Delete:
    """Results count in their pool as long as they are there."""
    return lambda _rows, ids: delete_expired_results(ids, now=now)


def expired_rows(table: str, now: datetime) -> QuerySet[Any]:
    if table == "short_term":
        return AgentShortTermMemory.objects.disposable(now)
    if table == "tool_cache":
        return ToolCacheEntry.objects.filter(expires_at__lte=now)
    return MemoryPool.objects.filter(expires_at__lte=now)
