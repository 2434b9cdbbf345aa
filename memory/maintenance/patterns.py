"""Learns strategies from what ended well (the documented detect_patterns): goals first, then conversations."""

from collections.abc import Callable
from datetime import datetime, timedelta

from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.stages import run_stages
from memory.services.strategies.patterns import extract_patterns
from memory.services.strategies.sources import (
    SourceBatch,
    SourceCursor,
    WorkSource,
    next_conversation_sources,
    next_goal_sources,
)


@job(every=timedelta(hours=1), batch_size=200)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Learn strategies from completed goals and from conversations that ended in success.

    One batch of one stage. What was looked at is marked, and not found again.
    """
    return run_stages({"goals": run_goals, "conversations": run_conversations}, now=now, batch=batch)


def run_goals(*, now: datetime, batch: Batch) -> BatchReport:
    return run_sources(next_goal_sources, now=now, batch=batch)


def run_conversations(*, now: datetime, batch: Batch) -> BatchReport:
    return run_sources(next_conversation_sources, now=now, batch=batch)


def run_sources(read: Callable[[SourceBatch], list[WorkSource]], *, now: datetime, batch: Batch) -> BatchReport:
    after = SourceCursor.parse(batch.cursor) if batch.cursor else None
    sources = read(SourceBatch(now=now, limit=batch.size, after=after, account_id=batch.account_id))
    cursor = str(sources[-1].cursor) if len(sources) == batch.size else ""
    if batch.dry_run:
        return BatchReport(
            examined=len(sources), changed=sum(not source.waits_for_goals for source in sources), cursor=cursor
        )
    done = extract_patterns(sources, now=now, renew=batch.renew)
    return BatchReport(
        examined=len(sources), changed=done.marked, failed=done.failed, cursor=cursor, figures=done.figures
    )
