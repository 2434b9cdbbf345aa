"""Search by words: BM25 with the statistics of the account, the same wherever words are searched for.

score(d) = sum over the question's terms of
    weight * ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / average))
(Robertson & Zaragoza 2009). N, df and the average length are over all memories of the account that are neither
archived, quarantined nor buried, expired or not (`TermCount`); |d| is a memory's `token_count`. Names weigh more than
other words, expansions less. A memory's score is multiplied by 1 + the number of quoted phrases that it holds.

"Current row" below means the row of `memories` that an expression is evaluated for. People who browse look memories
up without scores (`has_words_or_ids`).
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, F, Func, Q
from django.db.models.expressions import RawSQL

from memory.models.statements import fetch_rows
from memory.retrieval.plans import GatheringShape, QueryAnalysis, Retriever, Term, VisibleRows
from memory.retrieval.queries import Query

QUOTED_TERM = r"""'''' || replace(replace(term, '\', '\\'), '''', '''''') || ''''"""
"""The column `term` as a literal of a tsquery, whatever characters it holds."""

K1 = 1.2
B = 0.75

MAX_TERMS = 32
"""Terms of a question that count: those with the greatest weights."""
MAX_MATCHES = 3_000
"""Memories of the account that the selecting terms may match together. Commoner terms only add to scores."""
MAX_EXHAUSTIVE_ROWS = 5_000
"""Rows behind the filters up to which all terms are searched for if the selecting ones find too few memories."""
MAX_SCORED = 20_000
"""Memories that are scored. If the selecting terms match more, the best of this many are found, not of all."""
NAME_WEIGHT = 1.5
EXPANSION_WEIGHT = 0.5

CORPUS = """
    SELECT coalesce(sum(docs), 0)::float8 AS docs, coalesce(sum(tokens), 0)::float8 AS tokens
    FROM memory_terms WHERE account_id = %(account_id)s AND term = ''"""
"""The number of the account's memories and the sum of their lengths."""

ASKED_TERMS = """
    asked AS MATERIALIZED (
        SELECT * FROM unnest(%(terms)s::tsquery[], %(weights)s::float8[], %(contents)s::bool[], %(subjects)s::bool[])
            WITH ORDINALITY AS asked (term, weight, is_content, is_subject, place)
    ),"""
"""The CTE of the question's terms, which `bm25_of_terms_sql` and `term_scores_sql` read for each row."""

LANGUAGE = "(SELECT language FROM accounts WHERE id = %(account_id)s)"


def lexemes_sql(text: str) -> str:
    """Return a set-returning expression: the terms, in the account's language, of a text given as an expression."""
    return f"unnest(tsvector_to_array(memory_lexemes(%(account_id)s, {LANGUAGE}, {text})))"


def weighed_terms_sql(asked: str) -> str:
    """Return a SELECT of the terms of a question, at most 32, best first.

    Columns: `term`, `docs`, `weight` (including the inverse document frequency) and `selects`. `asked` selects `term`
    and `weight` and may repeat a term. The best terms select, as long as they match at most 3,000 memories together;
    the first one always does. Terms that no memory of the account holds come last, without those of a weight below 1.
    """
    return f"""
        SELECT term, docs, weight, docs > 0 AND (place = 1 OR matches <= {MAX_MATCHES}) AS selects
        FROM (
            SELECT term, docs, weight, row_number() OVER best AS place, sum(docs) OVER best AS matches
            FROM (
                SELECT term, held.docs, asked.weight
                    * ln(1 + (greatest(corpus.docs - held.docs, 0) + 0.5::float8) / (held.docs + 0.5::float8)) AS weight
                FROM (SELECT term, max(weight)::float8 AS weight FROM ({asked}) AS every GROUP BY term) AS asked
                CROSS JOIN ({CORPUS}) AS corpus
                CROSS JOIN LATERAL (
                    SELECT greatest(sum(docs), 0)::bigint AS docs FROM memory_terms AS counted
                    WHERE counted.account_id = %(account_id)s AND counted.term = asked.term
                ) AS held WHERE held.docs > 0 OR asked.weight >= 1
            ) AS weighed
            WINDOW best AS (ORDER BY docs > 0 DESC, weight DESC, term COLLATE "C" ROWS UNBOUNDED PRECEDING)
        ) AS ranked WHERE place <= {MAX_TERMS} ORDER BY place"""


