"""Meaning: the nearest vectors, exact for small owners and by index above, in one statement whichever it is.

Exact search compares whole vectors: 0.5 µs a row of 384 dimensions, 0.9 of 1,536. A large account has a partial index
(job `vector_indexes`) that all its agents share, over whole vectors or, where the model's prefixes mean something, over
the first 256 dimensions. An agent sees rows that others wrote (conversations, contexts, a user's knowledge): an index
of its own would miss them. The shared one serves where enough of it is let through, or it would mostly come back with
rows that are not wanted: with 50,000 rows it took 2.6 ms instead of 66 for all of them, 8 instead of 2.6 for a tenth.
How many are let through is told by a sample, the hundred that are nearest of all. An agent that has written few rows is
searched exactly without one.

Where the index comes back short of what there is, because a filter is narrow, the exact search answers after all: a
filter never costs results. The branch not taken is never executed (one-time filters).

Modes (E7) say by what the nearest are found; the whole vector ranks them always. A prefix is used where it saves time:
in exact search, where it is an eighth of the vector or less, as half of the time goes into reading rows; with an index,
256 dimensions in every mode, `deep` ranking twice as many. Models that were not trained for prefixes are searched by
whole vectors; who asks for `broad` is told so (`mode_not_supported`).
"""

import hashlib
import math
from collections.abc import Mapping
from uuid import UUID

from memory import conf
from memory.retrieval.plans import Shape
from memory.retrieval.queries import Mode

PREFIXES: Mapping[Mode, int] = {Mode.BROAD: 64, Mode.DEFAULT: 256}
INDEXED_PREFIX = 256
INDEX_PREFIX = "vectors_of_"
"""How the names of accounts' indexes begin."""
LEAST_SAVING = 8
"""Times that a vector must be longer than the prefix that stands in for it in exact search."""
RANKED_MORE = 2
"""Times the candidates that whole vectors rank, where a prefix has found them."""
WASTE = 1_000
"""Of a hundred candidates, each row of an index that is looked at in vain takes as long as ten of an exact search."""
SAMPLED = 100
FEW_ROWS = 1_000
"""That an agent wrote: an exact search of them takes no longer than a sample."""


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


def least_seen(indexed_rows: int) -> int:
    """How many of the sample must be let through for an index over `indexed_rows` to be quicker than exact search.

    To find the wanted rows, an index goes through indexed_rows / wanted rows times as many: they are even where
    wanted rows ** 2 = WASTE * indexed_rows.
    """
    even = max(conf.EXACT_SEARCH_ROWS, math.isqrt(WASTE * indexed_rows))
    return math.ceil(SAMPLED * even / max(indexed_rows, 1))


def nearest(where: str, shape: Shape) -> str:
    """A SELECT of id and distance (cosine, in [0, 2]), nearest first: at most %(candidates)s rows.

    `where` are conditions on `memory_vectors`. Parameters: account_id, agent_id, model, vector, candidates; with an
    index least_seen.
    """
    mode = Mode(shape.mode)
    of_model = f"account_id = %(account_id)s AND model = %(model)s AND width = {shape.width}"
    prefix = PREFIXES.get(mode, shape.width) if shape.is_nested else shape.width
    if not shape.has_index:
        return exact(f"{of_model} AND {where}", width=shape.width, prefix=prefix)
    indexed = expression_of_index(shape.width, is_nested=shape.is_nested)
    asked = expression_of_index(shape.width, is_nested=shape.is_nested, vector="%(vector)s::halfvec")
    further = f" * {RANKED_MORE}" if mode is Mode.DEEP else ""
    is_short = "(SELECT count(*) FROM indexed) < %(candidates)s"
    return f"""
        WITH written AS MATERIALIZED ({written(shape)}),
        sample AS MATERIALIZED (
            SELECT count(*) FILTER (WHERE is_wanted) AS seen FROM (
                SELECT {opaque(where)} AS is_wanted FROM memory_vectors
                WHERE {of_model} AND live AND (SELECT rows FROM written) > {FEW_ROWS}
                ORDER BY {indexed} <=> {asked} LIMIT {SAMPLED}
            ) AS nearest
        ),
        indexed AS MATERIALIZED (
            SELECT memory_id AS id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
            WHERE {of_model} AND live AND {opaque(where)} AND (SELECT seen FROM sample) >= %(least_seen)s
            ORDER BY {indexed} <=> {asked} LIMIT %(candidates)s{further}
        ),
        exact AS MATERIALIZED ({exact(f"{of_model} AND {where} AND {is_short}", width=shape.width, prefix=prefix)})
        SELECT id, distance FROM exact
        UNION ALL SELECT id, distance FROM indexed WHERE NOT EXISTS (SELECT FROM exact)
        ORDER BY distance, id LIMIT %(candidates)s"""


def written(shape: Shape) -> str:
    """How many rows the agent wrote, as far as that matters, from the index on the owner; enough without an agent."""
    if not shape.has_agent:
        return f"SELECT {FEW_ROWS} + 1 AS rows"
    return f"""
        SELECT count(*) AS rows FROM (
            SELECT FROM memory_vectors WHERE account_id = %(account_id)s AND agent_id = %(agent_id)s
            ORDER BY kind LIMIT {FEW_ROWS} + 1
        ) AS counted"""


def opaque(where: str) -> str:
    """The same, as the planner cannot take it apart: it would find a way around the index for rows it thinks few."""
    return f"CASE WHEN {where} THEN true ELSE false END"


def exact(where: str, *, width: int, prefix: int) -> str:
    """Ordered by what no index is over, so that none is taken by accident; equally near ones always alike."""
    if prefix * LEAST_SAVING > width:
        return f"""
            SELECT memory_id AS id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
            WHERE {where} ORDER BY distance, memory_id LIMIT %(candidates)s"""
    return f"""
        SELECT id, vector <=> %(vector)s::halfvec AS distance FROM (
            SELECT memory_id AS id, vector FROM memory_vectors WHERE {where}
            ORDER BY subvector(vector, 1, {prefix}) <=> subvector(%(vector)s::halfvec, 1, {prefix}), memory_id
            LIMIT %(candidates)s * {RANKED_MORE}
        ) AS found ORDER BY distance, id LIMIT %(candidates)s"""


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
        ORDER BY distance, memory_id LIMIT %(limit)s
    ),
    nearest AS MATERIALIZED (
        SELECT memory_id, distance FROM exact
        UNION ALL SELECT memory_id, distance FROM indexed WHERE NOT EXISTS (SELECT FROM exact)
    )"""
