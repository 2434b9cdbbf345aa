"""Bulk writes of memories: one statement for the rows of a kind, with one parameter for each column.

Everything runs in the caller's transaction. A row whose account, kind and identity exist already is not stored again.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models.expressions import DatabaseDefault

from memory.models.memory import MemoryRow
from memory.models.statements import Embedding, binary_cursor, half_vector
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
    SELECT account_id, lexeme, count(*), 0 FROM stored CROSS JOIN LATERAL unnest(lexemes)
    WHERE NOT hidden GROUP BY account_id, lexeme
)
SELECT id, created_at FROM stored
"""

SAME_IDENTITY = "(account_id, kind, identity)"

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

INSERT_VECTOR = """
INSERT INTO memory_vectors (id, memory_id, account_id, kind, agent_id, user_id, channel, conversation_id,
    context_id, event_time, live, expires_at, model, width, vector, passage, passage_start, passage_end, is_given)
SELECT %s, id, account_id, kind, agent_id, user_id, channel, conversation_id, context_id, event_time,
    NOT (archived OR quarantined OR buried), expires_at, %s, %s, %s, %s, %s, %s, %s
FROM memories WHERE id = %s AND account_id = %s
ON CONFLICT (account_id, memory_id, model, passage)
DO UPDATE SET width = EXCLUDED.width, vector = EXCLUDED.vector, created_at = EXCLUDED.created_at,
    passage_start = EXCLUDED.passage_start, passage_end = EXCLUDED.passage_end, is_given = EXCLUDED.is_given
"""

DELETE_PASSAGES = """
DELETE FROM memory_vectors WHERE account_id = %s AND memory_id = ANY(%s) AND model = %s AND passage > 0
"""

INSERT_PARTICIPANTS = """
WITH agent AS (
    INSERT INTO agents (id, account_id, agent_id, description) VALUES (%s, %s, %s, '')
    ON CONFLICT (account_id, agent_id) DO NOTHING
)
INSERT INTO conversation_participants (id, account_id, agent_id, conversation_id)
SELECT part.id, %s, %s, part.conversation_id
FROM unnest(%s::uuid[], %s::text[]) AS part (id, conversation_id)
ON CONFLICT (account_id, conversation_id, agent_id) DO NOTHING
"""


def insert_memories(rows: Sequence[M]) -> list[M]:
    """Store rows of one kind and return those that are new, in order. One statement, each column as one array.

    Django's statement, with one parameter per value, takes four times as long. Columns of an array type are not
    supported.
    """
    if not rows:
        return []
    # in one order everywhere, so that two writers of the same identities do not deadlock
    in_order = sorted(rows, key=lambda row: row.identity)
    fields = type(rows[0])._meta.concrete_fields
    columns = [column for field in fields if (column := insert_column(field, in_order)) is not None]
    names = ", ".join(f'"{column.name}"' for column in columns)
    statement = INSERT_MEMORIES.format(names=names, values=values_sql(columns), conflict=SAME_IDENTITY)
    with insert_cursor(rows) as cursor:
        cursor.execute(statement, [column.parameter for column in columns])
        stored: dict[UUID, datetime] = dict(cursor.fetchall())
    new = [row for row in rows if row.id in stored]
    for row in new:
        row.pk = row.id
        row.created_at = row.updated_at = stored[row.id]
    return new


def insert_cursor(rows: Sequence[MemoryRow]) -> AbstractContextManager[CursorWrapper]:
    """Return a cursor for the insert. For one row, parameters within the text save a round trip."""
    return binary_cursor() if len(rows) > 1 else connection.cursor()


def values_sql(columns: Sequence["InsertColumn"]) -> str:
    """Return the SQL of the rows, from parameters that hold one column each."""
    if len(columns[0].values) == 1:
        return f"VALUES ({', '.join(['%s'] * len(columns))})"
    # composed of types alone
    return f"SELECT * FROM unnest({', '.join(f'%s::{column.db_type}[]' for column in columns)})"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertColumn:
    """One column of the rows. `db_type` has no length: a cast to it would truncate values that the table refuses."""

    name: str
    db_type: str
    values: list[Any]

    @property
    def parameter(self) -> Any:
        """The list of values, or the value if there is only one row."""
        return self.values if len(self.values) > 1 else self.values[0]


def insert_column(field: Any, rows: Sequence[MemoryRow]) -> InsertColumn | None:
    """Return the column, or None if the database fills it, which it does for all rows of a call or for none."""
    values = [field.pre_save(row, add=True) for row in rows]
    if isinstance(values[0], DatabaseDefault):
        return None
    db_type = str(field.db_type(connection)).partition("(")[0]
    prepared = [field.get_db_prep_save(value, connection) for value in values]
    if db_type in ("varchar", "text"):
        # members of enumerations become texts, since an array is of one type
        prepared = [value if value is None else str(value) for value in prepared]
    return InsertColumn(name=field.column, db_type=db_type, values=prepared)


def delete_memory_rows(account_id: UUID, memory_ids: Sequence[UUID]) -> None:
    """Delete rows of memories, and clear references of other rows to them. One statement.

    Foreign keys of the database delete what belongs to them: vectors, links, versions, names, votes.
    """
    with connection.cursor() as cursor:
        cursor.execute(DELETE_MEMORIES, {"account_id": account_id, "ids": list(memory_ids)})


def clear_record_references(account_id: UUID, record_ids: Sequence[UUID]) -> None:
    """Clear references to structured turns that are about to be deleted. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR_RECORD_REFERENCES, {"account_id": account_id, "ids": list(record_ids)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageVector:
    """The embedding of the characters from `start` to `end`, exclusive, of a text."""

    start: int
    end: int
    vector: Embedding


def insert_vectors(
    account_id: UUID, *, model: str, vectors: Sequence[tuple[UUID, Embedding]], given: Collection[UUID] = ()
) -> int:
    """Store embeddings of an account's memories, binary and pipelined, and return how many memories existed.

    Those of the memories `given` came from clients.
    """
    parameters: list[Any] = [
        (uuid7(), model, len(vector), half_vector(vector), 0, None, None, memory_id in given, memory_id, account_id)
        for memory_id, vector in vectors
    ]
    with binary_cursor() as cursor:
        cursor.executemany(INSERT_VECTOR, parameters)
        return int(cursor.rowcount)


def insert_passages(account_id: UUID, *, model: str, passages: Mapping[UUID, Sequence[PassageVector]]) -> None:
    """Store the embeddings of the passages of an account's memories in place of former ones. No statement for none."""
    if not passages:
        return
    parameters: list[Any] = [
        (uuid7(), model, len(each.vector), half_vector(each.vector), number, each.start, each.end, False, memory_id)
        for memory_id, own in passages.items()
        for number, each in enumerate(own, start=1)
    ]
    with binary_cursor() as cursor:
        cursor.execute(DELETE_PASSAGES, [account_id, list(passages), model])
        cursor.executemany(INSERT_VECTOR, [(*row, account_id) for row in parameters])


def insert_participants(owner: Owner, *, conversation_ids: Sequence[str]) -> None:
    """Create the owner's agent and make it a participant of the conversations, unless it is already. One statement."""
    if not owner.agent_id:
        return
    # in one order everywhere, as for memories
    named = sorted({conversation_id for conversation_id in conversation_ids if conversation_id})
    with connection.cursor() as cursor:
        cursor.execute(
            INSERT_PARTICIPANTS,
            [
                uuid7(),
                owner.account_id,
                owner.agent_id,
                owner.account_id,
                owner.agent_id,
                [uuid7() for _ in named],
                named,
            ],
        )