def term_params(analysis: QueryAnalysis) -> dict[str, Any]:
    """Return the parameters of `bm25_of_terms_sql`, `term_scores_sql` and the retriever."""
    terms = analysis.terms
    return {
        "terms": [quote_lexeme(term.lexeme) for term in terms],
        "weights": [term.weight for term in terms],
        "contents": [term.is_content for term in terms],
        "subjects": [term.is_subject for term in terms],
        "selective": " | ".join(quote_lexeme(term.lexeme) for term in terms if term.selects),
        "every": " | ".join(quote_lexeme(term.lexeme) for term in terms),
        "phrases": list(analysis.phrases),
        "average": max(analysis.tokens / analysis.docs, 1.0) if analysis.docs > 0 else 1.0,
    }


def are_all_common(terms: Sequence[Term]) -> bool:
    """Return True if each selecting term is in more memories of the account than are scored."""
    selecting = [term.docs for term in terms if term.selects]
    return bool(selecting) and min(selecting) > MAX_SCORED


def quote_lexeme(lexeme: str) -> str:
    """Return a lexeme as a literal of a tsquery, whatever characters it holds."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def term_scores_sql(shape: GatheringShape) -> str:
    """Return a SELECT of the scores of the current row.

    `bm25`; `content`, BM25 over the terms that are content; `naming`, the part of `content` due to subjects; `held`,
    the terms that the row holds, bit n for term n; `quoted`, the number of phrases that it holds.
    """
    return f"""
        SELECT bm25 * (1 + quoted) AS bm25, content * (1 + quoted) AS content, naming * (1 + quoted) AS naming, held,
            quoted
        FROM (
            SELECT coalesce(sum(score), 0)::float8 AS bm25,
                coalesce(sum(score) FILTER (WHERE is_content), 0)::float8 AS content,
                coalesce(sum(score) FILTER (WHERE is_content AND is_subject), 0)::float8 AS naming,
                coalesce(bit_or(bit), 0) AS held
            FROM (
                SELECT {bm25_of_term_sql("%(average)s::float8")} AS score, is_content, is_subject,
                    1::bigint << (place::int - 1) AS bit
                FROM asked WHERE memories.lexemes @@ term
            ) AS held
        ) AS scored CROSS JOIN ({phrases_held_sql(shape)}) AS phrases"""


def phrases_held_sql(shape: GatheringShape) -> str:
    """Return a SELECT of `quoted`, the number of the question's phrases in the current row."""
    if not shape.has_phrases:
        return "SELECT 0 AS quoted"
    return """SELECT count(*)::int AS quoted FROM unnest(%(phrases)s::tsquery[]) AS phrase
        WHERE memories.lexemes @@ phrase"""


def bm25_of_terms_sql(shape: GatheringShape) -> str:
    """Return the score of the current row as an expression over `term_params`."""
    score = bm25_sql("asked", "%(average)s::float8")
    return f"{score} * (1 + ({phrases_held_sql(shape)}))" if shape.has_phrases else score


def bm25_sql(asked: str, average: str) -> str:
    """Return BM25 of the current row as an expression over the average length and `asked`, rows of `term` and `weight`.

    tf / (tf + k) is written as 1 - k / (k + tf) and terms that are not in the row are skipped, because counting takes
    most of the time: each matching term is counted once.
    """
    return f"""(
        SELECT coalesce(sum({bm25_of_term_sql(average)}), 0)
        FROM {asked} WHERE memories.lexemes @@ term
    )::float8"""


