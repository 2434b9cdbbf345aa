"""Query analysis: one statement before the search that weighs the question's terms and finds the entities it names.

It also reads the lineage of the conversation, open goals and the user's profile. The result decides the text of the
gathering statement: which terms select, whether there is an entity to walk from, whether there is a vector index.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any
from uuid import UUID

from django.conf import settings

from memory.identity import name_digests
from memory.models import Kind, Memory
from memory.owner import Owner
from memory.retrieval.candidates import OpenGoal
from memory.retrieval.plans import QueryAnalysis, RecallContext, Term
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.lexical import (
    CORPUS,
    EXPANSION_WEIGHT,
    LANGUAGE,
    NAME_WEIGHT,
    QUOTED_TERM,
    lexemes_sql,
    weighed_terms_sql,
)
from memory.retrieval.retrievers.vector import IS_OF_FORMER_MODEL, index_name, opaque_sql
from memory.retrieval.statements import (
    SEARCHED_COLUMNS,
    STAND_INS,
    NumberedStatement,
    OwnerShape,
    Sql,
    memory_by_id_sql,
    owner_shape,
    where_sql,
)
from memory.retrieval.tasks import keys_of_owned
from memory.retrieval.visibility import visibility_filter

MAX_GOALS = 20
MAX_LINEAGE = 50
MAX_TURN_MESSAGES = 50
"""The last messages among which the user's last one is searched for. Without one, all of these are the current turn."""
MAX_TURN_RECORDS = 5
"""The latest records of a conversation that may belong to the current request."""
MAX_ENTITIES = 20
MAX_NAMES = 100
MAX_PENDING = 1_000
"""Memories without a vector that are looked at, of the agent and of the account each."""

# one call for all three texts, since each mention of the function parses its body again
ASKED = f"""
    SELECT {lexemes_sql("said")} AS term, weight FROM (VALUES
        (%(text)s::text, 1.0), (%(names)s::text, {NAME_WEIGHT}), (%(expansions)s::text, {EXPANSION_WEIGHT})
    ) AS asked (said, weight)"""

# long runs of characters are split the way `memory_lexemes` splits them
ASKED_TEXT = r"""
    regexp_replace(concat_ws(' ', %(text)s::text, %(names)s::text, %(expansions)s::text), '(\S{100})', '\1 ', 'g')"""
STOP_WORDS = f"""
    SELECT memory_folded(word) FROM (
        SELECT unnest(tsvector_to_array(to_tsvector(('public.memory_' || {LANGUAGE})::regconfig, {ASKED_TEXT})))
        EXCEPT SELECT unnest(tsvector_to_array(to_tsvector({LANGUAGE}::regconfig, {ASKED_TEXT})))
    ) AS dropped (word)"""
"""Lexemes of the question that the language's own configuration drops, without accents."""

# the first six characters of a lexeme belong to the account. A stop word may have a stem that is none (does, why), and
# the stem of another word may be one (les)
IS_CONTENT = f"""NOT substr(term, 7) IN ({STOP_WORDS})
    AND to_tsvector({LANGUAGE}::regconfig, substr(term, 7)) <> ''"""
IS_SUBJECT = f"""term IN (SELECT {lexemes_sql("%(subjects)s")})"""

TERMS = f"""
    (SELECT json_agg(json_build_array(term, docs, weight, selects, {IS_CONTENT}, {IS_SUBJECT}))
        FROM ({weighed_terms_sql(ASKED)}) AS weighed) AS terms"""

SIZE = f"""
    (SELECT json_build_array(docs, tokens) FROM ({CORPUS}) AS counted) AS corpus"""

PHRASES = f"""
    (SELECT json_agg(words) FROM unnest(%(phrases)s::text[]) AS phrase CROSS JOIN LATERAL (
        SELECT string_agg({QUOTED_TERM}, ' <-> ' ORDER BY place) AS words
        FROM unnest(memory_lexemes(%(account_id)s, {LANGUAGE}, phrase)) AS word (term, places, weights),
            unnest(places) AS place
    ) AS quoted WHERE words IS NOT NULL) AS phrases"""

