"""What happened to memory: one INSERT in the caller's transaction; a write and its record stand or fall together."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from memory import conf
from memory.models import AuditEntry
from memory.owner import Owner

READ_OPERATIONS = frozenset({"retrieve"})
UNCONDITIONAL = frozenset({"deep_replay"})
"""At every level: who was told raw traces, somebody may have to answer for."""
PAYLOAD_COLUMNS = frozenset({"metadata"})


def is_recorded(operation: str, *, level: str) -> bool:
    """Whether `level` keeps such an operation: off the unconditional ones, writes mutations, reads and verbose both."""
    if operation in UNCONDITIONAL:
        return True
    needed = "reads" if operation in READ_OPERATIONS else "writes"
    return conf.AUDIT_LEVELS.index(level) >= conf.AUDIT_LEVELS.index(needed)


def record(
    owner: Owner,
    *,
    operation: str,
    memory_type: str,
    affected_ids: Sequence[UUID | str] = (),
    level: str | None = None,
    **columns: Any,
) -> None:
    """Add one entry; `columns` are further columns of `AuditEntry`, of which payloads are kept at `verbose` only."""
    level = level or conf.AUDIT_LEVEL
    if not is_recorded(operation, level=level):
        return
    kept = {name: value for name, value in columns.items() if level == "verbose" or name not in PAYLOAD_COLUMNS}
    AuditEntry.objects.create(
        account_id=owner.account_id,
        actor=owner.actor,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        source_channel=owner.channel,
        operation=operation,
        memory_type=memory_type,
        affected_ids=[str(affected) for affected in affected_ids],
        **kept,
    )
