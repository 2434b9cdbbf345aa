"""Bulk writes of memories: one statement for parents and one for children, which `bulk_create` does not support.

Everything runs in the caller's transaction. A row whose account, kind and identity exist already is not stored again.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models.expressions import DatabaseDefault

from memory.models.memory import Memory
from memory.models.statements import Embedding, binary_cursor, half_vector
from memory.owner import Owner
from memory_project.ids import uuid7

M = TypeVar("M", bound=Memory)

INSERT_VECTOR = """
INSERT INTO memory_vectors (id, memory_id, account_id, kind, agent_id, user_id, channel, conversation_id,
    context_id, event_time, live, expires_at, model, width, vector)
SELECT %s, id, account_id, kind, agent_id, user_id, channel, conversation_id, context_id, event_time,
    NOT (archived OR quarantined OR buried), expires_at, %s, %s, %s
FROM memories WHERE id = %s AND account_id = %s
ON CONFLICT (memory_id, model) DO UPDATE SET width = EXCLUDED.width, vector = EXCLUDED.vector, created_at = now()
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
    """Store rows of one kind and return those that are new, in order. Two statements, one for plain memories."""
    if not rows:
        return []
    # in one order everywhere, so that two writers of the same identities do not deadlock
    in_order = sorted(rows, key=lambda row: row.identity)
    stored = insert_model_rows(Memory, in_order, on_conflict="ON CONFLICT DO NOTHING")
    new = [row for row in rows if row.id in stored]
    for row in new:
        row.pk = row.id
        row.created_at = row.updated_at = stored[row.id]
    if new and type(new[0]) is not Memory:
        insert_model_rows(type(new[0]), new, on_conflict="")
    return new


def insert_model_rows(model: type[M], rows: Sequence[M], *, on_conflict: str) -> dict[UUID, datetime]:
    """Insert the columns of the rows that are the model's own, not its parents', each column as one array.

    Django's statement, with one parameter per value, takes four times as long. Columns of an array type are not
    supported. Returns the time of creation by primary key of the stored rows; a child's table does not know the time.
    """
    meta = model._meta
    columns = [column for field in meta.local_concrete_fields if (column := insert_column(field, rows)) is not None]
    names = ", ".join(f'"{column.name}"' for column in columns)
    returned = '"id", "created_at"' if model is Memory else f'"{meta.pk.column}", "{meta.pk.column}"'
    statement = f'INSERT INTO "{meta.db_table}" ({names}) %s {on_conflict} RETURNING {returned}'
    with insert_cursor(rows) as cursor:
        cursor.execute(statement % values_sql(columns), [column.parameter for column in columns])
        return dict(cursor.fetchall())


def insert_cursor(rows: Sequence[Memory]) -> AbstractContextManager[CursorWrapper]:
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


def insert_column(field: Any, rows: Sequence[Memory]) -> InsertColumn | None:
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


def delete_memory_rows(memory_ids: Sequence[UUID]) -> None:
    """Delete rows of memories and of their child tables. Foreign keys of the database delete vectors and links.

    One statement per model: Django's `delete` would load every row of a child, and its parent in a query each.
    """
    kinds: list[type[Memory]] = [*Memory.__subclasses__(), Memory]
    for model in kinds:
        rows: Any = model._base_manager.filter(pk__in=memory_ids)
        rows._raw_delete(using=rows.db)


def insert_vectors(account_id: UUID, *, model: str, vectors: Sequence[tuple[UUID, Embedding]]) -> int:
    """Store embeddings of an account's memories, binary and pipelined, and return how many memories existed."""
    parameters: list[Any] = [
        (uuid7(), model, len(vector), half_vector(vector), memory_id, account_id) for memory_id, vector in vectors
    ]
    with binary_cursor() as cursor:
        cursor.executemany(INSERT_VECTOR, parameters)
        return int(cursor.rowcount)


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
