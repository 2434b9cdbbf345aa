"""Bulk writes of memories: one statement for the rows of a kind, with one parameter for each column.

Everything runs in the caller's transaction. A row whose account, kind and identity exist already is not stored again.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Field
from django.db.models.expressions import DatabaseDefault
from psycopg.pq import Format

from memory.models.memory import MemoryRow
from memory.models.statements import Embedding, HalfVectors, Ids, binary_cursor, execute_statement
from memory.owner import Owner
from memory_project.ids import uuid7

M = TypeVar("M", bound=MemoryRow)

# the words of the new rows are counted for all of them at once: a trigger would append each word of each row
INSERT_MEMORIES = """
WITH stored AS (
    INSERT INTO memories ({names}) {values} ON CONFLICT {conflict} DO NOTHING
    RETURNING id, created_at, account_id, token_count, lexemes, archived OR quarantined OR buried AS hidden
), counted AS (
    INSERT INTO memory_terms (account_id, term, docs, tokens)
    SELECT account_id, '', count(*), sum(token_count) FROM stored WHERE NOT hidden GROUP BY account_id
    UNION ALL
    SELECT account_id, lexeme, count(*), 0 FROM (
        SELECT account_id, unnest(tsvector_to_array(lexemes)) AS lexeme FROM stored WHERE NOT hidden
    ) AS words GROUP BY account_id, lexeme
)
SELECT id, created_at FROM stored
"""

INSERT_MEMORIES_ONLY = """
INSERT INTO memories ({names}) {values} ON CONFLICT {conflict} DO NOTHING RETURNING id, created_at
"""
COUNT_WORDS = """
INSERT INTO memory_terms (account_id, term, docs, tokens)
SELECT account_id, term, count(*), sum(CASE WHEN term = '' THEN token_count ELSE 0 END)
FROM memories CROSS JOIN LATERAL unnest(tsvector_to_array(lexemes) || ''::text) AS term
WHERE account_id = %s AND id = ANY(%s) AND NOT (archived OR quarantined OR buried) GROUP BY account_id, term
"""
"""The two halves of INSERT_MEMORIES, for a distributed database, which refuses a statement that writes two tables."""

SAME_IDENTITY = "(account_id, kind, identity)"

LANGUAGE_OF_ACCOUNT = "coalesce((SELECT language FROM accounts WHERE id = %s::uuid), '')"
TEXT_TYPES = ("varchar", "text")
JSON_TYPES = ("json", "jsonb")
PLAIN_TYPES = frozenset((UUID, bool, datetime, type(None)))
"""Types of values that go to the driver as they are, unless they are JSON."""
MIN_ROWS_TO_PLAN_ONCE = 100

# not by ON DELETE SET NULL, which a distributed database refuses for keys of several columns
DELETE_MEMORIES = """
WITH records AS (
    UPDATE turn_records SET
        goal_id = CASE WHEN goal_id = ANY(%(ids)s) THEN NULL ELSE goal_id END,
        episode_id = CASE WHEN episode_id = ANY(%(ids)s) THEN NULL ELSE episode_id END
    WHERE account_id = %(account_id)s AND (goal_id = ANY(%(ids)s) OR episode_id = ANY(%(ids)s))
), referring AS (
    UPDATE memories SET
        for_goal_id = CASE WHEN for_goal_id = ANY(%(ids)s) THEN NULL ELSE for_goal_id END,
        merged_into_id = CASE WHEN merged_into_id = ANY(%(ids)s) THEN NULL ELSE merged_into_id END,
        source_turn_id = CASE WHEN source_turn_id = ANY(%(ids)s) THEN NULL ELSE source_turn_id END
    WHERE account_id = %(account_id)s AND id <> ALL(%(ids)s)
        AND (for_goal_id = ANY(%(ids)s) OR merged_into_id = ANY(%(ids)s) OR source_turn_id = ANY(%(ids)s))
)
DELETE FROM memories WHERE account_id = %(account_id)s AND id = ANY(%(ids)s)
"""

CLEAR_RECORD_REFERENCES = """
WITH invocations AS (
    UPDATE tool_invocations SET record_id = NULL WHERE account_id = %(account_id)s AND record_id = ANY(%(ids)s)
)
UPDATE memories SET source_record_id = NULL WHERE account_id = %(account_id)s AND source_record_id = ANY(%(ids)s)
"""

# as a sub-select: of a value, statistics that do not know the account yet say that it has one memory, which the planner
# would look for among all of the account; a distributed database finds the machine by the value
OWN_ACCOUNT = "%s" if settings.DATABASE_IS_DISTRIBUTED else "(SELECT %s::uuid)"
# one look-up per vector: right after a table was filled, the planner would join all memories of the account
INSERT_VECTORS = f"""
INSERT INTO memory_vectors (id, memory_id, account_id, kind, agent_id, user_id, channel, conversation_id,
    context_id, event_time, live, expires_at, model, width, vector, passage, passage_start, passage_end, is_given)
