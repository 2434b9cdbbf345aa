"""Makes and drops the vector indexes of accounts as they grow and shrink."""

import logging
import time
from contextlib import closing
from datetime import datetime, timedelta

from django.db import DatabaseError

from memory.errors import Conflict
from memory.maintenance.base import Batch, BatchReport, job
from memory.services.embedding.account_indexes import IndexChange, apply_index_change, find_index_changes

logger = logging.getLogger(__name__)

RENEW_SECONDS = 1.0


@job(every=timedelta(hours=1), batch_size=1)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Build a vector index for each large account, and drop those no longer needed.

    All of them in one batch, since finding them reads all vectors' owners; one that cannot be built keeps no other.

    Killed in the midst, what was made is not found again. Leaves the rest for the next run while somebody else builds
    one.
    """
    changes = find_index_changes(batch.account_id)
    if batch.dry_run:
        return BatchReport(examined=len(changes), changed=len(changes))
    changed = failed = 0
    for change in changes:
        batch.renew()
        try:
            carry_out(change, batch)
            changed += 1
        except Conflict as err:
            logger.info("vector indexes wait: %s", err)
            break
        except DatabaseError as err:
            logger.warning("vector index %s was not made: %s", change.name, type(err).__name__)
            failed += 1
    return BatchReport(examined=len(changes), changed=changed, failed=failed)


def carry_out(change: IndexChange, batch: Batch) -> None:
    """Renews the lease meanwhile: a build may take many minutes."""
    renewed = time.monotonic()
    with closing(apply_index_change(change)) as steps:
        for _progress in steps:
            if time.monotonic() - renewed >= RENEW_SECONDS:
                batch.renew()
                renewed = time.monotonic()
