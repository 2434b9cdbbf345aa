"""Batches of compression: which rows one call of a stage takes, fairly between accounts, and whether more are due."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memory.services.claims import has_due_rows, take_shares
from memory.services.conversations.queue import BatchResult, ClaimOutcome, ClaimResult

Row = TypeVar("Row", bound=Model)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionBatch:
    """The rows that one call of a stage processes: at most `limit`, of one account or of all.

    `after` is the cursor of the batch before. A dry run counts the rows of all batches at once, because they stay due.
    `renew` renews the job's lease and raises if another worker has taken the job over.
    """

    now: datetime
    limit: int
    after: str = ""
    account_id: UUID | None = None
    dry_run: bool = False
    renew: Callable[[], None] = lambda: None

    def take_shares(self, due: QuerySet[Row], take: Callable[[QuerySet[Row], int], Iterable[T]]) -> list[T]:
        """Return what `take` takes of due rows, shared out among accounts (`services.claims`)."""
        limit = sys.maxsize if self.dry_run else self.limit
        return take_shares(due, take, limit=limit, account_id=self.account_id)

    def result_of(self, results: Sequence[ClaimResult], due: QuerySet[Any]) -> BatchResult:
        """Return the result of a batch of due rows, with a cursor if more are due.

        There is none if all rows stay due, since they would be taken again. The next run tries them.
        """
        is_over = all(each.outcome is ClaimOutcome.OUTDATED for each in results)
        if is_over or not has_due_rows(due, account_id=self.account_id):
            return BatchResult.of(results)
        return BatchResult.of(results, cursor=str(int(self.after or 0) + 1))
