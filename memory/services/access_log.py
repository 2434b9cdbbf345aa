"""The access log of contexts: which agent read or wrote which entry, when."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory.models import ContextAccessLog
from memory.owner import Owner

Action = ContextAccessLog.Action
Touched = tuple[UUID, UUID]
"""A context, and an entry of it."""


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
