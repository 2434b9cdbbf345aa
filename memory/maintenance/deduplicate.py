"""Merges memories that say the same; see `services.duplicates`.

Looks at those whose vectors were made since the last complete run over them began; that was looked through by then.
"""

from datetime import datetime, time, timedelta
from uuid import UUID

from django.db.models import Q

from memory.maintenance.base import Batch, BatchReport, job
from memory.models import JobRun
from memory.services.duplicates.deduplicate import DeduplicationBatch, deduplicate, preview_duplicates

NAME = "deduplicate"
MARGIN = timedelta(hours=1)
"""Longest duration of a transaction that stores vectors: they carry the time of its beginning."""


@job(every=time(hour=4), batch_size=200)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Merge facts, entries, learnings and strategies that repeat one another."""
    stretch = DeduplicationBatch(
        now=now,
        since=looked_through_since(batch.account_id),
        size=batch.size,
        after=batch.cursor,
        account_id=batch.account_id,
        renew=batch.renew,
    )
    done = preview_duplicates(stretch) if batch.dry_run else deduplicate(stretch)
    return BatchReport(
        examined=done.examined, changed=done.merged, failed=done.failed, cursor=done.cursor, figures=done.figures
    )


def looked_through_since(account_id: UUID | None) -> datetime | None:
    """Return since when the account has been searched for duplicates; None if never.

    By the database's clock, as vectors are dated, whatever `now` runs use.
    """
    runs = JobRun.objects.filter(job=NAME, status=JobRun.Status.COMPLETED, dry_run=False, started_at__isnull=False)
    of_these = runs.filter(Q(account=None) | Q(account_id=account_id) if account_id else Q(account=None))
    began = of_these.order_by("-started_at").values_list("started_at", flat=True).first()
    return None if began is None else began - MARGIN
