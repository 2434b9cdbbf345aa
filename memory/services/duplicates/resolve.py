"""Finding the memory that stands for one that was merged into another, along DUPLICATE_OF links.

Survivors can be merged themselves, so links form chains; the last memory of a chain is live, or was. A merged memory
that lives again has no such link any more.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from memory.models import Kind, Link
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.memories.links import DUPLICATE_OF

# an array, so that an index finds the rows
SURVIVOR_CONDITION = """
memories.id = ANY (ARRAY (
    WITH RECURSIVE chain (id) AS (
        SELECT merged.id FROM memories AS merged
        WHERE merged.account_id = %s AND merged.kind = %s AND merged.identity = ANY (%s::text[]) AND merged.archived
        UNION SELECT link.target_id FROM chain JOIN memory_links AS link ON link.source_id = chain.id
        WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
    )
    SELECT id FROM chain
))"""

SELECT_SURVIVORS = """
WITH RECURSIVE chain (first, id, depth) AS (
    SELECT id, id, 0 FROM unnest(%s::uuid[]) AS given (id)
    UNION SELECT first, link.target_id, depth + 1 FROM chain JOIN memory_links AS link ON link.source_id = chain.id
    WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
) CYCLE id SET is_cycle USING path
SELECT DISTINCT ON (first) first, id FROM chain WHERE depth > 0 AND NOT is_cycle ORDER BY first, depth DESC
"""

SELECT_ABSORBED = """
WITH RECURSIVE absorbed (id) AS (
    SELECT unnest(%s::uuid[])
    UNION SELECT link.source_id FROM absorbed JOIN memory_links AS link ON link.target_id = absorbed.id
    JOIN memories ON memories.account_id = link.account_id AND memories.id = link.source_id AND memories.archived
    WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
)
SELECT id FROM absorbed ORDER BY id
"""

# considers absorbed memories as well: a survivor is separated from what one of them was separated from
SELECT_SEPARATED = """
WITH RECURSIVE absorbed (root, id) AS (
    SELECT id, id FROM unnest(%s::uuid[]) AS given (id)
    UNION SELECT root, link.source_id FROM absorbed JOIN memory_links AS link ON link.target_id = absorbed.id
    WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
)
SELECT DISTINCT one.root, other.root FROM absorbed AS one
JOIN memory_links AS separation ON separation.source_id = one.id
JOIN absorbed AS other ON other.id = separation.target_id
WHERE separation.account_id = %s AND separation.type = 'NOT_DUPLICATE_OF'
"""


def survivor_parameters(account_id: UUID, kind: Kind, identities: Sequence[str]) -> list[Any]:
    """Return the parameters of SURVIVOR_CONDITION."""
    return [account_id, kind, list(identities), account_id]


def survivors_condition(owner: Owner, kind: Kind, identities: Sequence[str]) -> RawSQL:
    """Return a condition for archived rows with these identities, and for rows that they were merged into."""
    given = survivor_parameters(owner.account_id, kind, identities)
    return RawSQL(SURVIVOR_CONDITION, given, output_field=BooleanField())  # noqa: S611 - a constant, with parameters


def find_survivors(account_id: UUID, memory_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the last survivor of each of the memories that was merged, by its id. One statement."""
    return dict(fetch_rows(SELECT_SURVIVORS, [list(memory_ids), account_id]))


def find_absorbed(account_id: UUID, memory_ids: Collection[UUID]) -> list[UUID]:
    """Return the ids of the memories that were merged into these, directly or not, in order."""
    return [
        memory_id
        for (memory_id,) in fetch_rows(SELECT_ABSORBED, [list(memory_ids), account_id])
        if memory_id not in set(memory_ids)
    ]


def find_separated_pairs(account_id: UUID, memory_ids: Collection[UUID]) -> set[frozenset[UUID]]:
    """Return the pairs of these memories that staff separated, or that absorbed such memories. One statement."""
    return set(map(frozenset, fetch_rows(SELECT_SEPARATED, [list(memory_ids), account_id, account_id])))


def find_merged_memories(account_id: UUID, memory_ids: Collection[UUID]) -> set[UUID]:
    """Return those of the memories that are merged into others: they come back only when their merge is undone."""
    links = Link.objects.filter(account_id=account_id, source_id__in=memory_ids, type=DUPLICATE_OF)
    return set(links.values_list("source_id", flat=True))


def end_merges(account_id: UUID, memory_ids: Collection[UUID]) -> None:
    """Delete the links of merged memories that live again, or are removed, to those that they were merged into.

    In the caller's transaction. What they gave to their survivors stays there.
    """
    Link.objects.filter(account_id=account_id, source_id__in=memory_ids, type=DUPLICATE_OF).delete()