ENTITIES = f"""
    (SELECT array_agg(id) FROM (
        SELECT id FROM (
            SELECT entity_id FROM entity_names
            WHERE account_id = %(account_id)s AND name_digest = ANY(%(digests)s::text[])
            UNION SELECT entity_id FROM entity_names
            WHERE account_id = %(account_id)s AND lower(name) = ANY(%(spelt)s::text[]){{owned}}
        ) AS called CROSS JOIN LATERAL {memory_by_id_sql("called.entity_id")}
        WHERE {{entities}} ORDER BY salience DESC, id LIMIT %(most_entities)s
    ) AS named) AS entities"""

OWNED = """
            UNION SELECT link.target_id FROM (
                SELECT id FROM memories WHERE {facts} AND kind = 'fact' AND status = 'active'
                    AND attribute > '' AND attribute = ANY(%(owned)s::text[])
                ORDER BY id LIMIT %(most_entities)s
            ) AS fact JOIN memory_links AS link
                ON link.account_id = %(account_id)s AND link.source_id = fact.id AND link.type = 'ABOUT'"""
"""What facts call the user's own: of "my sister" the entity that "The user's sister is Ana" is about."""

# the chain passes through conversations that the owner has no part in; what was said in them stays invisible
LINEAGE_CTE = f"""line (conversation_id, continues, depth, been, is_again) AS (
        SELECT conversation_id, continues, 0, ARRAY[conversation_id::text], false FROM ({{first}}) AS first
        UNION ALL
        SELECT former.conversation_id, former.continues, line.depth + 1, line.been || former.conversation_id::text,
            former.conversation_id = ANY(line.been)
        FROM line CROSS JOIN LATERAL (
            SELECT conversation_id, continues FROM conversations
            WHERE account_id = %(account_id)s AND conversation_id = line.continues LIMIT 1
        ) AS former
        WHERE line.depth < {MAX_LINEAGE} AND NOT line.is_again
    )"""
"""The conversations that those in `first` resume, by depth. Rows that close a cycle have `is_again`.

A distributed database refuses CYCLE.
"""
ACTIVE = """SELECT conversation_id, continues FROM conversations
    WHERE account_id = %(account_id)s AND conversation_id = %(conversation_id)s"""
LINEAGE = f"""
    (WITH RECURSIVE {LINEAGE_CTE.format(first=ACTIVE)}
    SELECT json_agg(conversation_id ORDER BY depth) FROM line WHERE depth > 0 AND NOT is_again) AS lineage"""

# the current request: messages from the user's last one on, and structured turns about them
FIRST_OF_TURN = f"""coalesce(
    (SELECT max("index") FROM memories WHERE account_id = %(account_id)s AND kind = 'turn' AND log_id = active.id
        AND role = 'user' AND "index" >= active.turn_count - {MAX_TURN_MESSAGES}),
    greatest(active.turn_count - {MAX_TURN_MESSAGES}, 0))"""
CURRENT_TURN = f"""
    (SELECT json_build_array(first_of_turn, (
        SELECT array_agg(id) FROM (
            SELECT id, status, last_index FROM turn_records
            WHERE account_id = %(account_id)s AND conversation_id = %(conversation_id)s
            ORDER BY number DESC LIMIT {MAX_TURN_RECORDS}
        ) AS latest WHERE status = 'open' OR last_index >= first_of_turn
    )) FROM (
        SELECT {FIRST_OF_TURN} AS first_of_turn FROM conversations AS active
        WHERE active.account_id = %(account_id)s AND active.conversation_id = %(conversation_id)s
    ) AS active) AS at_hand"""

