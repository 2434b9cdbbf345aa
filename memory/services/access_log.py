"""The access log of contexts: which agent read or wrote which entry, when.

Writes are logged in their own transaction. Reads take the way over Redis (`tiers.access_log`), so that none waits for
the database to write, and are in the table after the next run of the job.
"""

from collections.abc import Sequence
from datetime import datetime

from memory.models import ContextAccessLog
from memory.owner import Owner
from memory.tiers import access_log
from memory.tiers.access_log import Touched

Action = ContextAccessLog.Action


def log_writes(owner: Owner, touched: Sequence[Touched], *, action: Action, now: datetime) -> None:
    """Write the lines of entries that were written, in the transaction of that write. One statement."""
    ContextAccessLog.objects.bulk_create(
        [
            ContextAccessLog(
                account_id=owner.account_id,
                context_id=context_id,
                entry_id=entry_id,
                agent_id=owner.agent_id,
                actor=owner.actor,
                action=action,
                accessed_at=now,
            )
            for context_id, entry_id in touched
        ]
    )


def log_reads(owner: Owner, touched: Sequence[Touched], *, action: Action, now: datetime) -> None:
    """Note that entries were read: one round trip to Redis, none where there were none. Call it after the read.

    Raises nothing: a read is answered, whether its lines were taken or had to be counted as lost.
    """
    if touched:
        access_log.push(owner, touched, action=action.value, now=now)
