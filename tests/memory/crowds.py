"""An account with thousands of memories of all kinds, linked, named and with vectors, by a few statements."""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from memory.identity import name_digest
from memory.models import Account
from memory.owner import Owner
from tests.memory.episodes import MODEL, NOW, WIDTH
from tests.memory.words import count_words

AGENT_ROWS = 1_000
"""Of each agent, in turn; five in ten of them turns, two facts, two entities, one an episode."""
AGENT = "agent-{}"
NAME = "Name {}"
NUMBERED = "md5(%(account)s || ' ' || number)::uuid"

LOG = "md5(%(account)s || ' log ' || number / 100)::uuid"

OWN = {
    "index": {"turn": "number %% 100"},
    "role": {"turn": "'user'"},
    "model": {"turn": "''"},
    "client_id": {"turn": "''"},
    "log_id": {"turn": LOG},
    "confidence": {"fact": "1"},
    "certainty": {"fact": "''"},
    "temporal": {"fact": "'current'"},
    "status": {"fact": "'active'"},
    "recorded_at": {"fact": "%(now)s"},
    "belief_number": {"fact": "1"},
    "key_decisions": {"episode": "'[]'::jsonb"},
    "entities_mentioned": {"episode": "'[]'::jsonb"},
    "tools_called": {"episode": "'[]'::jsonb"},
    "name": {"turn": "''", "entity": "'Name ' || number"},
    "type": {"entity": "'thing'"},
    "aliases": {"entity": "'[]'::jsonb"},
    "description": {"entity": "''"},
    "properties": {"entity": "'{}'::jsonb"},
}
"""The SQL of the columns that not all kinds have, by kind."""


def of_kinds(values: Mapping[str, str]) -> str:
    """Return the SQL of a column that is NULL for other kinds."""
    cases = " ".join(f"WHEN '{kind}' THEN {value}" for kind, value in values.items())
    return f"CASE kind {cases} END"


MEMORIES = f"""
INSERT INTO memories (id, account_id, kind, identity, agent_id, user_id, channel, conversation_id, text, language,
    content_hash, token_count, salience, access_count, event_time, archived, quarantined, buried, pinned, source, trust,
    version, metadata, embed_attempts, embed_error, {", ".join(OWN)})
SELECT {NUMBERED}, %(account)s::uuid, kind, number, 'agent-' || number / %(agent_rows)s, '', '_global',
    CASE WHEN kind IN ('turn', 'episode') THEN 'c' || number / 100 ELSE '' END,
    CASE kind WHEN 'entity' THEN 'Name ' || number ELSE
        'word' || number %% 7 || ' word' || number %% 101 || ' word' || number %% 997 || ' word' || number END,
    '', '', 4, (number %% 97) / 100.0, 0, %(now)s - number * interval '1 minute', false, false, false, false, '', 1,
    1, '{{}}', 0, '', {", ".join(map(of_kinds, OWN.values()))}
FROM generate_series(0, %(rows)s - 1) AS number CROSS JOIN LATERAL (
    SELECT (ARRAY['turn', 'fact', 'turn', 'entity', 'turn', 'episode', 'turn', 'fact', 'turn', 'entity'])
        [1 + number %% 10] AS kind
) AS drawn
"""

CONVERSATIONS = f"""
INSERT INTO conversations (id, account_id, conversation_id, agent_id, user_id, channel, title, continues,
    metadata, outcome, started_at, archived, turn_count, summarized_count, buffer_from, summary_attempts,
    summary_error, extracted_count, extract_attempts, extract_error, record_count)
SELECT {LOG}, %(account)s::uuid, 'c' || number / 100, 'agent-' || number / %(agent_rows)s, '', '_global', '', '',
    '{{}}', '', %(now)s, false, 100, 0, 0, 0, '', 0, 0, '', 0
FROM generate_series(0, %(rows)s - 1, 100) AS number
"""