def bm25_of_term_sql(average: str) -> str:
    """Return the share of one `term` with its `weight` in the score of the current row, which holds the term."""
    # as doubles: of decimals, each row would be converted
    k = f"({K1}::float8 * ({1 - B}::float8 + {B}::float8 * memories.token_count / {average}))"
    return f"weight * {K1 + 1}::float8 * (1 - {k} / ({k} + memory_term_frequency(memories.lexemes, term)))"


def best_by_words_sql(rows: str, score: str, *, limit: str, selective: str) -> str:
    """Return a SELECT of `id` and `score` of the rows that match the tsquery `selective`, best first.

    If more than MAX_SCORED match, only the first ones are scored: a word that all rows hold distinguishes none.
    """
    return f"""
        SELECT id, {score} AS score FROM (
            SELECT id, lexemes, token_count FROM memories
            WHERE {rows} AND lexemes @@ {selective} LIMIT {MAX_SCORED}
        ) AS memories ORDER BY score DESC, id LIMIT {limit}"""


def best_by_all_words_sql(rows: str, score: str, *, limit: str, selective: str, every: str) -> str:
    """Return the same SELECT, but if it finds less than the limit among few rows, search those rows by all words.

    Which words select depends on the account. Among the rows of a small agent in a large account, or behind a narrow
    filter, other words may be the ones that find. PostgreSQL never executes the branch it does not need (one-time
    filters on counts). The second branch reads the rows once, without the index over words, whose entries for common
    words are as long as the account is large.
    """
    return f"""
        WITH few AS MATERIALIZED ({best_by_words_sql(rows, score, limit=limit, selective=selective)}),
        seen AS MATERIALIZED (
            SELECT id, lexemes, token_count FROM memories
            WHERE {rows} AND (SELECT count(*) FROM few) < {limit} AND {every} IS NOT NULL
            LIMIT {MAX_EXHAUSTIVE_ROWS} + 1
        ),
        every AS MATERIALIZED (
            SELECT id, {score} AS score FROM seen AS memories
            WHERE lexemes @@ {every} AND (SELECT count(*) FROM seen) <= {MAX_EXHAUSTIVE_ROWS}
            ORDER BY score DESC, id LIMIT {limit}
        )
        SELECT id, score FROM every UNION ALL SELECT id, score FROM few WHERE NOT EXISTS (SELECT FROM every)"""


def bm25_ctes(*, rows: str) -> str:
    """Return CTEs that end with `scored` (id, score): best first, at most %(limit)s rows.

    `rows` is the condition on the memories to search. Parameters: account_id, query, limit. The CTEs are MATERIALIZED,
    or the planner would evaluate them for each row.
    """
    terms = "unnest((SELECT terms FROM question), (SELECT weights FROM question)) AS asked (term, weight)"
    score = bm25_sql(terms, "(SELECT average FROM question)")
    return f"""
    weighed AS MATERIALIZED (
        SELECT * FROM ({weighed_terms_sql(f"SELECT {lexemes_sql('%(query)s')} AS term, 1 AS weight")}) AS terms
        WHERE docs > 0
    ),
    question AS MATERIALIZED (
        SELECT array_agg(({QUOTED_TERM})::tsquery ORDER BY term) AS terms,
            array_agg(weight ORDER BY term) AS weights,
            string_agg({QUOTED_TERM}, ' | ') FILTER (WHERE selects)::tsquery AS selective,
            string_agg({QUOTED_TERM}, ' | ')::tsquery AS every, NOT bool_and(selects) AS is_cut,
            (SELECT greatest(tokens / greatest(docs, 1), 1) FROM ({CORPUS}) AS corpus) AS average
        FROM weighed
    ),
    scored AS MATERIALIZED ({
        best_by_all_words_sql(
            rows,
            score,
            limit="%(limit)s",
            selective="(SELECT selective FROM question)",
            every="(SELECT every FROM question WHERE is_cut)",
        )
    })"""


