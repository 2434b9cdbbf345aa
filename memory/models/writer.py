"""The bulk writer: parents and children in a statement each, since Django's `bulk_create` refuses children.

Everything runs in the caller's transaction. What is the same thing again (account, kind, identity) is left alone.
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

from memory.models.binary import Embedding, binary_cursor, half_vector
from memory.models.memory import Memory
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
    """Store rows of one kind; returns those that are new, in order. Two statements, or one for plain memories."""
    if not rows:
        return []
    # in one order everywhere: two writers that meet in the same identities wait for each other, not for ever
    in_order = sorted(rows, key=lambda row: row.identity)
    stored = insert_rows(Memory, in_order, on_conflict="ON CONFLICT DO NOTHING")
    new = [row for row in rows if row.id in stored]
    for row in new:
        row.pk = row.id
        row.created_at = row.updated_at = stored[row.id]
    if new and type(new[0]) is not Memory:
        insert_rows(type(new[0]), new, on_conflict="")
    return new


def insert_rows(model: type[M], rows: Sequence[M], *, on_conflict: str) -> dict[UUID, datetime]:
    """Insert what `model` itself holds of the rows (not its parents): many of them with each column as one array.

    Django's own statement, with a parameter a value, takes four times as long. Columns of arrays would need another.
    Returns what was stored: primary key to time of storing, which a child's own table does not know.
    """
    meta = model._meta
    columns = [column for field in meta.local_concrete_fields if (column := column_of(field, rows)) is not None]
    names = ", ".join(f'"{column.name}"' for column in columns)
    returned = '"id", "created_at"' if model is Memory else f'"{meta.pk.column}", "{meta.pk.column}"'
    statement = f'INSERT INTO "{meta.db_table}" ({names}) %s {on_conflict} RETURNING {returned}'
    with cursor_for(rows) as cursor:
        cursor.execute(statement % source_of(columns), [column.parameter for column in columns])
        return dict(cursor.fetchall())


def cursor_for(rows: Sequence[Memory]) -> AbstractContextManager[CursorWrapper]:
    """For one row, parameters within the text spare the server a round of its own."""
    return binary_cursor() if len(rows) > 1 else connection.cursor()


def source_of(columns: Sequence["Column"]) -> str:
    """The rows as a statement names them, from parameters that hold one column each."""
    if len(columns[0].values) == 1:
        return f"VALUES ({', '.join(['%s'] * len(columns))})"
    # composed of types alone
    return f"SELECT * FROM unnest({', '.join(f'%s::{column.db_type}[]' for column in columns)})"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of many rows. `db_type` is without a length: a cast would cut to it, where the table refuses."""

    name: str
    db_type: str
    values: list[Any]

    @property
    def parameter(self) -> Any:
        """All values, or the only one."""
        return self.values if len(self.values) > 1 else self.values[0]


def column_of(field: Any, rows: Sequence[Memory]) -> Column | None:
    """None where the database fills it. The rows of one call agree on that."""
    values = [field.pre_save(row, add=True) for row in rows]
    if isinstance(values[0], DatabaseDefault):
        return None
    db_type = str(field.db_type(connection)).partition("(")[0]
    prepared = [field.get_db_prep_save(value, connection) for value in values]
    if db_type in ("varchar", "text"):
        # a member of an enumeration among texts: an array is of one type
        prepared = [value if value is None else str(value) for value in prepared]
    return Column(name=field.column, db_type=db_type, values=prepared)


def delete_memories(memory_ids: Sequence[UUID]) -> None:
    """Delete rows and what their kinds hold of them; the database's own foreign keys take vectors and links along.

    One statement a kind: Django's `delete` would load every row of a child, and its parent in a query each.
    """
    kinds: list[type[Memory]] = [*Memory.__subclasses__(), Memory]
    for model in kinds:
        rows: Any = model._base_manager.filter(pk__in=memory_ids)
        rows._raw_delete(using=rows.db)


def insert_vectors(account_id: UUID, *, model: str, vectors: Sequence[tuple[UUID, Embedding]]) -> int:
    """Store the embeddings of memories of an account, binary and pipelined; returns how many found their memory."""
    parameters: list[Any] = [
        (uuid7(), model, len(vector), half_vector(vector), memory_id, account_id) for memory_id, vector in vectors
    ]
    with binary_cursor() as cursor:
        cursor.executemany(INSERT_VECTOR, parameters)
        return int(cursor.rowcount)


def insert_participants(owner: Owner, *, conversation_ids: Sequence[str]) -> None:
    """Agents and their part in conversations come to be on first write. One statement."""
    if not owner.agent_id:
        return
    # in one order everywhere, as memories are
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
