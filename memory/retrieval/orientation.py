"""Finding one's bearings before a search, in one statement: what the question's words are worth, whom it names, where
the conversation comes from, what the owner is working on.

What is read here decides the next statement: which words select, whether a walk begins anywhere, whose index serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any
from uuid import UUID

from memory.identity import name_digest
from memory.models import Kind, Memory
from memory.owner import Owner
from memory.retrieval.candidates import OpenGoal
from memory.retrieval.lexical import (
    CORPUS,
    EXPANSION_WEIGHT,
    LANGUAGE,
    NAME_WEIGHT,
    QUOTED_TERM,
    lexemes_of,
    weighed_terms,
)
from memory.retrieval.plans import Moment, Orientation, Term
from memory.retrieval.queries import Query
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, Statement, bind_owner, numbered, shape_of, where_of
from memory.retrieval.vectors import name_of_index, opaque
from memory.retrieval.visibility import walls_of

GOALS = 20
LONGEST_LINEAGE = 50
MESSAGES_OF_A_TURN = 50
"""What the user said last is looked for in so many of a conversation's messages; without it all of them count."""
RECORDS_OF_A_TURN = 5
"""The latest of a conversation, open ones of which are of the request at hand."""
MOST_ENTITIES = 20
MOST_NAMES = 100
MOST_PENDING = 1_000
"""Of those that wait for their vector: so many of the agent's are looked at, and of the account's."""

# one call for all three: each place that names the function takes it through the parser anew
ASKED = f"""
    SELECT {lexemes_of("said")} AS term, weight FROM (VALUES
        (%(text)s::text, 1.0), (%(names)s::text, {NAME_WEIGHT}), (%(expansions)s::text, {EXPANSION_WEIGHT})
    ) AS asked (said, weight)"""

# long runs are broken as `memory_lexemes` breaks them
SAID = r"""
    regexp_replace(concat_ws(' ', %(text)s::text, %(names)s::text, %(expansions)s::text), '(\S{100})', '\1 ', 'g')"""
STOP_WORDS = f"""
    SELECT unnest(tsvector_to_array(to_tsvector(('public.memory_' || {LANGUAGE})::regconfig, {SAID})))
    EXCEPT SELECT unnest(tsvector_to_array(to_tsvector({LANGUAGE}::regconfig, {SAID})))"""
"""What the language's own configuration leaves out of the question."""

# a lexeme has six signs of the account's before it. A stop word may have a stem that is none (does, why), and a word
# that is not listed one that is (les)
IS_CONTENT = f"""NOT substr(term, 7) IN ({STOP_WORDS})
    AND to_tsvector({LANGUAGE}::regconfig, substr(term, 7)) <> ''"""
IS_SUBJECT = f"""term IN (SELECT {lexemes_of("%(subjects)s")})"""

TERMS = f"""
    (SELECT json_agg(json_build_array(term, docs, weight, selects, {IS_CONTENT}, {IS_SUBJECT}))
        FROM ({weighed_terms(ASKED)}) AS weighed) AS terms,
    (SELECT json_build_array(docs, tokens) FROM ({CORPUS}) AS counted) AS corpus"""

PHRASES = f"""
    (SELECT json_agg(words) FROM unnest(%(phrases)s::text[]) AS phrase CROSS JOIN LATERAL (
        SELECT string_agg({QUOTED_TERM}, ' <-> ' ORDER BY place) AS words
        FROM unnest(memory_lexemes(%(account_id)s, {LANGUAGE}, phrase)) AS word (term, places, weights),
            unnest(places) AS place
    ) AS quoted WHERE words IS NOT NULL) AS phrases"""

ENTITIES = """
    (SELECT array_agg(id) FROM (
        SELECT id FROM memories WHERE {entities} AND id IN (
            SELECT entity_id FROM entity_names
            WHERE account_id = %(account_id)s AND name_digest = ANY(%(digests)s::text[])
            UNION ALL SELECT entity_id FROM entity_names
            WHERE account_id = %(account_id)s AND lower(name) = ANY(%(spelt)s::text[])
        ) ORDER BY salience DESC, id LIMIT %(most_entities)s
    ) AS named) AS entities"""

