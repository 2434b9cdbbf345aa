"""Words: BM25 over the owner's rows, as common table expressions for a larger statement.

score(d) = sum over query terms of
    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / average))
(Robertson & Zaragoza 2009), with N, df and the average length taken over what the owner may see.
"""

QUOTED_TERM = r"""'''' || replace(replace(term, '\', '\\'), '''', '''''') || ''''"""
"""The column `term` as a literal of a tsquery: a term may hold anything."""

K1 = 1.2
B = 0.75


def bm25_ctes(*, corpus: str) -> str:
    """The CTEs `scored` (id, score), best first, at most %(limit)s rows, and `corpus` (rows, average length).

    `corpus` are the conditions on `memories` of what is searched, and counted for the statistics.
    Parameters: account_id, query, limit. MATERIALIZED, or the planner repeats them per row.
    """
    return f"""
    terms AS MATERIALIZED (
        SELECT unnest(tsvector_to_array(memory_lexemes(
            %(account_id)s, (SELECT language FROM accounts WHERE id = %(account_id)s), %(query)s))) AS term
    ),
    asked AS MATERIALIZED (
        SELECT string_agg({QUOTED_TERM}, ' | ')::tsquery AS words
        FROM terms
    ),
    corpus AS MATERIALIZED (
        SELECT count(*) AS rows, greatest(avg(token_count), 1) AS average FROM memories WHERE {corpus}
    ),
    matched AS MATERIALIZED (
        SELECT id, lexemes, token_count FROM memories
        WHERE {corpus} AND lexemes @@ (SELECT words FROM asked)
    ),
    occurrences AS MATERIALIZED (
        SELECT id, token_count, word.lexeme, cardinality(word.positions) AS tf
        FROM matched, unnest(matched.lexemes) AS word WHERE word.lexeme IN (SELECT term FROM terms)
    ),
    frequencies AS MATERIALIZED (
        SELECT lexeme, count(*) AS df FROM occurrences GROUP BY lexeme
    ),
    scored AS MATERIALIZED (
        SELECT id, sum(
            ln(1 + (corpus.rows - df + 0.5) / (df + 0.5)) * tf * ({K1} + 1)
            / (tf + {K1} * (1 - {B} + {B} * token_count / corpus.average))
        )::float8 AS score
        FROM occurrences JOIN frequencies USING (lexeme) CROSS JOIN corpus
        GROUP BY id ORDER BY score DESC, id LIMIT %(limit)s
    )"""
