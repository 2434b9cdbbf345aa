"""Stages of jobs: work in several pieces, one after the other, such as deleting rows whose time is over.

The cursor of such a job is a stage, a colon, and the stage's own cursor.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.maintenance.base import Batch, BatchReport, RunBatch

Delete = Callable[[QuerySet[Any], list[UUID]], int]
"""Deletes those of the rows that have these ids, and says how many they were."""


def run_stages(stages: Mapping[str, RunBatch], *, now: datetime, batch: Batch) -> BatchReport:
    """Run one batch of the stage that the cursor names, or of the first stage. Changes are counted by stage."""
    names = list(stages)
    name, _, after = (batch.cursor or f"{names[0]}:").partition(":")
    report = stages[name](now=now, batch=replace(batch, cursor=after))
    figures = {**report.figures, **({name: report.changed} if report.changed else {})}
    if report.cursor:
        return replace(report, cursor=f"{name}:{report.cursor}", figures=figures)
    rest = names[names.index(name) + 1 :]
    return replace(report, cursor=f"{rest[0]}:" if rest else "", figures=figures)


def forgetting(find_rows: Callable[[datetime], QuerySet[Any]]) -> RunBatch:
    """Return the stage of a job that deletes the rows that `find_rows` finds at the time of the run."""

    def forget(*, now: datetime, batch: Batch) -> BatchReport:
        return forget_rows(find_rows(now), batch)

    return forget


def forget_rows(rows: QuerySet[Any], batch: Batch, *, delete: Delete | None = None) -> BatchReport:
    """Delete the next of `rows` by id. The condition is tried again on deletion: a row renewed meanwhile stays."""
    ids = list(batch.next_of(rows.values_list("id", flat=True)))
    changed = len(ids) if batch.dry_run else (delete or delete_rows)(rows, ids)
    return BatchReport(examined=len(ids), changed=changed, cursor=batch.cursor_after(ids))


def delete_rows(rows: QuerySet[Any], ids: list[UUID]) -> int:
    """Delete rows and what depends on them; return how many rows there were."""
    with transaction.atomic():
        # locked: where others go along, Django looks up and deletes in statements of their own
        locked = list(rows.filter(id__in=ids).order_by("id").select_for_update().values_list("id", flat=True))
        # a pool's data is not read to be deleted
        rows.filter(id__in=locked).only("id").delete()
    return len(locked)
