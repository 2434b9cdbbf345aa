"""Which memory stands for one that was merged into another: what follows the links that say so.

Merged ones are merged again, so there are lines of them: each link leads to the next, the last one is live, or was.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from memory.models import Kind, Link
from memory.owner import Owner
from memory.services.memories.links import DUPLICATE_OF

# an array, so that it is an index that finds them
STANDING = """
memories.id = ANY (ARRAY (
    WITH RECURSIVE line (id) AS (
        SELECT told.id FROM memories AS told
        WHERE told.account_id = %s AND told.kind = %s AND told.identity = ANY (%s::text[]) AND told.archived
        UNION SELECT link.target_id FROM line JOIN memory_links AS link ON link.source_id = line.id
        WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
    )
    SELECT id FROM line
))"""

LINES = """
WITH RECURSIVE line (first, id, depth) AS (
    SELECT id, id, 0 FROM unnest(%s::uuid[]) AS asked (id)
    UNION SELECT line.first, link.target_id, depth + 1 FROM line JOIN memory_links AS link ON link.source_id = line.id
    WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
) CYCLE id SET is_again USING been
SELECT DISTINCT ON (first) first, id FROM line WHERE depth > 0 AND NOT is_again ORDER BY first, depth DESC
"""

BENEATH = """
WITH RECURSIVE beneath (id) AS (
    SELECT unnest(%s::uuid[])
    UNION SELECT link.source_id FROM beneath JOIN memory_links AS link ON link.target_id = beneath.id
    WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
)
SELECT id FROM beneath ORDER BY id
"""

# of what was merged, too: whoever stands for one stands where that was put
APART = """
WITH RECURSIVE beneath (root, id) AS (
    SELECT id, id FROM unnest(%s::uuid[]) AS asked (id)
    UNION SELECT root, link.source_id FROM beneath JOIN memory_links AS link ON link.target_id = beneath.id
    WHERE link.account_id = %s AND link.type = 'DUPLICATE_OF'
)
SELECT DISTINCT one.root, other.root FROM beneath AS one
JOIN memory_links AS apart ON apart.source_id = one.id JOIN beneath AS other ON other.id = apart.target_id
WHERE apart.account_id = %s AND apart.type = 'NOT_DUPLICATE_OF'
"""


def bind_standing(account_id: UUID, kind: Kind, identities: Sequence[str]) -> list[Any]:
    """The parameters of STANDING."""
    return [account_id, kind, list(identities), account_id]


def standing_rows(owner: Owner, kind: Kind, identities: Sequence[str]) -> RawSQL:
    """A condition on rows: that they are archived and of these identities, or stand for such."""
    given = bind_standing(owner.account_id, kind, identities)
    return RawSQL(STANDING, given, output_field=BooleanField())  # noqa: S611 - a constant, with parameters


def standing_for(account_id: UUID, memory_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """By those of the memories that were merged, what they came to in the end. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(LINES, [list(memory_ids), account_id])
        return dict(cursor.fetchall())


def merged_along(account_id: UUID, memory_ids: Collection[UUID]) -> list[UUID]:
    """What was merged into the memories, and into that: it says what they say, and goes where they go. By id."""
    with connection.cursor() as cursor:
        cursor.execute(BENEATH, [list(memory_ids), account_id])
        return [memory_id for (memory_id,) in cursor.fetchall() if memory_id not in set(memory_ids)]


def taken_apart(account_id: UUID, memory_ids: Collection[UUID]) -> set[frozenset[UUID]]:
    """The pairs of these memories that staff took apart, or that stand for such. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(APART, [list(memory_ids), account_id, account_id])
        return set(map(frozenset, cursor.fetchall()))


def merged_into_others(account_id: UUID, memory_ids: Collection[UUID]) -> set[UUID]:
    """Those of the memories that another one stands for: they come back when their merge is undone, and by no mark."""
    links = Link.objects.filter(account_id=account_id, source_id__in=memory_ids, type=DUPLICATE_OF)
    return set(links.values_list("source_id", flat=True))
