"""Search by meaning: the nearest vectors, by exact search for small owners and by an index above, in one statement.

Exact search compares whole vectors: 0.5 µs per row of 384 dimensions, 0.9 µs for 1,536. A large account has a partial
index (job `vector_indexes`) that all its agents share, over whole vectors or, if prefixes of the model's vectors are
usable, over the first 256 dimensions. An agent sees rows that others wrote (conversations, contexts, a user's
knowledge), so an index of its own would miss them. The shared index is used if enough of its rows pass the filters;
otherwise it would mostly return rows that are not wanted. With 50,000 rows it took 2.6 ms instead of 66 for all of
them, and 8 instead of 2.6 for a tenth. A sample of the hundred nearest rows shows how many pass. If the agent has
written few rows, the search is exact without a sample.

If the index returns fewer rows than there are, because a filter is narrow, exact search answers after all: a filter
never costs results. PostgreSQL never executes the branch it does not need (one-time filters).

A long text has a vector for each passage (`providers.passages`), and counts by the best one: exact search takes the
nearest vector of each memory, and an index search reads four times as many rows. If passages of few memories fill all
of these, exact search answers as well. Accounts without long texts are searched without grouping.

Modes (E7) decide which part of the vectors finds candidates; whole vectors always rank them. Exact search uses a prefix
only where that saves time: if it is an eighth of the vector or less, since half of the time goes into reading rows. An
index has 256 dimensions in every mode, and `deep` reads twice as many rows of it. Models without usable prefixes, and
passages by exact search, are compared by whole vectors; `broad` and `default`, if a client names them, then report
`mode_not_supported`. Where there are passages, `deep` gathers twice as many candidates (`gathering.candidate_limit`).
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from memory import conf
from memory.retrieval.plans import GatheringShape, QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Mode, Query

PREFIXES: Mapping[Mode, int] = {Mode.BROAD: 64, Mode.DEFAULT: 256}
INDEXED_PREFIX = 256
INDEX_PREFIX = "vectors_of_"
"""Prefix of the names of the accounts' indexes."""
MIN_PREFIX_SAVING = 8
"""Exact search uses a prefix only if the vector is at least this many times as long."""
RERANK_FACTOR = 2
"""Candidates found by a prefix, per candidate wanted. Whole vectors rank them."""
WASTED_ROW_COST = 1_000
"""Cost of index rows that do not pass the filters. For 100 candidates each takes as long as 10 rows of exact search."""
PASSAGE_FACTOR = 4
"""Rows that an index search reads per candidate if there are passages."""
SAMPLE_ROWS = 100
MAX_UNSAMPLED_ROWS = 1_000
"""Rows written by the agent up to which there is no sample, because exact search takes no longer."""
IS_OF_FORMER_MODEL = "EXISTS (SELECT FROM embedding_state WHERE former ->> 'name' = %(model)s)"
"""True for a query by a model that serves no longer: new memories get no vectors of it.

A process that has not learned of the switch yet asks such queries, for a moment.
"""


def indexed_width(width: int, *, is_nested: bool) -> int:
    """Return the number of dimensions in an account's index."""
    return min(width, INDEXED_PREFIX) if is_nested else width


def index_name(account_id: UUID, *, model: str, width: int, is_nested: bool) -> str:
    """Return the name of the partial index over an account's vectors. It depends on whether the model is nested."""
    parts = f"{account_id}:{width}:{indexed_width(width, is_nested=is_nested)}:{model}"
    return f"{INDEX_PREFIX}{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def index_expression(width: int, *, is_nested: bool, vector: str = "vector") -> str:
    """Return the indexed expression. The planner uses the index only for an ORDER BY over the same expression."""
    indexed = indexed_width(width, is_nested=is_nested)
    prefix = vector if indexed == width else f"subvector({vector}, 1, {indexed})"
    return f"({prefix}::halfvec({indexed}))"


def is_unsupported(query: Query, analysis: QueryAnalysis) -> bool:
    """Return True if the mode that a client names needs prefixes and whole vectors are compared all the same.

    The model may have no usable prefixes. Exact search does not compare those of passages.
    """
    compares_whole = not query.is_nested or (analysis.has_passages and not analysis.indexed_rows)
    return query.mode in PREFIXES and compares_whole


def min_sample_hits(indexed_rows: int) -> int:
    """Return how many sampled rows must pass for an index over `indexed_rows` to be faster than exact search.

    To find the wanted rows, an index reads indexed_rows / wanted rows times as many. Both take equally long if
    wanted rows ** 2 = WASTED_ROW_COST * indexed_rows.
    """
    even = max(conf.EXACT_SEARCH_ROWS, math.isqrt(WASTED_ROW_COST * indexed_rows))
    return math.ceil(SAMPLE_ROWS * even / max(indexed_rows, 1))


