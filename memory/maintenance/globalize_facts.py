"""Promotes prominent facts of projects to `_global` (the documented promote_prominent_facts)."""

from datetime import datetime, timedelta
from uuid import UUID

from memory.maintenance.base import Batch, BatchReport, job
from memory.services.facts.globalize import GlobalizeThresholds, find_prominent_facts, globalize_facts


@job(every=timedelta(hours=1), batch_size=100, aliases=("promote",))
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Copy prominent facts of projects to `_global`: believed, read and learned often enough.

    The next of them by id. A killed run leaves whole promotions behind, and what was promoted is not found again.
    """
    thresholds = GlobalizeThresholds()
    after = UUID(batch.cursor) if batch.cursor else None
    found = find_prominent_facts(
        after=after, account_id=batch.account_id, limit=batch.size, now=now, thresholds=thresholds
    )
    cursor = str(found[-1].pk) if len(found) == batch.size else ""
    if batch.dry_run:
        return BatchReport(examined=len(found), changed=len(found), cursor=cursor)
    figures = globalize_facts(found, now=now, thresholds=thresholds)
    failed = figures.pop("failed", 0)
    changed = figures["facts_promoted"] + figures["facts_known"]
    return BatchReport(examined=len(found), changed=changed, failed=failed, cursor=cursor, figures=figures)