OPEN_GOALS = """
    (SELECT json_agg(goal) FROM (
        SELECT id, text AS description, status, priority, deadline
        FROM memories WHERE {goals} AND kind = 'goal' AND completed_at IS NULL
        ORDER BY priority DESC, deadline ASC NULLS LAST, id LIMIT %(goals)s
    ) AS goal) AS goals"""

PROFILE = """
    (SELECT json_build_object('user_id', user_id, 'preferences', preferences, 'expertise_areas', expertise_areas,
        'communication_style', communication_style)
        FROM user_profiles WHERE account_id = %(account_id)s AND user_id = %(user_id)s) AS profile"""

PENDING = f"SELECT {SEARCHED_COLUMNS} FROM memories WHERE account_id = %(account_id)s AND embed_after IS NOT NULL"
# ordered like the index: the planner might expect so many pending rows that it reads the table to find one
FIRST_PENDING = f"({PENDING} ORDER BY agent_id LIMIT {MAX_PENDING})"
OWN_PENDING = f"({PENDING} AND agent_id >= %(agent_id)s ORDER BY agent_id LIMIT {MAX_PENDING})"

INDEXED = (
    "NULL::int AS indexed_rows"
    if settings.DATABASE_IS_DISTRIBUTED
    else """
    (SELECT greatest(reltuples, 1)::int FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
        WHERE pg_class.oid = to_regclass(%(vector_index)s) AND indisvalid) AS indexed_rows"""
)
"""Rows of the index of a large account, which a distributed database has on the shard alone."""

PARTITION = (
    "NULL::text AS partition"
    if settings.DATABASE_IS_DISTRIBUTED
    else """
    (SELECT CASE WHEN has_table_privilege(tableoid, 'SELECT') THEN tableoid::regclass::text END FROM memory_vectors
        WHERE account_id = %(account_id)s ORDER BY memory_id LIMIT 1) AS partition"""
)
"""The partition with the account's vectors, by an index that has their order, if it may be read by itself.

A distributed database has shards. `manage.py migrate` lets the application's role read partitions.
"""

HAS_PASSAGES = """
    EXISTS (SELECT FROM memory_vectors
        WHERE account_id = %(account_id)s AND model = %(model)s AND passage > 0) AS has_passages"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisShape:
    """The properties of a question that decide the text of the analysis statement."""

    kinds: tuple[str, ...]
    has_text: bool
    has_phrases: bool
    has_names: bool
    has_owned: bool
    has_conversation: bool
    has_vector: bool


def analyze_query(owner: Owner, query: Query, context: RecallContext) -> QueryAnalysis:
    """Analyze the question for this owner. One statement."""
    digests = digests_of_names(owner, [*query.names, *query.mentions])
    owned = keys_of_owned(query.text, user_id=owner.user_id)
    shape = AnalysisShape(
        kinds=tuple(sorted(query.kinds)),
        has_text=query.has_words and bool(query.text.strip()),
        has_phrases=bool(query.phrases),
        has_names=bool(digests or owned),
        has_owned=bool(owned),
        has_conversation=bool(query.conversation_id),
        has_vector=query.vector is not None,
    )
    statement = build_analysis_statement(owner_shape(owner), shape)
    values = {
        "text": query.text,
        "names": " ".join(query.names),
        "expansions": " ".join(query.expansions),
        "subjects": " ".join(query.subjects),
        "phrases": list(query.phrases),
        "digests": digests,
        "spelt": [name.lower() for name in [*query.names, *query.mentions][:MAX_NAMES]],
        "owned": owned,
        "most_entities": MAX_ENTITIES,
        "conversation_id": query.conversation_id,
        "goals": MAX_GOALS,
        "model": query.model,
        "vector_index": index_name(owner.account_id, model=query.model, width=query.width, is_nested=query.is_nested),
    }
    [row] = statement.read_dicts(owner, values, now=context.now)
    return make_analysis(row)


def digests_of_names(owner: Owner, names: Sequence[str]) -> list[str]:
    """Return the digests of names among the user's knowledge, the agent's own and the account's."""
    account = Owner(account_id=owner.account_id)
    holders = (owner, replace(account, agent_id=owner.agent_id), account)
    return sorted(name_digests(holders, names[:MAX_NAMES]))


