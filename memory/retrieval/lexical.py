"""Words: BM25 with the statistics of the account, the same wherever words are looked for.

score(d) = sum over the question's terms of
    weight * ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / average))
(Robertson & Zaragoza 2009). N, df and the average length are over all memories of the account that are neither
archived, quarantined nor buried, expired or not (`TermCount`); |d| is a memory's `token_count`. Names weigh more than
other words, expansions less; a memory that holds a quoted phrase as it stands counts double for each.
"""

from collections.abc import Sequence
from typing import Any

from memory.retrieval.plans import Orientation, Shape, Term

QUOTED_TERM = r"""'''' || replace(replace(term, '\', '\\'), '''', '''''') || ''''"""
"""The column `term` as a literal of a tsquery: a term may hold anything."""

K1 = 1.2
B = 0.75

MOST_TERMS = 32
"""Of a question: those that say most."""
MOST_MATCHES = 3_000
"""Memories of an account that the terms which select may hold together: commoner ones only score what those found."""
FEW_ROWS = 5_000
"""Of an owner, or behind a filter: so many are looked through by all terms where those that select find too little."""
MOST_SCORED = 20_000
"""Of a word that selects and is in more memories than that, the best of so many are found, and not of all."""
NAME_WEIGHT = 1.5
EXPANSION_WEIGHT = 0.5

CORPUS = """
    SELECT coalesce(sum(docs), 0)::float8 AS docs, coalesce(sum(tokens), 0)::float8 AS tokens
    FROM memory_terms WHERE account_id = %(account_id)s AND term = ''"""
"""How many memories the account has, and the sum of their lengths."""

LANGUAGE = "(SELECT language FROM accounts WHERE id = %(account_id)s)"


def lexemes_of(text: str) -> str:
    """The terms of a text, given as an expression, in the account's language: a set to select."""
    return f"unnest(tsvector_to_array(memory_lexemes(%(account_id)s, {LANGUAGE}, {text})))"


def weighed_terms(asked: str) -> str:
    """What the terms of a question are worth: rows of `term`, `docs`, `weight` (with its inverse document frequency)
    and `selects`, at most 32, best first.

    `asked` selects `term` and `weight`, a term as often as it likes. Terms that no memory of the account holds are left
    out. Those that select are the best ones that together are in 3,000 memories, and one at least.
    """
    return f"""
        SELECT term, docs, weight, place = 1 OR matches <= {MOST_MATCHES} AS selects
        FROM (
            SELECT term, docs, weight, row_number() OVER best AS place, sum(docs) OVER best AS matches
            FROM (
                SELECT term, held.docs, asked.weight
                    * ln(1 + (greatest(corpus.docs - held.docs, 0) + 0.5::float8) / (held.docs + 0.5::float8)) AS weight
                FROM (SELECT term, max(weight)::float8 AS weight FROM ({asked}) AS every GROUP BY term) AS asked
                CROSS JOIN ({CORPUS}) AS corpus
                CROSS JOIN LATERAL (
                    SELECT sum(docs)::bigint AS docs FROM memory_terms AS counted
                    WHERE counted.account_id = %(account_id)s AND counted.term = asked.term
                ) AS held WHERE held.docs > 0
            ) AS known
            WINDOW best AS (ORDER BY weight DESC, term COLLATE "C" ROWS UNBOUNDED PRECEDING)
        ) AS ranked WHERE place <= {MOST_TERMS} ORDER BY place"""


def bind_terms(orientation: Orientation) -> dict[str, Any]:
    """What `score_of_terms` and the recaller need."""
    return {
        "terms": [quote(term.lexeme) for term in orientation.terms],
        "weights": [term.weight for term in orientation.terms],
        "contents": [term.is_content for term in orientation.terms],
        "subjects": [term.is_subject for term in orientation.terms],
        "selective": " | ".join(quote(term.lexeme) for term in orientation.terms if term.selects),
        "every": " | ".join(quote(term.lexeme) for term in orientation.terms),
        "phrases": list(orientation.phrases),
        "average": max(orientation.tokens / orientation.docs, 1.0) if orientation.docs > 0 else 1.0,
    }


def are_common(terms: Sequence[Term]) -> bool:
    """Whether all that select are in more memories of the account than are scored."""
    selecting = [term.docs for term in terms if term.selects]
    return bool(selecting) and min(selecting) > MOST_SCORED


def quote(lexeme: str) -> str:
    """A literal of a tsquery: a lexeme may hold anything."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def scores_of_terms(shape: Shape) -> str:
    """A SELECT of what the row of `memories` at hand says by words: `bm25`; `content`, the same over the terms that are
    content; `naming`, what of that is due to subjects; `held`, the terms that it holds, bit n the n-th; `quoted`."""
    return f"""
        SELECT bm25 * (1 + quoted) AS bm25, content * (1 + quoted) AS content, naming * (1 + quoted) AS naming, held,
            quoted
        FROM (
            SELECT coalesce(sum(score), 0)::float8 AS bm25,
                coalesce(sum(score) FILTER (WHERE is_content), 0)::float8 AS content,
                coalesce(sum(score) FILTER (WHERE is_content AND is_subject), 0)::float8 AS naming,
                coalesce(bit_or(bit), 0) AS held
            FROM (
                SELECT {score_of_term("%(average)s::float8")} AS score, is_content, is_subject,
                    1::bigint << (place::int - 1) AS bit
                FROM unnest(%(terms)s::tsquery[], %(weights)s::float8[], %(contents)s::bool[], %(subjects)s::bool[])
                    WITH ORDINALITY AS asked (term, weight, is_content, is_subject, place)
                WHERE memories.lexemes @@ term
            ) AS held
        ) AS scored CROSS JOIN ({phrases_held(shape)}) AS phrases"""


def phrases_held(shape: Shape) -> str:
    """A SELECT of how many of the question's phrases the row of `memories` at hand holds: `quoted`."""
    if not shape.has_phrases:
        return "SELECT 0 AS quoted"
    return """SELECT count(*)::int AS quoted FROM unnest(%(phrases)s::tsquery[]) AS phrase
        WHERE memories.lexemes @@ phrase"""


