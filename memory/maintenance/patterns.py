"""Learns strategies from what ended well (the documented detect_patterns): goals first, then conversations."""

from collections.abc import Callable
from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.maintenance.stages import run_stages
from memory.services.strategies.patterns import look_at
from memory.services.strategies.sources import Position, Source, Stretch, next_conversations, next_goals


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of one stage. What was looked at is marked, and not found again."""
    return run_stages({"goals": run_goals, "conversations": run_conversations}, now=now, batch=batch)


def run_goals(*, now: datetime, batch: Batch) -> Report:
    return run_sources(next_goals, now=now, batch=batch)


def run_conversations(*, now: datetime, batch: Batch) -> Report:
    return run_sources(next_conversations, now=now, batch=batch)


def run_sources(read: Callable[[Stretch], list[Source]], *, now: datetime, batch: Batch) -> Report:
    after = Position.parse(batch.cursor) if batch.cursor else None
    sources = read(Stretch(now=now, limit=batch.size, after=after, account_id=batch.account_id))
    cursor = str(sources[-1].position) if len(sources) == batch.size else ""
    if batch.dry_run:
        return Report(examined=len(sources), changed=sum(not source.waits for source in sources), cursor=cursor)
    done = look_at(sources, now=now, renew=batch.renew)
    return Report(examined=len(sources), changed=done.marked, failed=done.failed, cursor=cursor, figures=done.figures)
