"""The job of transfers: exports and imports that were requested are done, and archives that expired are deleted."""

import logging
from datetime import datetime, timedelta

from django.db import OperationalError
from django.db.models import QuerySet
from redis.exceptions import RedisError

from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.stages import forgetting, run_stages
from memory.models import Transfer
from memory.services.account_walk import read_account_page, throttled
from memory.services.transfer.transfers import run_transfer, transfer_lock

logger = logging.getLogger(__name__)

RENEW_SECONDS = 5.0


def run_requested(*, now: datetime, batch: Batch) -> BatchReport:
    rows = Transfer.objects.unfinished().filter(in_parts=True)
    page = read_account_page(rows, after=batch.cursor, limit=1, account_id=batch.account_id)
    if not page.rows or batch.dry_run:
        return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)
    (row,) = page.rows
    try:
        with transfer_lock(row.id) as is_held:
            left = rows.filter(account_id=row.account_id, id=row.id).first() if is_held else None
            if left is None:
                return BatchReport(examined=0, changed=0, cursor=page.cursor)
            transfer = run_transfer(left, now=now, renew=throttled(batch.renew, seconds=RENEW_SECONDS))
    except (RedisError, OperationalError) as err:
        logger.warning("%s %s goes on later: %s", row.direction, row.id, type(err).__name__)
        return BatchReport(examined=1, changed=0, failed=1, cursor=page.cursor)
    failed = int(transfer.status == Transfer.Status.FAILED)
    return BatchReport(examined=1, changed=1 - failed, cursor=page.cursor)


def expired_transfers(now: datetime) -> QuerySet[Transfer]:
    return Transfer.objects.filter(expires_at__lte=now)


@job(every=timedelta(minutes=1), batch_size=1)
def transfer(*, now: datetime, batch: Batch) -> BatchReport:
    """Do the exports and imports of archives that were requested, and delete archives that expired.

    A batch is one export or import. An import keeps its place: if the worker is killed, the next one goes on there.
    """
    return run_stages({"requested": run_requested, "expired": forgetting(expired_transfers)}, now=now, batch=batch)
