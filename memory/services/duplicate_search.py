"""Looking for near-duplicates: each new memory asks the index for its nearest; nothing is compared with everything.

A memory is compared within its place: what its holder (`identity.holder`) knows of its kind, in its channel or context.
Places of at most MEMORY_EXACT_SEARCH_ROWS are searched exactly, by the index on their owners; in larger ones the
account's vector index finds the nearest (`account_indexes`), which holds them against the place as it goes. A large
account without one, as long as the job `vector_indexes` has not come to it, is searched exactly and slowly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from memory import conf
from memory.models import Kind
from memory.models.binary import binary_cursor
from memory.providers.embeddings import is_nested
from memory.retrieval.vectors import expression_of_index

KINDS = (Kind.CONTEXT_ENTRY, Kind.FACT, Kind.LEARNING, Kind.STRATEGY)
NEIGHBOURS = 10
"""That each row is compared with: beyond them are more of the same, and their own turn comes."""
RANKED_MORE = 4
"""Times the neighbours that whole vectors rank, where a prefix has found them."""
EF_SEARCH = 20
"""Candidates of the index (`hnsw.ef_search`): what is nearly the same is met early."""

# few new ones are found by their time, many in the order of ids: the planner knows, as values stand in the statement
FRESH = """
SELECT memory_vectors.account_id, memory_id, width, memory_vectors.kind, memory_vectors.context_id IS NOT NULL,
    memory_vectors.user_id <> ''
FROM memories JOIN memory_vectors ON memory_id = memories.id AND memory_vectors.model = %(model)s
WHERE (memories.account_id, memories.id) > (%(account)s, %(memory)s) AND memories.account_id <= %(last)s
    AND memories.kind = ANY (%(kinds)s) AND live
    AND (%(since)s::timestamptz IS NULL OR memory_vectors.created_at >= %(since)s)
ORDER BY memories.account_id, memories.id LIMIT %(size)s"""

FIRST = UUID(int=0)
LAST = UUID(int=2**128 - 1)

# whose rows a row is compared with, by what holds it
PLACES = {
    "context": "{0}.context_id = {1}.context_id AND {0}.user_id = {1}.user_id"
    " AND ({1}.user_id <> '' OR {0}.agent_id = {1}.agent_id)",
    "user": "{0}.user_id = {1}.user_id AND {0}.channel = {1}.channel",
    "agent": "{0}.agent_id = {1}.agent_id AND {0}.user_id = '' AND {0}.channel = {1}.channel",
}

NEAREST = """
WITH asked AS MATERIALIZED (
    SELECT memory_id, vector, kind, agent_id, user_id, channel, context_id FROM memory_vectors
    WHERE memory_id = ANY (%(ids)s) AND {of_model} AND live
), places AS MATERIALIZED (
    SELECT place.*, (
        SELECT count(*) FROM (
            SELECT FROM memory_vectors AS near WHERE {near_place} LIMIT %(exact_rows)s + 1
        ) AS counted
    ) > %(exact_rows)s AS is_large
    FROM (SELECT DISTINCT kind, agent_id, user_id, channel, context_id FROM asked) AS place
)
SELECT asked.memory_id, near.memory_id, 1 - near.distance, near.created_at
FROM asked JOIN places AS place USING (kind, agent_id, user_id, channel) CROSS JOIN LATERAL (
    (
        SELECT memory_id, near.vector <=> asked.vector AS distance, created_at FROM memory_vectors AS near
        WHERE {near_place} AND near.memory_id <> asked.memory_id AND NOT place.is_large
        ORDER BY distance LIMIT {neighbours}
    ) UNION ALL (
        SELECT found.memory_id, found.vector <=> asked.vector, created_at FROM (
            SELECT memory_id, vector, created_at FROM memory_vectors AS near
            WHERE {of_model} AND live AND CASE WHEN {near_place} THEN true ELSE false END AND place.is_large
            ORDER BY {indexed} <=> {asked_indexed} LIMIT {candidates}
        ) AS found WHERE found.memory_id <> asked.memory_id
    )
) AS near
WHERE asked.context_id IS NOT DISTINCT FROM place.context_id AND near.distance <= %(furthest)s
ORDER BY near.distance, asked.memory_id, near.memory_id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A memory to be looked at, as far as the search has to know. `place` is one of PLACES."""

    account_id: UUID
    id: UUID
    kind: str
    width: int
    place: str


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
        "kinds": [str(kind) for kind in KINDS],
        "account": UUID(account) if account else account_id or FIRST,
        "memory": UUID(memory) if memory else FIRST,
        "last": account_id or LAST,
        "size": size,
    }
    with connection.cursor() as cursor:
        cursor.execute(FRESH, given)
        return [make_fresh(*row) for row in cursor.fetchall()]


def make_fresh(account_id: UUID, memory_id: UUID, width: int, kind: str, in_context: bool, has_user: bool) -> Fresh:
    place = "context" if in_context else "user" if has_user else "agent"
    return Fresh(account_id=account_id, id=memory_id, kind=kind, width=width, place=place)


def cursor_of(row: Fresh) -> str:
    return f"{row.account_id}:{row.id}"


def nearest(rows: Iterable[Fresh], *, model: str) -> list[Near]:
    """Those that each of the rows is similar to by at least DUPLICATE_SIMILARITY, in its place; the most similar first.

    One statement for the rows of an account that are of one width, and held alike.
    """
    groups: dict[tuple[UUID, int, str], list[UUID]] = {}
    for row in rows:
        groups.setdefault((row.account_id, row.width, row.place), []).append(row.id)
    found = [near for key, ids in groups.items() for near in nearest_in(*key, ids=ids, model=model)]
    return sorted(found, key=lambda near: (-near.similarity, near.memory_id, near.other_id))


def nearest_in(account_id: UUID, width: int, place: str, *, ids: Sequence[UUID], model: str) -> list[Near]:
    given: dict[str, Any] = {
        "account_id": account_id,
        "model": model,
        "ids": list(ids),
        "exact_rows": conf.EXACT_SEARCH_ROWS,
        "furthest": 1 - conf.DUPLICATE_SIMILARITY,
    }
    with transaction.atomic(), binary_cursor() as cursor:
        cursor.execute(f"SET LOCAL hnsw.ef_search = {EF_SEARCH}")
        cursor.execute(compose(width, place, is_nested(model)), given)
        return [
            Near(memory_id=one, other_id=other, similarity=float(similarity), vector_at=vector_at)
            for one, other, similarity, vector_at in cursor.fetchall()
        ]


@lru_cache(maxsize=64)
def compose(width: int, place: str, has_prefixes: bool) -> str:
    """The statement, for vectors of this width. The account and the model are values, which the index is found by."""
    of_model = f"account_id = %(account_id)s AND model = %(model)s AND width = {width}"
    indexed = expression_of_index(width, is_nested=has_prefixes)
    is_prefix = "subvector" in indexed
    of_place = PLACES[place].format("near", "place")
    return NEAREST.format(
        of_model=of_model,
        near_place=f"{of_model} AND near.kind = place.kind AND near.live AND {of_place}",
        neighbours=NEIGHBOURS,
        candidates=NEIGHBOURS * RANKED_MORE if is_prefix else NEIGHBOURS + 1,
        indexed=indexed,
        asked_indexed=expression_of_index(width, is_nested=has_prefixes, vector="asked.vector"),
    )
