"""Words: BM25 over the owner's rows, as common table expressions for a larger statement.

score(d) = sum over query terms of
    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / average))
(Robertson & Zaragoza 2009), with N, df and the average length taken over what the owner may see.
"""

import math
from typing import Any

from memory.retrieval.plans import Orientation, Shape, Term

QUOTED_TERM = r"""'''' || replace(replace(term, '\', '\\'), '''', '''''') || ''''"""
"""The column `term` as a literal of a tsquery: a term may hold anything."""

K1 = 1.2
B = 0.75

MOST_TERMS = 32
"""Of a question: the rarest, which say most."""
MOST_MATCHES = 10_000
"""Memories of an account that the terms which select may hold together: commoner ones only score what those found."""


def known_terms(orientation: Orientation) -> list[Term]:
    """The question's terms that the account knows, the rarest first, at most 32."""
    known = [term for term in orientation.terms if term.docs > 0]
    return sorted(known, key=lambda term: (term.docs, term.lexeme))[:MOST_TERMS]


def selective(orientation: Orientation) -> list[Term]:
    """Those that candidates are looked for by: as many as may together be in 10,000 memories, and one at least."""
    chosen: list[Term] = []
    matches = 0
    for term in known_terms(orientation):
        matches += term.docs
        if chosen and matches > MOST_MATCHES:
            break
        chosen.append(term)
    return chosen


def inverse_document_frequency(docs: int, total: int) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), Robertson & Zaragoza 2009; above zero, however common the term is."""
    return math.log(1 + (max(total - docs, 0) + 0.5) / (docs + 0.5))


def bind_terms(orientation: Orientation) -> dict[str, Any]:
    """What `score_of_terms` and the recaller need."""
    terms = known_terms(orientation)
    return {
        "terms": [quote(term.lexeme) for term in terms],
        "weights": [term.weight * inverse_document_frequency(term.docs, orientation.docs) for term in terms],
        "selective": " | ".join(quote(term.lexeme) for term in selective(orientation)),
        "phrases": list(orientation.phrases),
        "average": max(orientation.tokens / orientation.docs, 1.0) if orientation.docs > 0 else 1.0,
    }


def quote(lexeme: str) -> str:
    """A literal of a tsquery: a lexeme may hold anything."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def score_of_terms(shape: Shape) -> str:
    """The BM25 score of the row of `memories` at hand, as an expression."""
    score = f"""(
        SELECT coalesce(sum(weight * tf * ({K1} + 1) / (
            tf + {K1} * (1 - {B} + {B} * memories.token_count / %(average)s::float8)
        )), 0) FROM (
            SELECT weight, memory_term_frequency(memories.lexemes, term) AS tf
            FROM unnest(%(terms)s::tsquery[], %(weights)s::float8[]) AS asked (term, weight)
        ) AS frequencies
    )::float8"""
    if not shape.has_phrases:
        return score
    return f"""{score} * (1 + (
        SELECT count(*) FROM unnest(%(phrases)s::tsquery[]) AS phrase WHERE memories.lexemes @@ phrase
    ))"""


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
