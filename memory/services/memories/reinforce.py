"""Reinforcement (X11): what is recalled was of use, and is remembered longer."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection

from memory.owner import Owner

# locked in one order: two recalls that found the same wait for each other, not for ever. No index is over what is
# counted, so that of a row nothing is rewritten but itself
REINFORCE = """
{lax}UPDATE memories SET access_count = LEAST(access_count::bigint + 1, 2147483647),
    last_accessed = GREATEST(last_accessed, %s)
FROM (
    SELECT id FROM memories WHERE account_id = %s AND id = ANY(%s::uuid[]) ORDER BY id FOR NO KEY UPDATE
) AS found{is_lax} WHERE memories.id = found.id
"""
# with a commit that nobody waits for: a crash may lose the counts of its last moments. Within a transaction of the
# caller's it would be the caller's commit
SOON = REINFORCE.format(
    lax="WITH lax AS (SELECT set_config('synchronous_commit', 'off', true)) ", is_lax=" CROSS JOIN lax"
)
SAFELY = REINFORCE.format(lax="", is_lax="")


def reinforce(owner: Owner, ids: Collection[UUID], *, now: datetime) -> int:
    """Count a read of each; returns how many there still were. One statement, none for nothing.

    Counting ends at the largest number that the column holds; an older read takes no later time back.
    """
    if not ids:
        return 0
    with connection.cursor() as cursor:
        statement = SAFELY if connection.in_atomic_block else SOON
        cursor.execute(statement, [now, owner.account_id, list(ids)])
        return int(cursor.rowcount)
