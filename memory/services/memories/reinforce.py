"""Reinforcement (X11): a recall counts as a use of the memories it returns, which makes them decay more slowly."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection

from memory.owner import Owner

# locked in one order, so that two recalls of the same memories do not deadlock. No index has the counted columns, so
# that the update rewrites only the row
REINFORCE = """
{lax}UPDATE memories SET access_count = LEAST(access_count::bigint + 1, 2147483647),
    last_accessed = GREATEST(last_accessed, %s)
FROM (
    SELECT id FROM memories WHERE account_id = %s AND id = ANY(%s::uuid[]) ORDER BY id FOR NO KEY UPDATE
) AS found{is_lax} WHERE memories.id = found.id
"""
# commits without waiting for the disk: a crash may lose the latest counts. Not used in a transaction of the caller,
# whose commit it would weaken
REINFORCE_LAX = REINFORCE.format(
    lax="WITH lax AS (SELECT set_config('synchronous_commit', 'off', true)) ", is_lax=" CROSS JOIN lax"
)
REINFORCE_DURABLY = REINFORCE.format(lax="", is_lax="")


def reinforce(owner: Owner, ids: Collection[UUID], *, now: datetime) -> int:
    """Count a read of each memory and return how many still exist. One statement, none for no ids.

    The count stops at the maximum of the column, and `last_accessed` never goes back.
    """
    if not ids:
        return 0
    with connection.cursor() as cursor:
        statement = REINFORCE_DURABLY if connection.in_atomic_block else REINFORCE_LAX
        cursor.execute(statement, [now, owner.account_id, list(ids)])
        return int(cursor.rowcount)