REFERRING = (
    """INSERT INTO conversation_participants (id, account_id, conversation_id, agent_id)
    SELECT gen_random_uuid(), account_id, conversation_id, agent_id FROM conversations
    WHERE account_id = %(account)s""",
    """INSERT INTO fact_versions (id, account_id, fact_id, number, claim, confidence, temporal, recorded_at, reason,
        actor)
    SELECT gen_random_uuid(), account_id, id, 1, text, 1, 'current', %(now)s, 'learned', ''
    FROM memories WHERE account_id = %(account)s AND kind = 'fact'""",
    """INSERT INTO entity_names (id, account_id, entity_id, identity, name_digest, name)
    SELECT gen_random_uuid(), account_id, id, id::text, named.digest, text
    FROM memories JOIN unnest(%(names)s::text[], %(digests)s::text[]) AS named (name, digest) ON text = named.name
    WHERE account_id = %(account)s AND kind = 'entity'""",
    f"""INSERT INTO memory_vectors (id, memory_id, account_id, kind, agent_id, user_id, channel, conversation_id,
        event_time, live, model, width, vector)
    SELECT gen_random_uuid(), id, account_id, kind, agent_id, user_id, channel, conversation_id, event_time, true,
        '{MODEL}', {WIDTH},
        l2_normalize((SELECT array_agg(sin(identity::int * axis)) FROM generate_series(1, {WIDTH}) AS axis
        )::real[]::halfvec)
    FROM memories WHERE account_id = %(account)s""",
)

# a fact is about the entities two and eight before it, and derived from the turns around it, which mention the former
LINKS = """
INSERT INTO memory_links (id, account_id, source_id, target_id, type, weight, properties, created_at)
SELECT gen_random_uuid(), %(account)s::uuid, md5(%(account)s || ' ' || number + source)::uuid,
    md5(%(account)s || ' ' || number + target)::uuid, type, (number %% 10 + 1) / 10.0, '{}', %(now)s
FROM generate_series(0, %(rows)s - 10, 10) AS number CROSS JOIN (VALUES
    (1, 3, 'ABOUT'), (1, 9, 'ABOUT'), (1, 0, 'DERIVED_FROM'), (0, 3, 'MENTIONS'), (7, 9, 'ABOUT'),
    (7, 6, 'DERIVED_FROM'), (6, 9, 'MENTIONS'), (3, 9, 'KNOWS')
) AS link (source, target, type)
"""


def crowd(account: Account, *, rows: int) -> list[Owner]:
    """Store so many memories in the account, a thousand for each agent, and return the agents' owners."""
    owners = [Owner(account_id=account.id, agent_id=AGENT.format(number)) for number in range(rows // AGENT_ROWS)]
    named = [number for number in range(rows) if number % 10 in (3, 9)]
    given: dict[str, Any] = {
        "account": str(account.id),
        "rows": rows,
        "agent_rows": AGENT_ROWS,
        "now": NOW,
        "names": [NAME.format(number) for number in named],
        "digests": [name_digest(owners[number // AGENT_ROWS], NAME.format(number)) for number in named],
    }
    with connection.cursor() as cursor:
        cursor.execute(CONVERSATIONS, given)
        cursor.execute(MEMORIES, given)
        # or each key that refers to one is looked for in all of them, where the planner thinks there are none
        cursor.execute("ANALYZE memories")
        count_words(account)
        for statement in (*REFERRING, LINKS):
            cursor.execute(statement, given)
    return owners


def analyze() -> None:
    """Do what autovacuum does for the planner. Without catalogs: some are shared, and locked until the end."""
    with connection.cursor() as cursor:
        # an index of words is dearer than its table as long as new rows stand beside it, those of other tests as well
        cursor.execute("SELECT gin_clean_pending_list('memory_lexemes_gin')")
        tables = connection.introspection.table_names(cursor)
        cursor.execute(f"ANALYZE {', '.join(map(connection.ops.quote_name, tables))}")


def prefer_indexes() -> None:
    """Let the planner prefer indexes, since it may find it cheaper to read a small table whole."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL random_page_cost = 1.1")
