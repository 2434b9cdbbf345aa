"""Promotes prominent facts of projects to `_global` (the documented promote_prominent_facts)."""

from datetime import datetime
from uuid import UUID

from memory.maintenance.base import Batch, Report
from memory.services.facts.globalize import Thresholds, find_prominent, promote_each


def run(*, now: datetime, batch: Batch) -> Report:
    """The next of them by id. A killed run leaves whole promotions behind, and what was promoted is not found again."""
    thresholds = Thresholds()
    after = UUID(batch.cursor) if batch.cursor else None
    found = find_prominent(after=after, account_id=batch.account_id, limit=batch.size, now=now, thresholds=thresholds)
    cursor = str(found[-1].pk) if len(found) == batch.size else ""
    if batch.dry_run:
        return Report(examined=len(found), changed=len(found), cursor=cursor)
    figures = promote_each(found, now=now, thresholds=thresholds)
    failed = figures.pop("failed", 0)
    changed = figures["facts_promoted"] + figures["facts_known"]
    return Report(examined=len(found), changed=changed, failed=failed, cursor=cursor, figures=figures)