# names of conversations that the owner may have no part in: what was said in them stays behind the walls
LINEAGE = """
    (WITH RECURSIVE line (conversation_id, continues, depth) AS (
        SELECT conversation_id, continues, 0 FROM conversations
        WHERE account_id = %(account_id)s AND conversation_id = %(conversation_id)s
        UNION ALL
        SELECT former.conversation_id, former.continues, depth + 1 FROM line CROSS JOIN LATERAL (
            SELECT conversation_id, continues FROM conversations
            WHERE account_id = %(account_id)s AND conversation_id = line.continues LIMIT 1
        ) AS former
        WHERE depth < %(longest_lineage)s
    ) CYCLE conversation_id SET is_again USING been
    SELECT json_agg(conversation_id ORDER BY depth) FROM line WHERE depth > 0 AND NOT is_again) AS lineage"""

# the request at hand: from what the user said last on, and what is recorded of it
FIRST_OF_TURN = f"""coalesce(
    (SELECT max("index") FROM turns WHERE log_id = active.id AND role = 'user'
        AND "index" >= active.turn_count - {MESSAGES_OF_A_TURN}),
    greatest(active.turn_count - {MESSAGES_OF_A_TURN}, 0))"""
AT_HAND = f"""
    (SELECT json_build_array(first_of_turn, (
        SELECT array_agg(id) FROM (
            SELECT id, status, last_index FROM turn_records
            WHERE account_id = %(account_id)s AND conversation_id = %(conversation_id)s
            ORDER BY number DESC LIMIT {RECORDS_OF_A_TURN}
        ) AS latest WHERE status = 'open' OR last_index >= first_of_turn
    )) FROM (
        SELECT {FIRST_OF_TURN} AS first_of_turn FROM conversations AS active
        WHERE active.account_id = %(account_id)s AND active.conversation_id = %(conversation_id)s
    ) AS active) AS at_hand"""

GOALS_OPEN = """
    (SELECT json_agg(goal) FROM (
        SELECT id, text AS description, status, priority, deadline
        FROM memories JOIN goals ON memory_ptr_id = id WHERE {goals} AND completed_at IS NULL
        ORDER BY priority DESC, deadline ASC NULLS LAST, id LIMIT %(goals)s
    ) AS goal) AS goals"""

PROFILE = """
    (SELECT json_build_object('user_id', user_id, 'preferences', preferences, 'expertise_areas', expertise_areas,
        'communication_style', communication_style)
        FROM user_profiles WHERE account_id = %(account_id)s AND user_id = %(user_id)s) AS profile"""

WAITING = "SELECT * FROM memories WHERE account_id = %(account_id)s AND embed_after IS NOT NULL"
# in the order of the index: the planner might think that so many wait that it reads the table until it met one
FIRST_WAITING = f"({WAITING} ORDER BY agent_id LIMIT {MOST_PENDING})"
OWN_WAITING = f"({WAITING} AND agent_id >= %(agent_id)s ORDER BY agent_id LIMIT {MOST_PENDING})"

INDEXED = """
    (SELECT greatest(reltuples, 1)::int FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
        WHERE pg_class.oid = to_regclass(%(vector_index)s) AND indisvalid) AS indexed_rows"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What there is to find out."""

    kinds: tuple[str, ...]
    has_text: bool
    has_phrases: bool
    has_names: bool
    has_conversation: bool
    has_vector: bool


