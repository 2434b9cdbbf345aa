"""Jobs of facts: finding those that contradict each other."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, time
from functools import partial
from uuid import UUID

from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.stages import run_stages
from memory.models import Fact
from memory.services.account_walk import AccountPage
from memory.services.facts.outdate import find_outdated_among
from memory.services.facts.repair import (
    believed_facts,
    find_denials,
    find_disputed_keys,
    keyed_facts,
    read_attributes,
    resolve_denial,
    resolve_disputed_key,
    resolve_outdated,
)

logger = logging.getLogger(__name__)


def read_next_attributes(*, now: datetime, batch: Batch) -> BatchReport:
    """Read the attributes of the next facts that have none, by account and id."""
    page = batch.page_of(Fact.objects.filter(attribute=None).only("id", "account_id", "text"))
    if not batch.dry_run:
        read_attributes(page.rows)
    return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)


def resolve_next_keys(*, now: datetime, batch: Batch) -> BatchReport:
    """Resolve the subjects and attributes of the next facts that several facts share: each in a transaction."""
    page = batch.page_of(keyed_facts(now).only("id", "account_id", "attribute", "user_id", "agent_id"))
    resolutions = [
        (key.account_id, partial(resolve_disputed_key, key)) for key in find_disputed_keys(page.rows, now=now)
    ]
    return resolve_each(page, resolutions, now=now, batch=batch)


def resolve_next_denials(*, now: datetime, batch: Batch) -> BatchReport:
    """Resolve those of the next facts that deny another one: each in a transaction."""
    page = batch.page_of(believed_facts(now).only("id", "account_id", "text", "user_id", "agent_id", "channel"))
    resolutions = [(fact.account_id, partial(resolve_denial, fact)) for fact in find_denials(page.rows, now=now)]
    return resolve_each(page, resolutions, now=now, batch=batch)


def resolve_next_outdated(*, now: datetime, batch: Batch) -> BatchReport:
    """End those of the next facts whose statement was replaced: each in a transaction."""
    page = batch.page_of(believed_facts(now).only("id", "account_id", "user_id", "agent_id"))
    resolutions = [(fact.account_id, partial(resolve_outdated, fact)) for fact in find_outdated_among(page.rows)]
    return resolve_each(page, resolutions, now=now, batch=batch)


def resolve_each(
    page: AccountPage[Fact],
    resolutions: Sequence[tuple[UUID, Callable[..., Counter[str]]]],
    *,
    now: datetime,
    batch: Batch,
) -> BatchReport:
    """Call the resolutions, which are given with their accounts. One that fails does not stop the others."""
    figures: Counter[str] = Counter()
    failed = 0
    for account_id, resolve in resolutions:
        try:
            figures += resolve(dry_run=batch.dry_run, now=now)
        except Exception as err:  # noqa: BLE001 - the outermost loop of the job
            # only the type: the message may quote a fact
            logger.error("facts of account %s were not compared: %s", account_id, type(err).__name__)
            failed += 1
        batch.renew()
    changed = figures.pop("contradictions", 0)
    return BatchReport(examined=len(page.rows), changed=changed, failed=failed, cursor=page.cursor, figures=figures)


@job(every=time(hour=4, minute=30), batch_size=1_000)
def find_contradictions(*, now: datetime, batch: Batch) -> BatchReport:
    """End facts that a later fact contradicts, or ask staff, where both are believed.

    First the attributes of facts without one are read, then the facts of each subject and attribute are compared, and
    claims with their denials; then facts end whose statement was replaced. What was compared before is found again only
    while both are believed.
    """
    stages = {
        "attributes": read_next_attributes,
        "contradictions": resolve_next_keys,
        "denials": resolve_next_denials,
        "outdated": resolve_next_outdated,
    }
    return run_stages(stages, now=now, batch=batch)
