"""Batches of compression: which rows one call of a stage takes, fairly between accounts, and whether more are due."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from memory.services.account_walk import Batch, BatchReport
from memory.services.claims import has_due_rows, take_shares
from memory.services.conversations.queue import ClaimOutcome, ClaimResult, report_of

Row = TypeVar("Row", bound=Model)
T = TypeVar("T")


def take_batch(batch: Batch, due: QuerySet[Row], take: Callable[[QuerySet[Row], int], Iterable[T]]) -> list[T]:
    """Return what `take` takes of due rows, shared out among accounts (`services.claims`).

    A dry run takes the rows of all batches at once, because they stay due.
    """
    return take_shares(due, take, limit=sys.maxsize if batch.dry_run else batch.size, account_id=batch.account_id)


def result_of(batch: Batch, results: Sequence[ClaimResult], due: QuerySet[Any]) -> BatchReport:
    """Return the result of a batch of due rows, with a cursor if more are due.

    There is none if all rows stay due, since they would be taken again. The next run tries them.
    """
    is_over = all(each.outcome is ClaimOutcome.OUTDATED for each in results)
    if is_over or not has_due_rows(due, account_id=batch.account_id):
        return report_of(results)
    return report_of(results, cursor=str(int(batch.cursor or 0) + 1))