class LexicalRetriever(Retriever):
    """Finds memories by words: BM25 over the most selective of the question's terms."""

    name = "lexical"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        return bool(analysis.terms)

    def to_sql(self, visible: VisibleRows) -> str:
        shape, score, limit = visible.shape, bm25_of_terms_sql(visible.shape), "%(candidates)s"
        selective, every = "%(selective)s::tsquery", "%(every)s::tsquery"
        filters = (
            shape.owner.has_agent,
            shape.owner.has_user,
            shape.kinds,
            shape.scopes,
            shape.has_contexts,
            shape.has_types,
        )
        if shape.is_cut and any((*filters, shape.has_since, shape.has_until)):
            return best_by_all_words_sql(visible.rows, score, limit=limit, selective=selective, every=every)
        return best_by_words_sql(visible.rows, score, limit=limit, selective=selective)


LEXICAL = LexicalRetriever()


# account by account, since lexemes begin with their account, and so does every index
ASKED_WORDS = f"""
    SELECT accounts.id AS account_id, (
        SELECT string_agg({QUOTED_TERM}, ' & ')::tsquery
        -- without the further forms of a word, which have no positions
        FROM unnest(memory_lexemes(accounts.id, accounts.language, %s)) AS word (term, positions, weights)
        WHERE positions IS NOT NULL
    ) AS words
    FROM accounts"""

MATCHING_IDS = f"""
    WITH asked AS MATERIALIZED ({ASKED_WORDS})
    SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.lexemes @@ asked.words
    UNION SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.conversation_id = %s
    UNION SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.agent_id = %s
    UNION SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.user_id = %s"""


def has_words_or_ids(text: str, *, account_id: UUID | None) -> Q:
    """Return the condition on memories that hold all words of a text, or whose conversation, agent or user it names.

    `account_id` None searches all accounts. The words of one account are looked up first, in a statement of their own:
    PostgreSQL then knows how common they are, and reads a list in its order if they are.
    """
    if account_id is None:
        return Q(pk__in=RawSQL(MATCHING_IDS, [text, text, text, text]))  # noqa: S611 - a constant with parameters
    named = Q(conversation_id=text) | Q(agent_id=text) | Q(user_id=text)
    found = fetch_rows(f"SELECT words::text FROM ({ASKED_WORDS} WHERE accounts.id = %s) AS asked", [text, account_id])
    words = next((words for (words,) in found if words), None)
    return named | Q(HoldsWords(words)) if words else named


class HoldsWords(Func):
    """True for a memory whose lexemes, which are no field of the model, match a tsquery given as a text."""

    output_field = BooleanField()

    def __init__(self, words: str) -> None:
        super().__init__(F("id"))
        self.words = words

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> tuple[str, tuple[str, ...]]:
        """Return the comparison, with the alias that the table of the rows has in the statement."""
        row: Any = self.source_expressions[0]
        return f"{compiler.quote_name_unless_alias(row.alias)}.lexemes @@ %s::tsquery", (self.words,)


SOME_MATCHING_IDS = f"""
    WITH asked AS MATERIALIZED ({ASKED_WORDS} WHERE %s::uuid[] IS NULL OR accounts.id = ANY(%s::uuid[]))
    SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.lexemes @@ asked.words
    WHERE m.kind = ANY(%s::text[]) LIMIT %s"""


def find_ids_by_words(
    text: str, *, accounts: Collection[UUID] | None, kinds: Collection[str], limit: int
) -> list[UUID]:
    """Return the ids of at most `limit` memories of these kinds that hold all words of a text, in no order.

    `accounts` None searches all of them. One statement.
    """
    given = None if accounts is None else list(accounts)
    return [id_ for (id_,) in fetch_rows(SOME_MATCHING_IDS, [text, given, given, list(kinds), limit])]