SELECT own.id, m.id, m.account_id, m.kind, m.agent_id, m.user_id, m.channel, m.conversation_id, m.context_id,
    m.event_time, NOT (m.archived OR m.quarantined OR m.buried), m.expires_at, %s, own.width, own.vector, own.passage,
    own.passage_start, own.passage_end, own.is_given
FROM unnest(%s::uuid[], %s::uuid[], %s::int[], %s::halfvec[], %s::smallint[], %s::int[], %s::int[], %s::bool[])
    AS own (id, memory_id, width, vector, passage, passage_start, passage_end, is_given)
CROSS JOIN LATERAL (SELECT * FROM memories WHERE account_id = {OWN_ACCOUNT} AND id = own.memory_id OFFSET 0) AS m
ON CONFLICT (account_id, memory_id, model, passage)
DO UPDATE SET width = EXCLUDED.width, vector = EXCLUDED.vector, created_at = EXCLUDED.created_at,
    passage_start = EXCLUDED.passage_start, passage_end = EXCLUDED.passage_end, is_given = EXCLUDED.is_given
"""  # noqa: S608 (composed of constants alone)

DELETE_PASSAGES = """
DELETE FROM memory_vectors WHERE account_id = %s AND memory_id = ANY(%s) AND model = %s AND passage > 0
"""

INSERT_AGENT = """
INSERT INTO agents (id, account_id, agent_id, description) VALUES (%s, %s, %s, '')
ON CONFLICT (account_id, agent_id) DO NOTHING
"""
INSERT_PARTICIPANTS_ONLY = """
INSERT INTO conversation_participants (id, account_id, agent_id, conversation_id)
SELECT part.id, %s, %s, part.conversation_id
FROM unnest(%s::uuid[], %s::text[]) AS part (id, conversation_id)
ON CONFLICT (account_id, conversation_id, agent_id) DO NOTHING
"""
INSERT_PARTICIPANTS = f"WITH agent AS ({INSERT_AGENT}) {INSERT_PARTICIPANTS_ONLY}"


def insert_memories(rows: Sequence[M]) -> list[M]:
    """Store rows of one kind and return those that are new, in order. One statement, each column as one array.

    Django's statement, with one parameter per value, takes four times as long. Columns of an array type are not
    supported.
    """
    if not rows:
        return []
    # in one order everywhere, so that two writers of the same identities do not deadlock
    in_order = sorted(rows, key=lambda row: row.identity)
    typed = typed_fields(type(rows[0]))
    columns = [column for field, of in typed if (column := insert_column(field, of, in_order)) is not None]
    names = ", ".join(f'"{column.name}"' for column in columns)
    statement = INSERT_MEMORIES_ONLY if settings.DATABASE_IS_DISTRIBUTED else INSERT_MEMORIES
    plan_once(rows)
    with insert_cursor(rows) as cursor:
        cursor.execute(
            statement.format(names=names, values=values_sql(columns), conflict=SAME_IDENTITY),
            insert_parameters(columns),
        )
        stored: dict[UUID, datetime] = dict(cursor.fetchall())
    if settings.DATABASE_IS_DISTRIBUTED and stored:
        count_words([row for row in rows if row.id in stored])
    new = [row for row in rows if row.id in stored]
    for row in new:
        row.pk = row.id
        row.created_at = row.updated_at = stored[row.id]
    return new


def count_words(rows: Sequence[MemoryRow]) -> None:
    """Count the words of new rows, account by account."""
    with connection.cursor() as cursor:
        for account_id in sorted({row.account_id for row in rows}):
            cursor.execute(COUNT_WORDS, [account_id, [row.id for row in rows if row.account_id == account_id]])


def insert_cursor(rows: Sequence[MemoryRow]) -> AbstractContextManager[CursorWrapper]:
    """Return a cursor for the insert. For one row, parameters within the text save a round trip."""
    return binary_cursor(results=Format.BINARY) if len(rows) > 1 else connection.cursor()


def plan_once(rows: Sequence[object]) -> None:
    """Keep the plans of what is run for each of many rows, triggers and checks of references, until the commit.

    Planned anew for each row, as sessions do by default, these take four times as long. Plans of former batches are
    discarded: one from when a table was nearly empty would read through all rows of the account for each row.
    """
    if len(rows) >= MIN_ROWS_TO_PLAN_ONCE and not settings.DATABASE_IS_DISTRIBUTED:
        execute_statement("DISCARD PLANS; SET LOCAL plan_cache_mode = auto")


def values_sql(columns: Sequence["InsertColumn"]) -> str:
    """Return the SQL of the rows, from parameters that hold one column each, or one value for all rows."""
    values = ", ".join(column.expression or f'new."{column.name}"' for column in columns)
    several = [column for column in columns if not column.expression]
    if not several:
        return f"VALUES ({values})"
    names = ", ".join(f'"{column.name}"' for column in several)
    # composed of names and types alone
    return (
        f"SELECT {values} FROM unnest({', '.join(f'%s::{column.db_type}[]' for column in several)})"  # noqa: S608
        f" AS new ({names})"
    )


def insert_parameters(columns: Sequence["InsertColumn"]) -> list[Any]:
    """Return the parameters of `values_sql`: those of the expressions stand before the arrays."""
    constants = [column.values[0] for column in columns if column.expression]
    return constants + [column.values for column in columns if not column.expression]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertColumn:
    """One column of the rows, or one value that all of them have.

    `db_type` has no length: a cast to it would truncate values that the table refuses.
    """

    name: str
    db_type: str
    values: Any
    """All values, in a sequence or as Ids; or the one that all rows have."""
    expression: str = ""
    """The SQL of the value that all rows have, with one parameter."""


@cache
def typed_fields(model: type[MemoryRow]) -> Sequence[tuple[Any, str]]:
    """Return the fields of a model's columns, each with the type of its column without a length."""
    return [(field, str(field.db_type(connection)).partition("(")[0]) for field in model._meta.concrete_fields]


