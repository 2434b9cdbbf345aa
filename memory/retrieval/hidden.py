"""A search for memories near a question that an owner's recall passes over, whoever may see them, for staff.

They are looked for among the nearest vectors of the whole account, and among the memories with the question's words.
Hidden is what the owner does not see, what is archived, quarantined, buried or expired, facts that are not true or not
believed at the time asked for, and what the question leaves out (`Query.without`).
"""

from functools import lru_cache

from memory.retrieval.kind_searches import TRUE_AND_BELIEVED_NOW
from memory.retrieval.retrievers.lexical import MAX_MATCHES
from memory.retrieval.statements import NumberedStatement, OwnerShape, Sql
from memory.retrieval.visibility import visibility_filter

MAX_HIDDEN = 20
MAX_NEAR = 300
"""Vectors, and memories with the question's words, among which hidden ones are looked for."""
MIN_SIMILARITY = 0.3
"""Memories without a word of the question are found from this similarity on."""
MAX_TEXT_CHARACTERS = 300

HIDDEN_COLUMNS = f"""memories.id, memories.kind, left(memories.text, {MAX_TEXT_CHARACTERS}) AS text, memories.agent_id,
    memories.user_id, memories.channel, memories.conversation_id, memories.archived, memories.quarantined,
    memories.buried, memories.expires_at, memories.status, memories.recorded_at, memories.retracted_at,
    memories.valid_from, memories.valid_to"""

NEAR = f"""
    SELECT memory_id AS id, 1 - min(vector <=> %(vector)s::halfvec) AS similarity, false AS has_words
    FROM memory_vectors
    WHERE account_id = %(account_id)s AND model = %(model)s AND width = {{width}}
        AND NOT memory_id = ANY(%(known)s::uuid[])
    GROUP BY memory_id ORDER BY similarity DESC, memory_id LIMIT {MAX_NEAR}"""

WORDED = f"""
    SELECT id, NULL::float8 AS similarity, true AS has_words FROM (
        SELECT id, lexemes FROM memories
        WHERE account_id = %(account_id)s AND lexemes @@ %(words)s::tsquery AND NOT id = ANY(%(known)s::uuid[])
        LIMIT {MAX_MATCHES}
    ) AS matched ORDER BY ts_rank(lexemes, %(words)s::tsquery) DESC, id LIMIT {MAX_NEAR}"""


@lru_cache(maxsize=64)
def build_hidden_statement(shape: OwnerShape, width: int) -> NumberedStatement:
    """Return the statement that finds what an owner's recall passes over; by words alone for a width of 0."""
    visible = visibility_filter(shape, ())
    near = f"UNION ALL ({NEAR.format(width=width)})" if width else ""
    is_true = f"(memories.kind <> 'fact' OR {TRUE_AND_BELIEVED_NOW.format(own='memories')})"
    text = f"""
        WITH {visible.ctes} found AS MATERIALIZED (
            SELECT id, max(similarity) AS similarity, bool_or(has_words) AS has_words
            FROM (({WORDED}) {near}) AS each GROUP BY id
        )
        SELECT {HIDDEN_COLUMNS}, found.similarity FROM found JOIN memories
            ON memories.account_id = %(account_id)s AND memories.id = found.id
        WHERE (found.has_words OR found.similarity >= {MIN_SIMILARITY})
            AND (memories.id = ANY(%(without)s::uuid[]) OR NOT coalesce({visible.rows} AND {is_true}, false))
        ORDER BY found.similarity DESC NULLS LAST, memories.id LIMIT {MAX_HIDDEN}"""
    return Sql(text=text, parameters=visible.parameters).numbered()
