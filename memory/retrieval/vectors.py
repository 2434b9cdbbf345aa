"""Meaning: the nearest vectors, exact for small owners and by index above, in one statement whichever it is.

Exact search compares whole vectors: 0.5 µs a row of 384 dimensions, 0.9 of 1,536. A large account has a partial index
(job `vector_indexes`) that all its agents share, over whole vectors or, where the model's prefixes mean something, over
the first 256 dimensions. It serves who sees enough of the account; to others it would mostly come back with rows that
are not theirs. With 50,000 rows it took 2.6 ms instead of 66 for who sees all, 8 instead of 2.6 for who sees a tenth.
An agent sees rows that others wrote (conversations, contexts, a user's knowledge): an index of its own would miss them.

Where the index comes back short of what there is, because a filter is narrow, the exact search answers after all: a
filter never costs results. The branch not taken is never executed (one-time filters on a count that stops early).

Modes (E7) say by what the nearest are found; the whole vector ranks them always. A prefix is used where it saves time:
in exact search, where it is an eighth of the vector or less, as half of the time goes into reading rows; with an index,
256 dimensions in every mode, of which `deep` has twice as many ranked. Models that were not trained for prefixes are
searched by whole vectors; who asks for `broad` is told so (`mode_not_supported`).
"""

import hashlib
import math
from collections.abc import Mapping
from uuid import UUID

from memory import conf
from memory.retrieval.queries import Mode

PREFIXES: Mapping[Mode, int] = {Mode.BROAD: 64, Mode.DEFAULT: 256}
INDEXED_PREFIX = 256
INDEX_PREFIX = "vectors_of_"
"""How the names of accounts' indexes begin."""
LEAST_SAVING = 8
"""Times that a vector must be longer than the prefix that stands in for it in exact search."""
RANKED_DEEP = 2
WASTE = 1_000
"""Of a hundred candidates, each row of an index that is looked at in vain takes as long as ten of an exact search."""


def indexed_width(width: int, *, is_nested: bool) -> int:
    """How many dimensions an account's index is over."""
    return min(width, INDEXED_PREFIX) if is_nested else width


def name_of_index(account_id: UUID, *, model: str, width: int, is_nested: bool) -> str:
    """Of the partial index over an account's vectors; another one where the model's being nested was settled anew."""
    parts = f"{account_id}:{width}:{indexed_width(width, is_nested=is_nested)}:{model}"
    return f"{INDEX_PREFIX}{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def expression_of_index(width: int, *, is_nested: bool, vector: str = "vector") -> str:
    """What it is over, and what has to be ordered by for it to serve."""
    indexed = indexed_width(width, is_nested=is_nested)
    prefix = vector if indexed == width else f"subvector({vector}, 1, {indexed})"
    return f"({prefix}::halfvec({indexed}))"


def is_unsupported(mode: Mode, *, is_nested: bool) -> bool:
    """Whether prefixes are asked for that mean nothing."""
    return mode is Mode.BROAD and not is_nested


def most_exact_rows(indexed_rows: int) -> int:
    """Up to how many visible rows an exact search is quicker than an index over `indexed_rows`.

    To find the owner's, an index goes through indexed_rows / visible rows times as many: they are even where
    visible rows ** 2 = WASTE * indexed_rows.
    """
    return max(conf.EXACT_SEARCH_ROWS, math.isqrt(WASTE * indexed_rows))


def nearest(where: str, *, width: int, is_nested: bool, mode: Mode, has_index: bool) -> str:
    """A SELECT of id and distance (cosine, in [0, 2]), nearest first: at most %(candidates)s rows.

    `where` are conditions on `memory_vectors`. Parameters: account_id, model, vector, candidates; with an index
    exact_rows.
    """
    of_model = f"account_id = %(account_id)s AND model = %(model)s AND width = {width}"
    prefix = PREFIXES.get(mode, width) if is_nested else width
    if not has_index:
        return exact(f"{of_model} AND {where}", width=width, prefix=prefix)
    indexed = expression_of_index(width, is_nested=is_nested)
    asked = expression_of_index(width, is_nested=is_nested, vector="%(vector)s::halfvec")
    further = f" * {RANKED_DEEP}" if mode is Mode.DEEP else ""
    return f"""
        WITH size AS MATERIALIZED (
            SELECT count(*) AS rows FROM (
                SELECT FROM memory_vectors WHERE {of_model} AND {where}
                ORDER BY agent_id, kind LIMIT %(exact_rows)s + 1
            ) AS counted
        ),
        indexed AS MATERIALIZED (
            SELECT memory_id AS id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
            WHERE {of_model} AND live AND {opaque(where)} AND (SELECT rows FROM size) > %(exact_rows)s
            ORDER BY {indexed} <=> {asked} LIMIT %(candidates)s{further}
        ),
        exact AS MATERIALIZED ({
        exact(
            f'''{of_model} AND {where}
            AND (SELECT count(*) FROM indexed) < least(%(candidates)s, (SELECT rows FROM size))
            ''',
            width=width,
            prefix=prefix,
        )
    }
        )
        SELECT id, distance FROM exact
        UNION ALL SELECT id, distance FROM indexed WHERE NOT EXISTS (SELECT FROM exact)
        ORDER BY distance LIMIT %(candidates)s"""


def opaque(where: str) -> str:
    """The same, as the planner cannot take it apart: it would find a way around the index for rows it thinks few."""
    return f"CASE WHEN {where} THEN true ELSE false END"


def exact(where: str, *, width: int, prefix: int) -> str:
    """Ordered by what no index is over, so that none is taken by accident."""
    if prefix * LEAST_SAVING > width:
        return f"""
            SELECT memory_id AS id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
            WHERE {where} ORDER BY distance LIMIT %(candidates)s"""
    return f"""
        SELECT id, vector <=> %(vector)s::halfvec AS distance FROM (
            SELECT memory_id AS id, vector FROM memory_vectors WHERE {where}
            ORDER BY subvector(vector, 1, {prefix}) <=> subvector(%(vector)s::halfvec, 1, {prefix})
            LIMIT %(candidates)s
        ) AS found ORDER BY distance"""


def nearest_ctes(*, where: str, width: int) -> str:
    """The CTE `nearest` (memory_id, distance) of one kind: at most %(limit)s rows, cosine distance in [0, 2].

    `where` are conditions on `memory_vectors`, of one model and width. Parameters: vector, limit, exact_rows.
    Served by the model's own index (`services.vector_index`), where there is one.
    """
    # the cast is what the model's index is made over; without it no index of ours can serve
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
