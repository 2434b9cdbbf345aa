"""Meaning: the nearest vectors, exact for small owners and by index above, in one statement whichever it is.

Exact up to EXACT_SEARCH_ROWS rows of what is asked for (1.3 µs a row); above, the partial index of the model, scanned
iteratively. Where a narrow filter makes the index come back short, the exact search answers after all: a filter
never costs results. The branch not taken is never executed (a one-time filter on a count that stops at the limit).
"""


def nearest_ctes(*, where: str, width: int) -> str:
    """The CTE `nearest` (memory_id, distance): at most %(limit)s rows, cosine distance in [0, 2].

    `where` are conditions on `memory_vectors`, of one model and width. Parameters: vector, limit, exact_rows.
    """
    # the cast is what the partial indexes are made over; without it no index of ours can serve
    indexed = f"(vector::halfvec({width})) <=> %(vector)s::halfvec({width})"
    exact = f"""
        SELECT memory_id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
        WHERE {where} AND """
    return f"""
    size AS MATERIALIZED (
        SELECT count(*) AS rows FROM (SELECT 1 FROM memory_vectors WHERE {where} LIMIT %(exact_rows)s + 1) AS counted
    ),
    small AS MATERIALIZED (
        {exact} (SELECT rows FROM size) <= %(exact_rows)s ORDER BY distance LIMIT %(limit)s
    ),
    large AS MATERIALIZED (
        SELECT memory_id, {indexed} AS distance FROM memory_vectors
        WHERE {where} AND (SELECT rows FROM size) > %(exact_rows)s ORDER BY {indexed} LIMIT %(limit)s
    ),
    short AS MATERIALIZED (
        {exact} (SELECT rows FROM size) > %(exact_rows)s
            AND (SELECT count(*) FROM large) < least(%(limit)s, (SELECT rows FROM size))
        ORDER BY distance LIMIT %(limit)s
    ),
    nearest AS MATERIALIZED (
        SELECT memory_id, distance FROM small
        UNION ALL SELECT memory_id, distance FROM large WHERE NOT EXISTS (SELECT FROM short)
        UNION ALL SELECT memory_id, distance FROM short
    )"""
