"""Looking for near-duplicates: each new memory looks up what is worded alike; nothing is compared with everything.

A memory is compared within its place: what its holder (`identity.holder`) knows of its kind, in its channel and
context. What says the same has one wording (`duplicate_wordings`), by which it is found; the vectors of what is found
say whether it means the same. So nothing that would be merged is missed, and each look-up takes as long among many as
among few. An index over vectors misses some, and took 1.3 to 2 times as long a row among ten times as many.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory import conf
from memory.models.binary import binary_cursor
from memory.models.memory import WORDED

NEIGHBOURS = 50
"""That each row is compared with: beyond them are more of the same, and their own turn comes."""

# few new ones are found by their time, many in the order of ids: the planner knows, as values stand in the statement
FRESH = """
SELECT memory_vectors.account_id, memory_id
FROM memories JOIN memory_vectors ON memory_id = memories.id AND memory_vectors.model = %(model)s
WHERE (memories.account_id, memories.id) > (%(account)s, %(memory)s) AND memories.account_id <= %(last)s
    AND memories.kind = ANY (%(kinds)s) AND live
    AND (%(since)s::timestamptz IS NULL OR memory_vectors.created_at >= %(since)s)
ORDER BY memories.account_id, memories.id LIMIT %(size)s"""

FIRST = UUID(int=0)
LAST = UUID(int=2**128 - 1)

NEAREST = """
WITH asked AS MATERIALIZED (
    SELECT memories.id, memories.kind, wording, memories.agent_id, memories.user_id, memories.channel,
        memories.context_id, width, vector
    FROM memories JOIN memory_vectors ON memory_id = memories.id AND model = %(model)s
    WHERE memories.account_id = %(account)s AND memories.id = ANY (%(ids)s) AND live
)
SELECT asked.id, near.id, 1 - near.distance, near.created_at
FROM asked CROSS JOIN LATERAL (
    SELECT memories.id, memory_vectors.created_at, memory_vectors.vector <=> asked.vector AS distance
    FROM memories JOIN memory_vectors ON memory_id = memories.id AND model = %(model)s
    WHERE memories.account_id = %(account)s AND memories.wording = asked.wording
        AND memories.user_id = asked.user_id AND (asked.user_id <> '' OR memories.agent_id = asked.agent_id)
        AND memories.kind = asked.kind AND memories.channel = asked.channel
        AND memories.context_id IS NOT DISTINCT FROM asked.context_id AND memories.id <> asked.id
        AND live AND width = asked.width
    LIMIT %(neighbours)s
) AS near
WHERE near.distance <= %(furthest)s
ORDER BY near.distance, asked.id, near.id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A memory to be looked at."""

    account_id: UUID
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Two memories of one place that mean nearly the same; `similarity` is 1 - cosine distance.

    `vector_at` is when the vector of the second was made."""

    memory_id: UUID
    other_id: UUID
    similarity: float
    vector_at: datetime


def fresh_rows(*, model: str, since: datetime | None, after: str, account_id: UUID | None, size: int) -> list[Fresh]:
    """The next memories with a vector of the model that was made since then; all of them for None.

    By account and id; `after` is the `cursor_of` the last one, or empty.
    """
    account, _, memory = after.partition(":")
    given = {
        "model": model,
        "since": since,
        "kinds": [str(kind) for kind in WORDED],
        "account": UUID(account) if account else account_id or FIRST,
        "memory": UUID(memory) if memory else FIRST,
        "last": account_id or LAST,
        "size": size,
    }
    with connection.cursor() as cursor:
        cursor.execute(FRESH, given)
        return [Fresh(account_id=account_id, id=memory_id) for account_id, memory_id in cursor.fetchall()]


def cursor_of(row: Fresh) -> str:
    return f"{row.account_id}:{row.id}"


def nearest(rows: Iterable[Fresh], *, model: str) -> list[Near]:
    """Those that each of the rows is similar to by at least DUPLICATE_SIMILARITY, in its place; the most similar first.

    Only what is worded alike. One statement for the rows of an account.
    """
    by_account: dict[UUID, list[UUID]] = {}
    for row in rows:
        by_account.setdefault(row.account_id, []).append(row.id)
    found = [near for account_id, ids in by_account.items() for near in nearest_in(account_id, ids=ids, model=model)]
    return sorted(found, key=lambda near: (-near.similarity, near.memory_id, near.other_id))


def nearest_in(account_id: UUID, *, ids: Sequence[UUID], model: str) -> list[Near]:
    given: dict[str, Any] = {
        "account": account_id,
        "model": model,
        "ids": list(ids),
        "neighbours": NEIGHBOURS,
        "furthest": 1 - conf.DUPLICATE_SIMILARITY,
    }
    with binary_cursor() as cursor:
        cursor.execute(NEAREST, given)
        return [
            Near(memory_id=one, other_id=other, similarity=float(similarity), vector_at=vector_at)
            for one, other, similarity, vector_at in cursor.fetchall()
        ]