def orient(owner: Owner, query: Query, moment: Moment) -> Orientation:
    """One statement."""
    digests = digests_of(owner, [*query.names, *query.mentions])
    asks = Asks(
        kinds=tuple(sorted(query.kinds)),
        has_text=query.has_words and bool(query.text.strip()),
        has_phrases=bool(query.phrases),
        has_names=bool(digests),
        has_conversation=bool(query.conversation_id),
        has_vector=query.vector is not None,
    )
    statement = compose(shape_of(owner), asks)
    values = {
        **bind_owner(owner, now=moment.now),
        "text": query.text,
        "names": " ".join(query.names),
        "expansions": " ".join(query.expansions),
        "subjects": " ".join(query.subjects),
        "phrases": list(query.phrases),
        "digests": digests,
        "spelt": [name.lower() for name in [*query.names, *query.mentions][:MOST_NAMES]],
        "most_entities": MOST_ENTITIES,
        "conversation_id": query.conversation_id,
        "longest_lineage": LONGEST_LINEAGE,
        "goals": GOALS,
        "vector_index": name_of_index(
            owner.account_id, model=query.model, width=query.width, is_nested=query.is_nested
        ),
    }
    columns, [row] = statement.read(values)
    return make_orientation(dict(zip(columns, row, strict=True)))


def digests_of(owner: Owner, names: Sequence[str]) -> list[str]:
    """Of each name, as the user's knowledge and as the agent's own has it."""
    holders = {owner, Owner(account_id=owner.account_id, agent_id=owner.agent_id)}
    return sorted({name_digest(holder, name) for holder in holders for name in names[:MOST_NAMES]})


@lru_cache(maxsize=512)
def compose(shape: OwnerShape, asks: Asks) -> Statement:
    walls = walls_of(shape, asks.kinds)
    goals = where_of(knowledge_of(shape.owner, Kind.GOAL), prefix="g")
    entities = where_of(knowledge_of(shape.owner, Kind.ENTITY), prefix="e")
    parts = chain(
        [TERMS] if asks.has_text else [],
        [PHRASES] if asks.has_phrases else [],
        [ENTITIES.format(entities=entities.text)] if asks.has_names else [],
        [LINEAGE, AT_HAND] if asks.has_conversation else [],
        [GOALS_OPEN.format(goals=goals.text)],
        [PROFILE] if shape.has_user else [],
        [pending_of(walls.rows, has_agent=shape.has_agent)],
        [INDEXED] if asks.has_vector else [],
    )
    ctes = f"WITH {walls.ctes.removesuffix(',')}" if walls.ctes else ""
    text = f"{ctes} SELECT {', '.join(parts)}"
    return numbered(Sql(text=text, parameters={**walls.parameters, **goals.parameters, **entities.parameters}))


def pending_of(rows: str, *, has_agent: bool) -> str:
    """Whether any of these rows waits for its vector, as far as it is worth looking: where others have more waiting
    than MOST_PENDING, one of theirs that the owner sees may be overlooked, and with a filter one of the agent's own."""
    waiting = f"{OWN_WAITING} UNION ALL {FIRST_WAITING}" if has_agent else FIRST_WAITING
    return f"EXISTS (SELECT FROM ({waiting}) AS memories WHERE {opaque(rows)}) AS has_pending"


def knowledge_of(owner: Owner, kind: Kind) -> Any:
    return Memory.objects.visible_to(owner, kind).in_channels(owner).recallable(STAND_IN["now"])


def make_orientation(row: dict[str, Any]) -> Orientation:
    docs, tokens = row.get("corpus") or (0, 0)
    first_of_turn, records = row.get("at_hand") or (None, None)
    return Orientation(
        terms=[
            Term(lexeme=lexeme, docs=docs, weight=weight, selects=selects, is_content=is_content, is_subject=is_subject)
            for lexeme, docs, weight, selects, is_content, is_subject in row.get("terms") or []
        ],
        phrases=row.get("phrases") or [],
        docs=int(docs),
        tokens=int(tokens),
        entities=row.get("entities") or [],
        lineage=row.get("lineage") or [],
        first_of_turn=first_of_turn,
        records_of_turn=[UUID(record_id) for record_id in records or []],
        goals=[make_goal(goal) for goal in row["goals"] or []],
        profile=row.get("profile"),
        has_pending=row["has_pending"],
        indexed_rows=row.get("indexed_rows") or 0,
    )


def make_goal(goal: dict[str, Any]) -> OpenGoal:
    deadline = goal["deadline"]
    return OpenGoal(
        id=UUID(goal["id"]),
        description=goal["description"],
        status=goal["status"],
        priority=goal["priority"],
        deadline=None if deadline is None else datetime.fromisoformat(deadline),
    )
