"""The job of custody: erasures that were requested go on until they are completed."""

import logging
from datetime import datetime, timedelta

from django.db import OperationalError
from redis.exceptions import RedisError

from memory.maintenance.base import Batch, BatchReport, job
from memory.models import Erasure
from memory.services.account_walk import read_account_page
from memory.services.custody.subjects import continue_erasure

logger = logging.getLogger(__name__)


@job(every=timedelta(minutes=1), batch_size=1)
def erase(*, now: datetime, batch: Batch) -> BatchReport:
    """Continue the erasures of users and of filters that were requested.

    A batch is one batch of one step of one erasure, in one transaction. The cursor has the account and id of the
    erasure before it, and a number that makes each cursor another one. An erasure that fails is met again next time.
    """
    after, _, number = batch.cursor.partition(":")
    page = read_account_page(Erasure.objects.unfinished(), after=after, limit=1, account_id=batch.account_id)
    if not page.rows:
        return BatchReport(examined=0, changed=0)
    (row,) = page.rows
    behind = f"{row.account_id}/{row.id}:0"
    if batch.dry_run:
        return BatchReport(examined=1, changed=1, cursor=behind)
    try:
        erasure = continue_erasure(row.account_id, row.id, now=now)
    except (RedisError, OperationalError) as err:
        logger.warning("erasure %s goes on later: %s", row.id, type(err).__name__)
        return BatchReport(examined=1, changed=0, failed=1, cursor=behind)
    changed = max(0, sum(erasure.counts.values()) - sum(row.counts.values()))
    goes_on = erasure.status == Erasure.Status.RUNNING and erasure.step
    return BatchReport(examined=1, changed=changed, cursor=f"{after}:{int(number or 0) + 1}" if goes_on else behind)
