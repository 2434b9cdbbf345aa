"""Jobs of facts: finding those that contradict each other."""

import logging
from collections import Counter
from datetime import datetime, time

from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.stages import run_stages
from memory.models import Fact
from memory.services.facts.repair import believed_facts, find_disputed_keys, read_attributes, resolve_disputed_key

logger = logging.getLogger(__name__)


def read_next_attributes(*, now: datetime, batch: Batch) -> BatchReport:
    """Read the attributes of the next facts that have none, by account and id."""
    page = batch.page_of(Fact.objects.filter(attribute=None).only("id", "account_id", "text"))
    if not batch.dry_run:
        read_attributes(page.rows)
    return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)


def resolve_next_keys(*, now: datetime, batch: Batch) -> BatchReport:
    """Resolve the subjects and attributes of the next facts that several facts share: each in a transaction."""
    page = batch.page_of(believed_facts(now).only("id", "account_id", "attribute", "user_id", "agent_id"))
    figures: Counter[str] = Counter()
    failed = 0
    for key in find_disputed_keys(page.rows, now=now):
        try:
            figures += resolve_disputed_key(key, dry_run=batch.dry_run, now=now)
        except Exception as err:  # noqa: BLE001 - the outermost loop of the job
            # only the type: the message may quote a fact
            logger.error("facts of account %s were not compared: %s", key.account_id, type(err).__name__)
            failed += 1
        batch.renew()
    changed = figures.pop("contradictions", 0)
    return BatchReport(examined=len(page.rows), changed=changed, failed=failed, cursor=page.cursor, figures=figures)


@job(every=time(hour=4, minute=30), batch_size=1_000)
def find_contradictions(*, now: datetime, batch: Batch) -> BatchReport:
    """End facts that a later fact contradicts, or ask staff, where both are believed.

    First the attributes of facts without one are read, then the facts of each subject and attribute are compared. What
    was compared before is found again only while both are believed.
    """
    stages = {"attributes": read_next_attributes, "contradictions": resolve_next_keys}
    return run_stages(stages, now=now, batch=batch)