def insert_column(field: Any, db_type: str, rows: Sequence[MemoryRow]) -> InsertColumn | None:
    """Return the column, or None if the database fills it, which it does for all rows of a call or for none."""
    if type(field).pre_save is Field.pre_save:
        values = list(map(attrgetter(field.attname), rows))
    else:
        values = [field.pre_save(row, add=True) for row in rows]
    first = values[0]
    if isinstance(first, DatabaseDefault):
        return None
    expression = ""
    if len(values) == 1 or (is_plain(first) and values.count(first) == len(values)):
        values, expression = values[:1], f"%s::{db_type}"
        looks_up = field.column == "language" and not first and not settings.DATABASE_IS_DISTRIBUTED
        if looks_up and rows[0].account_id == rows[-1].account_id:
            # the trigger would look it up for each row
            values, expression = [str(rows[0].account_id)], LANGUAGE_OF_ACCOUNT
    if db_type in TEXT_TYPES:
        # members of enumerations become texts, since an array is of one type
        values = [value if value is None else str(value) for value in values]
    elif db_type in JSON_TYPES or not PLAIN_TYPES.issuperset(map(type, values)):
        # not the proxy `connection`, which JSON fields would look through for each value
        database = connections[DEFAULT_DB_ALIAS]
        values = [field.get_db_prep_save(value, database) for value in values]
    are_ids = db_type == "uuid" and not expression and None not in values
    return InsertColumn(
        name=field.column, db_type=db_type, values=Ids(values) if are_ids else values, expression=expression
    )


