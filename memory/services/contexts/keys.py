"""Entries by their keys: what makes a keyed entry the same thing again, to be written over or read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from memory.errors import Conflict
from memory.models import ContextEntry, Kind, PersistentContext
from memory.models.contexts import OWN_CONTEXT
from memory.owner import Owner

FIND_KEYED = """
SELECT m.id, c.id, e.value FROM persistent_contexts c
JOIN memories m ON m.account_id = c.account_id AND m.kind = 'context_entry' AND m.identity = c.id::text || ':' || %s
JOIN context_entries e ON e.memory_ptr_id = m.id
WHERE c.account_id = %s AND c.agent_id = %s AND c.team_id IS NULL AND c.name = %s AND c.scope = 'agent'
    AND NOT m.archived AND NOT m.quarantined AND (m.expires_at IS NULL OR m.expires_at > %s)
"""


class KeyedValue(NamedTuple):
    """What an agent's own context holds under a key; `value` may be None itself, which is JSON's null."""

    entry_id: UUID
    context_id: UUID
    value: Any


def find_keyed(owner: Owner, key: str, *, now: datetime) -> KeyedValue | None:
    """None where the agent's own context, archived or not, has nothing under the key. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_KEYED, [key, owner.account_id, owner.agent_id, OWN_CONTEXT, now])
        row = cursor.fetchone()
    return KeyedValue(*row) if row else None


def keyed_identity(context_id: UUID, key: str) -> str:
    """What makes a keyed entry the same thing again."""
    return f"{context_id}:{key}"


def lock_keyed(context: PersistentContext, keys: Sequence[str]) -> dict[str, ContextEntry]:
    """The entries of a locked context under these keys, removed ones too. Raises Conflict for a quarantined one."""
    if not keys:
        return {}
    identities = [keyed_identity(context.id, key) for key in keys]
    rows = ContextEntry.objects.filter(account_id=context.account_id, kind=Kind.CONTEXT_ENTRY, identity__in=identities)
    # memories before what their kinds hold, as corrections lock them, or the two would wait for each other
    locked: Any = rows.order_by("id").select_for_update(of=("memory_ptr", "self"))
    if any(entry.quarantined for entry in locked):
        # written to, it would stay out of everybody's sight
        raise Conflict("an entry under this key is quarantined")
    return {entry.key: entry for entry in locked}
