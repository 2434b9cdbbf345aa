"""Deleting rows whose time is over, a batch at a time, in the order of their ids."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.maintenance.base import Batch, BatchReport

Delete = Callable[[QuerySet[Any], list[UUID]], int]
"""Deletes those of the rows that have these ids, and says how many they were."""


def forget_rows(rows: QuerySet[Any], batch: Batch, *, delete: Delete | None = None) -> BatchReport:
    """Delete the next of `rows` by id. The condition is tried again on deletion: a row renewed meanwhile stays."""
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    after = rows.filter(id__gt=UUID(batch.cursor)) if batch.cursor else rows
    ids = list(after.order_by("id").values_list("id", flat=True)[: batch.size])
    changed = len(ids) if batch.dry_run else (delete or delete_rows)(rows, ids)
    return BatchReport(examined=len(ids), changed=changed, cursor=str(ids[-1]) if len(ids) == batch.size else "")


def delete_rows(rows: QuerySet[Any], ids: list[UUID]) -> int:
    """Delete rows and what depends on them; return how many rows there were."""
    with transaction.atomic():
        # locked: where others go along, Django looks up and deletes in statements of their own
        locked = list(rows.filter(id__in=ids).order_by("id").select_for_update().values_list("id", flat=True))
        # a pool's data is not read to be deleted
        rows.filter(id__in=locked).only("id").delete()
    return len(locked)
