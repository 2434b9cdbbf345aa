"""Makes and drops the vector indexes of accounts as they grow and shrink."""

import logging
import time
from contextlib import closing
from datetime import datetime

from django.db import DatabaseError

from memory.errors import Conflict
from memory.maintenance.base import Batch, Report
from memory.services.account_indexes import Change, find_changes, make_change

logger = logging.getLogger(__name__)

RENEW_SECONDS = 1.0


def run(*, now: datetime, batch: Batch) -> Report:
    """One index a batch, in the order of their names, so that one which cannot be built does not keep the others.

    Leaves it for the next run while somebody else builds one.
    """
    examined, changes = find_changes(batch.account_id)
    if batch.dry_run:
        return Report(examined=examined, changed=len(changes))
    due = [change for change in changes if change.name > batch.cursor]
    if not due:
        return Report(examined=examined, changed=0)
    change, *others = due
    try:
        carry_out(change, batch)
    except Conflict as err:
        logger.info("vector indexes wait: %s", err)
        return Report(examined=1, changed=0)
    except DatabaseError as err:
        logger.warning("vector index %s was not made: %s", change.name, type(err).__name__)
        return Report(examined=1, changed=0, failed=1, cursor=change.name if others else "")
    return Report(examined=1, changed=1, cursor=change.name if others else "")


def carry_out(change: Change, batch: Batch) -> None:
    """Renews the lease meanwhile: a build may take many minutes."""
    renewed = time.monotonic()
    with closing(make_change(change)) as steps:
        for _progress in steps:
            if time.monotonic() - renewed >= RENEW_SECONDS:
                batch.renew()
                renewed = time.monotonic()
