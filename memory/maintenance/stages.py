"""Stages of jobs: work in several pieces, one after the other, such as deleting rows whose time is over.

The cursor of such a job is a stage, a colon, and the stage's own cursor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.maintenance.base import Batch, BatchReport, RunBatch
from memory.services.account_walk import group_by_account

Delete = Callable[[UUID, Sequence[UUID]], int]
"""Deletes those of an account's rows with these ids that still are to be deleted; returns their number."""


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
    """Delete the next of `rows`, by account and id. The condition is tried again: a row renewed meanwhile stays."""
    page = batch.page_of(rows.only("account"))
    if batch.dry_run:
        return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)
    changed = 0
    for account_id, of_account in group_by_account(page.rows).items():
        ids = [row.id for row in of_account]
        if delete is None:
            changed += delete_rows(rows.filter(account_id=account_id, id__in=ids))
        else:
            changed += delete(account_id, ids)
    return BatchReport(examined=len(page.rows), changed=changed, cursor=page.cursor)


def forget_installation_rows(rows: QuerySet[Any], batch: Batch) -> BatchReport:
    """Delete the next of `rows` of a table of the installation, by id."""
    if batch.cursor:
        rows = rows.filter(id__gt=UUID(batch.cursor))
    ids = list(rows.order_by("id").values_list("id", flat=True)[: batch.size])
    changed = len(ids) if batch.dry_run else delete_rows(rows.filter(id__in=ids))
    cursor = str(ids[-1]) if len(ids) == batch.size else ""
    return BatchReport(examined=len(ids), changed=changed, cursor=cursor)


def delete_rows(rows: QuerySet[Any]) -> int:
    """Delete rows, and return how many there were. The database deletes what depends on them."""
    with transaction.atomic():
        # in the order of ids, so that two workers do not deadlock
        locked = list(rows.order_by("id").select_for_update().values_list("id", flat=True))
        rows.filter(id__in=locked)._raw_delete(rows.db)
    return len(locked)