def nearest_sql(where: str, shape: GatheringShape) -> str:
    """Return a SELECT of id and distance (cosine, in [0, 2]), nearest first, at most %(candidates)s rows.

    `where` is a condition on `memory_vectors`. Parameters: account_id, agent_id, model, vector, candidates; with an
    index also least_seen.
    """
    mode = Mode(shape.mode)
    of_model = f"account_id = %(account_id)s AND model = %(model)s AND width = {shape.width}"
    prefix = PREFIXES.get(mode, shape.width) if shape.is_nested else shape.width
    if not shape.has_index:
        return exact_search_sql(f"{of_model} AND {where}", shape, prefix=prefix)
    indexed = index_expression(shape.width, is_nested=shape.is_nested)
    asked = index_expression(shape.width, is_nested=shape.is_nested, vector="%(vector)s::halfvec")
    further = f" * {RERANK_FACTOR}" if mode is Mode.DEEP else ""
    is_short = "(SELECT count(*) FROM indexed) < %(candidates)s"
    exact = exact_search_sql(f"{of_model} AND {where} AND {is_short}", shape, prefix=prefix)
    rows = f"""
            SELECT memory_id AS id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
            WHERE {of_model} AND live AND {opaque_sql(where)} AND (SELECT seen FROM sample) >= %(least_seen)s
            ORDER BY {indexed} <=> {asked} LIMIT %(candidates)s{further}"""
    if shape.has_passages:
        rows = f"SELECT id, min(distance) AS distance FROM ({rows} * {PASSAGE_FACTOR}) AS near GROUP BY id"
    return f"""
        WITH written AS MATERIALIZED ({written_rows_sql(shape)}),
        sample AS MATERIALIZED (
            SELECT count(*) FILTER (WHERE is_wanted) AS seen FROM (
                SELECT {opaque_sql(where)} AS is_wanted FROM memory_vectors
                WHERE {of_model} AND live AND (SELECT rows FROM written) > {MAX_UNSAMPLED_ROWS}
                ORDER BY {indexed} <=> {asked} LIMIT {SAMPLE_ROWS}
            ) AS nearest
        ),
        indexed AS MATERIALIZED ({rows}),
        exact AS MATERIALIZED ({exact})
        SELECT id, distance FROM exact
        UNION ALL SELECT id, distance FROM indexed WHERE NOT EXISTS (SELECT FROM exact)
        ORDER BY distance, id LIMIT %(candidates)s"""


def written_rows_sql(shape: GatheringShape) -> str:
    """Return a SELECT of the number of rows that the agent wrote, up to the limit; above the limit without an agent."""
    if not shape.owner.has_agent:
        return f"SELECT {MAX_UNSAMPLED_ROWS} + 1 AS rows"
    return f"""
        SELECT count(*) AS rows FROM (
            SELECT FROM memory_vectors WHERE account_id = %(account_id)s AND agent_id = %(agent_id)s
            ORDER BY kind LIMIT {MAX_UNSAMPLED_ROWS} + 1
        ) AS counted"""


def opaque_sql(where: str) -> str:
    """Hide a condition from the planner, which would bypass the index if it expected few rows to pass."""
    return f"CASE WHEN {where} THEN true ELSE false END"


def exact_search_sql(where: str, shape: GatheringShape, *, prefix: int) -> str:
    """Return an exact search. It orders by an expression without an index, and always in the same order.

    Prefixes of the vectors of passages are not compared: finding the best one of each memory takes most of the time.
    """
    if shape.has_passages:
        return f"""
            SELECT memory_id AS id, min(vector <=> %(vector)s::halfvec) AS distance FROM memory_vectors
            WHERE {where} GROUP BY memory_id ORDER BY distance, memory_id LIMIT %(candidates)s"""
    if prefix * MIN_PREFIX_SAVING > shape.width:
        return f"""
            SELECT memory_id AS id, vector <=> %(vector)s::halfvec AS distance FROM memory_vectors
            WHERE {where} ORDER BY distance, memory_id LIMIT %(candidates)s"""
    return f"""
        SELECT id, vector <=> %(vector)s::halfvec AS distance FROM (
            SELECT memory_id AS id, vector FROM memory_vectors WHERE {where}
            ORDER BY subvector(vector, 1, {prefix}) <=> subvector(%(vector)s::halfvec, 1, {prefix}), memory_id
            LIMIT %(candidates)s * {RERANK_FACTOR}
        ) AS found ORDER BY distance, id LIMIT %(candidates)s"""


def nearest_ctes(*, where: str, width: int) -> str:
    """Return CTEs that end with `nearest` (memory_id, distance): at most %(limit)s rows, cosine distance in [0, 2].

    `where` is a condition on the vectors of one kind, model and width. Parameters: vector, limit, exact_rows. The
    statement uses the model's own index (`services.embedding.vector_index`) if there is one.
    """
    # the model's index is over this cast, so no index could be used without it
    indexed = f"(vector::halfvec({width})) <=> %(vector)s::halfvec({width})"
    return f"""
    size AS MATERIALIZED (
        SELECT count(*) AS rows FROM (SELECT 1 FROM memory_vectors WHERE {where} LIMIT %(exact_rows)s + 1) AS counted
    ),
    indexed AS MATERIALIZED (
        SELECT memory_id, min(distance) AS distance FROM (
            SELECT memory_id, {indexed} AS distance FROM memory_vectors
            WHERE {where} AND (SELECT rows FROM size) > %(exact_rows)s
            ORDER BY {indexed} LIMIT %(limit)s * {PASSAGE_FACTOR}
        ) AS near GROUP BY memory_id ORDER BY distance, memory_id LIMIT %(limit)s
    ),
    exact AS MATERIALIZED (
        SELECT memory_id, min(vector <=> %(vector)s::halfvec) AS distance FROM memory_vectors
        WHERE {where} AND (SELECT count(*) FROM indexed) < least(%(limit)s, (SELECT rows FROM size))
        GROUP BY memory_id ORDER BY distance, memory_id LIMIT %(limit)s
    ),
    nearest AS MATERIALIZED (
        SELECT memory_id, distance FROM exact
        UNION ALL SELECT memory_id, distance FROM indexed WHERE NOT EXISTS (SELECT FROM exact)
    )"""


class VectorRetriever(Retriever):
    """Finds memories of all kinds by meaning: the nearest vectors."""

    name = "vector"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        return query.vector is not None

    def to_sql(self, visible: VisibleRows) -> str:
        return nearest_sql(visible.vectors, visible.shape)

    def params(self, query: Query, analysis: QueryAnalysis) -> dict[str, Any]:
        return {"least_seen": min_sample_hits(analysis.indexed_rows)}


VECTOR = VectorRetriever()
