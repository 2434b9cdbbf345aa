"""How the best candidates hang together: links among them, to what the question names, and to open goals."""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.models.binary import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.plans import LinkBetween

MOST_LINKS = 2_000

# from either end by an index: what is between the two lists, whatever else hangs on them
BETWEEN = """
SELECT source_id AS source, target_id AS target, type, weight FROM memory_links
WHERE account_id = %(account_id)s AND source_id = ANY(%(ids)s::uuid[]) AND target_id = ANY(%(ids)s::uuid[])
ORDER BY weight DESC, id LIMIT %(most)s"""


def read_links(owner: Owner, ids: Collection[UUID]) -> Sequence[LinkBetween]:
    """The links among these memories, which the owner was found to see, the weightiest first. One statement."""
    if len(ids) < 2:
        return []
    with binary_cursor() as cursor:
        cursor.execute(BETWEEN, {"account_id": owner.account_id, "ids": list(ids), "most": MOST_LINKS})
        return [LinkBetween(**row) for row in fetch_dicts(cursor)]