def score_of_terms(shape: Shape) -> str:
    """The score of the row of `memories` at hand, as an expression over what `bind_terms` binds."""
    score = score_of("%(terms)s::tsquery[]", "%(weights)s::float8[]", "%(average)s::float8")
    return f"{score}{times_phrases(shape)}"


def times_phrases(shape: Shape) -> str:
    if not shape.has_phrases:
        return ""
    return f" * (1 + ({phrases_held(shape)}))"


def score_of(terms: str, weights: str, average: str) -> str:
    """The formula, over the row of `memories` at hand: terms as tsqueries, their weights, the average length.

    tf / (tf + k) stands as 1 - k / (k + tf), and terms that are not in the row are passed over first: counting is what
    takes the time, and so is done once a term that counts.
    """
    return f"""(
        SELECT coalesce(sum({score_of_term(average)}), 0)
        FROM unnest({terms}, {weights}) AS asked (term, weight) WHERE memories.lexemes @@ term
    )::float8"""


def score_of_term(average: str) -> str:
    """What one `term` of `weight` brings the row of `memories` at hand, which holds it."""
    k = f"({K1} * (1 - {B} + {B} * memories.token_count / {average}))"
    return f"weight * ({K1} + 1) * (1 - {k} / ({k} + memory_term_frequency(memories.lexemes, term)))"


def best_by_words(rows: str, score: str, *, limit: str, selective: str) -> str:
    """A SELECT of `id` and `score` of the rows that hold words that select, a tsquery, best first.

    Of very many (MOST_SCORED) whichever come first are scored: a word that all hold tells none from another.
    """
    return f"""
        SELECT id, {score} AS score FROM (
            SELECT * FROM memories WHERE {rows} AND lexemes @@ {selective} LIMIT {MOST_SCORED}
        ) AS memories ORDER BY score DESC, id LIMIT {limit}"""


def best_by_all_words(rows: str, score: str, *, limit: str, selective: str, every: str) -> str:
    """The same; where that finds less than the limit among few rows (FEW_ROWS), these are looked through by all words.

    Which words select goes by the account: in the rows of a small agent of a large account, or behind a narrow filter,
    others may be what finds. The branch not taken is never executed (one-time filters on counts). The second one goes
    without the index over words, whose lists of common ones are as long as the account is large.
    """
    return f"""
        WITH few AS MATERIALIZED ({best_by_words(rows, score, limit=limit, selective=selective)}),
        size AS MATERIALIZED (
            SELECT count(*) AS rows FROM (
                SELECT FROM memories WHERE {rows} AND (SELECT count(*) FROM few) < {limit} AND {every} IS NOT NULL
                LIMIT {FEW_ROWS} + 1
            ) AS counted
        ),
        every AS MATERIALIZED (
            SELECT id, {score} AS score FROM memories
            WHERE {rows} AND ts_match_vq(lexemes, {every}) AND (SELECT rows FROM size) BETWEEN 1 AND {FEW_ROWS}
            ORDER BY score DESC, id LIMIT {limit}
        )
        SELECT id, score FROM every UNION ALL SELECT id, score FROM few WHERE NOT EXISTS (SELECT FROM every)"""


def bm25_ctes(*, rows: str) -> str:
    """The CTE `scored` (id, score), best first, at most %(limit)s rows, for a statement of its own.

    `rows` are the conditions on `memories` of what is searched. Parameters: account_id, query, limit. MATERIALIZED, or
    the planner repeats them per row.
    """
    score = score_of("(SELECT terms FROM question)", "(SELECT weights FROM question)", "(SELECT average FROM question)")
    return f"""
    weighed AS MATERIALIZED ({weighed_terms(f"SELECT {lexemes_of('%(query)s')} AS term, 1 AS weight")}),
    question AS MATERIALIZED (
        SELECT array_agg(({QUOTED_TERM})::tsquery ORDER BY term) AS terms,
            array_agg(weight ORDER BY term) AS weights,
            string_agg({QUOTED_TERM}, ' | ') FILTER (WHERE selects)::tsquery AS selective,
            string_agg({QUOTED_TERM}, ' | ')::tsquery AS every, NOT bool_and(selects) AS is_cut,
            (SELECT greatest(tokens / greatest(docs, 1), 1) FROM ({CORPUS}) AS corpus) AS average
        FROM weighed
    ),
    scored AS MATERIALIZED ({
        best_by_all_words(
            rows,
            score,
            limit="%(limit)s",
            selective="(SELECT selective FROM question)",
            every="(SELECT every FROM question WHERE is_cut)",
        )
    })"""