def is_plain(value: Any) -> bool:
    """Return False for JSON that may be equal to other JSON and still be spelled differently, as 1 and 1.0 are."""
    return not isinstance(value, dict | list) or not value


def delete_memory_rows(account_id: UUID, memory_ids: Sequence[UUID]) -> None:
    """Delete rows of memories, and clear references of other rows to them. One statement.

    Foreign keys of the database delete what belongs to them: vectors, links, versions, names, votes.
    """
    execute_statement(DELETE_MEMORIES, {"account_id": account_id, "ids": list(memory_ids)})


def clear_record_references(account_id: UUID, record_ids: Sequence[UUID]) -> None:
    """Clear references to structured turns that are about to be deleted. One statement."""
    execute_statement(CLEAR_RECORD_REFERENCES, {"account_id": account_id, "ids": list(record_ids)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageVector:
    """The embedding of the characters from `start` to `end`, exclusive, of a text."""

    start: int
    end: int
    vector: Embedding


def insert_vectors(
    account_id: UUID, *, model: str, vectors: Sequence[tuple[UUID, Embedding]], given: Collection[UUID] = ()
) -> int:
    """Store embeddings of an account's memories in binary and return how many memories existed. One statement.

    Those of the memories `given` came from clients.
    """
    rows = [NewVector(memory_id, vector, is_given=memory_id in given) for memory_id, vector in vectors]
    return insert_each_vector(account_id, model=model, rows=rows)


def insert_passages(account_id: UUID, *, model: str, passages: Mapping[UUID, Sequence[PassageVector]]) -> None:
    """Store the embeddings of the passages of an account's memories in place of former ones. No statement for none."""
    if not passages:
        return
    rows = [
        NewVector(memory_id, each.vector, number, each.start, each.end)
        for memory_id, own in passages.items()
        for number, each in enumerate(own, start=1)
    ]
    with binary_cursor() as cursor:
        cursor.execute(DELETE_PASSAGES, [account_id, list(passages), model])
    insert_each_vector(account_id, model=model, rows=rows)


class NewVector(NamedTuple):
    """A row of vectors, without what it has from its memory. Passage 0 is the whole text."""

    memory_id: UUID
    vector: Embedding
    passage: int = 0
    start: int | None = None
    end: int | None = None
    is_given: bool = False


def insert_each_vector(account_id: UUID, *, model: str, rows: Sequence[NewVector]) -> int:
    if not rows:
        return 0
    memory_ids, vectors, *others = (list[Any](column) for column in zip(*rows, strict=True))
    widths = [len(vector) for vector in vectors]
    made = Ids([uuid7() for _ in rows])
    parameters: list[Any] = [model, made, Ids(memory_ids), widths, HalfVectors(vectors), *others]
    plan_once(rows)
    with binary_cursor() as cursor:
        cursor.execute(INSERT_VECTORS, [*parameters, account_id])
        return int(cursor.rowcount)


def insert_participants(owner: Owner, *, conversation_ids: Sequence[str]) -> None:
    """Create the owner's agent and make it a participant of the conversations, unless it is already. One statement.

    Nothing is done for an owner that does not join.
    """
    if not owner.agent_id or not owner.joins:
        return
    # in one order everywhere, as for memories
    named = sorted({conversation_id for conversation_id in conversation_ids if conversation_id})
    agent: list[Any] = [uuid7(), owner.account_id, owner.agent_id]
    participants: list[Any] = [owner.account_id, owner.agent_id, [uuid7() for _ in named], named]
    with connection.cursor() as cursor:
        if settings.DATABASE_IS_DISTRIBUTED:
            cursor.execute(INSERT_AGENT, agent)
            cursor.execute(INSERT_PARTICIPANTS_ONLY, participants)
        else:
            cursor.execute(INSERT_PARTICIPANTS, [*agent, *participants])