@lru_cache(maxsize=512)
def build_analysis_statement(owner: OwnerShape, shape: AnalysisShape) -> NumberedStatement:
    visible = visibility_filter(owner, shape.kinds)
    goals = where_sql(knowledge_rows(owner.owner, Kind.GOAL), prefix="g")
    entities = where_sql(knowledge_rows(owner.owner, Kind.ENTITY), prefix="e")
    facts = where_sql(knowledge_rows(owner.owner, Kind.FACT), prefix="f")
    owned = OWNED.format(facts=facts.text) if shape.has_owned else ""
    parts = chain(
        [SIZE],
        [TERMS] if shape.has_text else [],
        [PHRASES] if shape.has_phrases else [],
        [ENTITIES.format(entities=entities.text, owned=owned)] if shape.has_names else [],
        [LINEAGE, CURRENT_TURN] if shape.has_conversation else [],
        [OPEN_GOALS.format(goals=goals.text)],
        [PROFILE] if owner.has_user else [],
        [has_pending_sql(visible.rows, has_agent=owner.has_agent, has_vector=shape.has_vector)],
        [INDEXED, PARTITION, HAS_PASSAGES] if shape.has_vector else [],
    )
    ctes = f"WITH {visible.ctes.removesuffix(',')}" if visible.ctes else ""
    text = f"{ctes} SELECT {', '.join(parts)}"
    # planning takes three times as long as running it. A kept plan locks every partition of the vectors and reads one
    parameters = {**visible.parameters, **goals.parameters, **entities.parameters, **facts.parameters}
    return Sql(text=text, parameters=parameters).numbered(plans_once=True)


def has_pending_sql(rows: str, *, has_agent: bool, has_vector: bool) -> str:
    """Return the column that says if any of these rows waits for its vector, or may have none of the query's model.

    If others have more than MAX_PENDING pending rows, one of theirs that the owner sees may be overlooked, and with a
    filter also one of the agent's own.
    """
    pending = f"{OWN_PENDING} UNION ALL {FIRST_PENDING}" if has_agent else FIRST_PENDING
    former = f" OR {IS_OF_FORMER_MODEL}" if has_vector else ""
    return f"EXISTS (SELECT FROM ({pending}) AS memories WHERE {opaque_sql(rows)}){former} AS has_pending"


def knowledge_rows(owner: Owner, kind: Kind) -> Any:
    return Memory.objects.visible_to(owner, kind).in_channels(owner).recallable(STAND_INS["now"])


def make_analysis(row: dict[str, Any]) -> QueryAnalysis:
    docs, tokens = row["corpus"]
    first_of_turn, records = row.get("at_hand") or (None, None)
    terms = [Term(**dict(zip(Term.__dataclass_fields__, each, strict=True))) for each in row.get("terms") or []]
    return QueryAnalysis(
        terms=[term for term in terms if term.docs],
        unknown=[term for term in terms if not term.docs],
        phrases=row.get("phrases") or [],
        docs=int(docs),
        tokens=int(tokens),
        entities=row.get("entities") or [],
        lineage=row.get("lineage") or [],
        first_of_turn=first_of_turn,
        records_of_turn=[UUID(record_id) for record_id in records or []],
        goals=[make_open_goal(goal) for goal in row["goals"] or []],
        profile=row.get("profile"),
        has_pending=row["has_pending"],
        indexed_rows=row.get("indexed_rows") or 0,
        has_passages=row.get("has_passages", False),
        partition=row.get("partition") or "",
    )


def make_open_goal(goal: dict[str, Any]) -> OpenGoal:
    deadline = goal["deadline"] and datetime.fromisoformat(goal["deadline"])
    return OpenGoal(**goal | {"id": UUID(goal["id"]), "deadline": deadline})
