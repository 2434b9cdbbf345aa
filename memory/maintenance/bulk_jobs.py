"""The job of bulk changes: what staff asked to do to many rows goes on until all of them are done."""

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError
from redis.exceptions import RedisError

from memory.errors import NotFound
from memory.maintenance.base import Batch, BatchReport, job
from memory.models import BulkChange
from memory.services.account_walk import read_account_page
from memory.services.bulk.run import continue_bulk_change

logger = logging.getLogger(__name__)


@job(every=timedelta(minutes=1), batch_size=1)
def change_in_bulk(*, now: datetime, batch: Batch) -> BatchReport:
    """Continue the bulk changes that staff requested on the lists of the admin.

    A batch is one page of one change, in one transaction. The cursor has the account and id of the change before it,
    and a number that makes each cursor another one. A change that fails is met again by the next run, unless it is
    refused, which stops it.
    """
    after, _, number = batch.cursor.partition(":")
    page = read_account_page(BulkChange.objects.unfinished(), after=after, limit=1, account_id=batch.account_id)
    if not page.rows:
        return BatchReport(examined=0, changed=0)
    (row,) = page.rows
    behind = f"{row.account_id}/{row.id}:0"
    if batch.dry_run:
        return BatchReport(examined=row.total - row.examined, changed=row.total - row.examined, cursor=behind)
    try:
        change = continue_bulk_change(row.account_id, row.id, now=now)
    except (RedisError, DatabaseError, NotFound) as err:
        logger.warning("bulk change %s goes on later: %s", row.id, type(err).__name__)
        return BatchReport(examined=1, changed=0, failed=1, cursor=behind)
    goes_on, is_stopped = change.status in BulkChange.UNFINISHED, change.status == BulkChange.Status.STOPPED
    return BatchReport(
        examined=change.examined - row.examined,
        changed=change.changed - row.changed,
        failed=change.refused - row.refused + is_stopped,
        cursor=f"{after}:{int(number or 0) + 1}" if goes_on else behind,
    )
