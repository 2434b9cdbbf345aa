"""Merges memories that say the same; see `services.duplicates`.

Looks at those whose vectors were made since the last complete run over them began; that was looked through by then.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from memory.maintenance.base import Batch, Report
from memory.models import JobRun
from memory.services.duplicates.deduplicate import Stretch, deduplicate, look_for_duplicates

NAME = "deduplicate"
MARGIN = timedelta(hours=1)
"""How long a transaction may take that stores vectors: they have the time of its beginning."""


def run(*, now: datetime, batch: Batch) -> Report:
    stretch = Stretch(
        now=now,
        since=looked_through_since(batch.account_id),
        size=batch.size,
        after=batch.cursor,
        account_id=batch.account_id,
        renew=batch.renew,
    )
    done = look_for_duplicates(stretch) if batch.dry_run else deduplicate(stretch)
    return Report(
        examined=done.examined, changed=done.merged, failed=done.failed, cursor=done.cursor, figures=done.figures
    )


def looked_through_since(account_id: UUID | None) -> datetime | None:
    """None where nobody has looked yet. By the database's clock, as vectors are dated, whatever time runs act at."""
    runs = JobRun.objects.filter(job=NAME, status=JobRun.Status.COMPLETED, dry_run=False, started_at__isnull=False)
    of_these = runs.filter(Q(account=None) | Q(account_id=account_id) if account_id else Q(account=None))
    began = of_these.order_by("-started_at").values_list("started_at", flat=True).first()
    return None if began is None else began - MARGIN
