"""Meaning: the nearest vectors, exact for small owners and by index above, in one statement whichever it is.

Exact up to EXACT_SEARCH_ROWS rows of what is asked for (1.3 µs a row); above, the partial index of the model, scanned
iteratively. Where it comes back short of what there is, because a filter is narrow, the exact search answers after all:
a filter never costs results. The branch not taken is never executed (one-time filters on a count that stops early).
"""

import hashlib
from uuid import UUID


def name_of_index(account_id: UUID, agent_id: str, *, model: str, width: int) -> str:
    """Of the partial index over one agent's vectors, or over all of the account's without one."""
    parts = f"{account_id}:{width}:{len(model)}:{model}:{agent_id}"
    return f"vectors_of_{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def nearest_ctes(*, where: str, width: int) -> str:
    """The CTE `nearest` (memory_id, distance): at most %(limit)s rows, cosine distance in [0, 2].

    `where` are conditions on `memory_vectors`, of one model and width. Parameters: vector, limit, exact_rows.
    """
    # the cast is what the partial indexes are made over; without it no index of ours can serve
    indexed = f"(vector::halfvec({width})) <=> %(vector)s::halfvec({width})"
    return f"""
    size AS MATERIALIZED (
        SELECT count(*) AS rows FROM (SELECT 1 FROM memory_vectors WHERE {where} LIMIT %(exact_rows)s + 1) AS counted
    ),
    indexed AS MATERIALIZED (
        SELECT memory_id, {indexed} AS distance FROM memory_vectors
        WHERE {where} AND (SELECT rows FROM size) > %(exact_rows)s ORDER BY {indexed} LIMIT %(limit)s
    ),
    exact AS MATERIALIZED (
        SELECT memory_id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
        WHERE {where} AND (SELECT count(*) FROM indexed) < least(%(limit)s, (SELECT rows FROM size))
        ORDER BY distance LIMIT %(limit)s
    ),
    nearest AS MATERIALIZED (
        SELECT memory_id, distance FROM exact
        UNION ALL SELECT memory_id, distance FROM indexed WHERE NOT EXISTS (SELECT FROM exact)
    )"""
