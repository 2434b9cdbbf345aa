"""Stages of jobs: work in several pieces, one after the other, such as deleting rows whose time is over.

The cursor of such a job is a stage, a colon, and the stage's own cursor.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.maintenance.base import Batch, BatchReport, RunBatch
from memory_project.tenancy import INSTALLATION_TABLES

Delete = Callable[[Collection[UUID], Sequence[UUID]], int]
"""Deletes those of the rows of these accounts with these ids that still are to be deleted; returns their number."""


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
    of_accounts = rows.model._meta.db_table not in INSTALLATION_TABLES
    found = list(batch.next_of(rows.values_list("id", *(["account_id"] if of_accounts else []))))
    ids, accounts = [row[0] for row in found], {account_id for _, *others in found for account_id in others}
    if batch.dry_run:
        changed = len(ids)
    elif delete is not None:
        changed = delete(accounts, ids)
    else:
        changed = delete_rows(rows.filter(id__in=ids, **({"account_id__in": accounts} if of_accounts else {})))
    return BatchReport(examined=len(ids), changed=changed, cursor=batch.cursor_after(ids))


def delete_rows(rows: QuerySet[Any]) -> int:
    """Delete rows, and return how many there were. The database deletes what depends on them."""
    with transaction.atomic():
        # in the order of ids, so that two workers do not deadlock
        locked = list(rows.order_by("id").select_for_update().values_list("id", flat=True))
        rows.filter(id__in=locked)._raw_delete(rows.db)
    return len(locked)
