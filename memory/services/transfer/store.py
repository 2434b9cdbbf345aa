"""Storing a batch of rows of an archive in one statement. Rows that the account has already are left alone."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import models

from memory.models import UnstoredRow
from memory.models.statements import execute_statement, fetch_rows
from memory.models.writer import INSERT_MEMORIES
from memory.providers.embeddings import embedding_provider
from memory.services.transfer.rules import JOINING, TO_EMBED, ExportedTable
from memory_project.encryption import seal

Row = dict[str, Any]

# composed of names of the models alone
INSERT = "INSERT INTO {table} ({names}) SELECT {values} FROM {rows} ON CONFLICT DO NOTHING RETURNING id"

INSERT_VECTORS = """
INSERT INTO memory_vectors ({names}, account_id, kind, agent_id, user_id, channel, conversation_id, context_id,
    event_time, live, expires_at)
SELECT {values}, m.account_id, m.kind, m.agent_id, m.user_id, m.channel, m.conversation_id, m.context_id,
    m.event_time, NOT (m.archived OR m.quarantined OR m.buried), m.expires_at
FROM {rows} JOIN memories m ON m.account_id = %(account_id)s AND m.id = r.memory_id
ON CONFLICT DO NOTHING RETURNING id
"""

# those that have a vector of the model in use need no other
CLEAR_EMBED = """
UPDATE memories SET embed_after = NULL
WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[]) AND embed_after IS NOT NULL
"""

FIND_EXISTING = """
SELECT r.id, t.id FROM {rows} JOIN {table} t ON t.account_id = %(account_id)s AND {condition}
"""

SET_LATE = """
UPDATE {table} t SET {assignments} FROM {rows} WHERE t.account_id = %(account_id)s AND t.id = r.id
"""

# both have turns without gaps from 0 on, so that together they have none either
COUNT_TURNS = """
UPDATE conversations c SET turn_count = added.turns FROM (
    SELECT log_id, max(index) + 1 AS turns FROM memories
    WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[]) AND kind = 'turn' GROUP BY log_id
) AS added WHERE c.account_id = %(account_id)s AND c.id = added.log_id AND c.turn_count < added.turns
"""


@dataclass(slots=True)
class StoredBatch:
    """The ids of a batch that were stored, and of the others what the account has instead, if anything."""

    stored: set[UUID] = field(default_factory=set)
    unstored: dict[UUID, UUID | None] = field(default_factory=dict)


def rows_sql(table: ExportedTable, columns: Collection[str]) -> str:
    """Return the SQL of rows `r` with these columns, from one parameter that has them as JSON."""
    types = {str(each.column): table.db_type(each) for each in table.fields} | {TO_EMBED: "boolean"}
    named = ", ".join(f'"{column}" {types[column]}' for column in columns)
    return f"json_to_recordset(%(rows)s::json) AS r ({named})"


def store_rows(
    account_id: UUID, table: ExportedTable, rows: Sequence[Row], known: Mapping[UUID, UUID | None]
) -> StoredBatch:
    """Store rows. `known`: rows of the archive that were not stored, and what the account has instead.

    Rows that go with something that the account has under the same id are added to it. Those that go with something
    that it has under another id are left out.
    """
    outcome, new = StoredBatch(), []
    kept_back: list[Row] = []
    for row in rows:
        changed = with_known_references(table, row, known)
        if changed is None:
            kept_back.append(row)
        else:
            new.append(changed)
    if new:
        outcome.stored = insert_rows(account_id, table, new)
    kept_back += [row for row in new if UUID(row["id"]) not in outcome.stored]
    if kept_back:
        outcome.unstored = dict.fromkeys(UUID(row["id"]) for row in kept_back)
        outcome.unstored |= find_existing(account_id, table, kept_back)
    return outcome


def count_added_turns(account_id: UUID, stored: Collection[UUID]) -> None:
    """Count the turns that were added to conversations which the account had before."""
    execute_statement(COUNT_TURNS, {"account_id": account_id, "ids": list(stored)})


def with_known_references(table: ExportedTable, row: Row, known: Mapping[UUID, UUID | None]) -> Row | None:
    """Return the row with references to what the account has instead, and late ones empty; None to leave it alone."""
    changed = row | dict.fromkeys((each.column for each in table.late_references), None)
    for reference in table.references:
        value = row[reference.column]
        if value is None or UUID(value) not in known:
            continue
        instead = known[UUID(value)]
        is_same = instead == UUID(value)
        if reference.cascades and not is_same and (instead is None or table.name not in JOINING):
            return None
        changed[reference.column] = None if instead is None else str(instead)
    return changed


def insert_rows(account_id: UUID, table: ExportedTable, rows: Sequence[Row]) -> set[UUID]:
    """Insert rows and return the ids of those that were new. One statement."""
    sealed = table.sealed
    if sealed:
        rows = [row | {name: sealed_text(row[name]) for name in sealed if row[name] is not None} for row in rows]
    columns = [str(each.column) for each in table.fields]
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(f'r."{column}"' for column in columns)
    parameters = {"account_id": account_id, "rows": json.dumps(rows)}
    source = rows_sql(table, table.columns)
    if table.name == "memories":
        statement = INSERT_MEMORIES.format(
            names=f"account_id, embed_after, embed_attempts, embed_error, {names}",
            values=f"SELECT %(account_id)s, CASE WHEN r.to_embed THEN now() END, 0, '', {values} FROM {source}",  # noqa: S608
            conflict="",
        )
    elif table.name == "memory_vectors":
        statement = INSERT_VECTORS.format(names=names, values=values, rows=source)
    else:
        statement = INSERT.format(
            table=table.name, names=f"account_id, {names}", values=f"%(account_id)s, {values}", rows=source
        )
    stored = {row[0] for row in fetch_rows(statement, parameters)}
    if table.name == "memory_vectors":
        clear_embedded(account_id, rows)
    return stored


def sealed_text(value: Any) -> str:
    """Return a value encrypted as bytes in PostgreSQL's hexadecimal notation."""
    return "\\x" + seal(json.dumps(value, allow_nan=False).encode()).hex()


def clear_embedded(account_id: UUID, rows: Sequence[Row]) -> None:
    """Take memories that got a vector of the model in use off the queue."""
    model = embedding_provider().model
    ids = [row["memory_id"] for row in rows if row["model"] == model and row["passage"] == 0]
    execute_statement(CLEAR_EMBED, {"account_id": account_id, "ids": ids})


def find_existing(account_id: UUID, table: ExportedTable, rows: Sequence[Row]) -> dict[UUID, UUID]:
    """Return the rows of the account that have the id of one of these, or what may be there only once."""
    found: dict[UUID, UUID] = {}
    parameters = {"account_id": account_id, "rows": json.dumps(rows)}
    for condition in same_conditions(table):
        source = rows_sql(table, table.columns)
        statement = FIND_EXISTING.format(rows=source, table=table.name, condition=condition)
        for row_id, existing in fetch_rows(statement, parameters):
            found.setdefault(row_id, existing)
    return found


def same_conditions(table: ExportedTable) -> list[str]:
    """Return the conditions under which a row `t` is the row `r`: by the id, and by each unique constraint."""
    conditions = ["t.id = r.id"]
    columns = {str(each.column) for each in table.fields}
    for constraint in table.model._meta.constraints:
        if not isinstance(constraint, models.UniqueConstraint):
            continue
        fields: list[Any] = [table.model._meta.get_field(name) for name in constraint.fields if name != "account"]
        if not fields or not {field.column for field in fields} <= columns:
            continue
        equals = "=" if constraint.nulls_distinct is not False else "IS NOT DISTINCT FROM"
        parts = [f't."{field.column}" {equals} r."{field.column}"' for field in fields]
        if constraint.condition is not None:
            # the constraints of parts of a table leave out empty ids, and have kinds or scopes of their own
            parts += [f"r.\"{field.column}\" <> ''" for field in fields if field.column == "client_id"]
            parts += [f't."{name}" = r."{name}"' for name in ("kind", "scope", "is_own", "type") if name in columns]
        conditions.append(" AND ".join(parts))
    return conditions


def set_late_references(
    account_id: UUID, table: ExportedTable, rows: Sequence[Row], known: Mapping[UUID, UUID | None]
) -> None:
    """Set the late references of rows that were stored. Done twice, it changes nothing more."""
    columns = [each.column for each in table.late_references]
    changed = []
    for row in rows:
        values = {name: instead_of(row[name], known) for name in columns}
        if UUID(row["id"]) not in known and any(values.values()):
            changed.append({"id": row["id"]} | values)
    if not changed:
        return
    statement = SET_LATE.format(
        table=table.name,
        assignments=", ".join(f'"{name}" = r."{name}"' for name in columns),
        rows=rows_sql(table, ["id", *columns]),
    )
    execute_statement(statement, {"account_id": account_id, "rows": json.dumps(changed)})


def instead_of(value: str | None, known: Mapping[UUID, UUID | None]) -> str | None:
    if value is None or UUID(value) not in known:
        return value
    instead = known[UUID(value)]
    return None if instead is None else str(instead)


def read_known(
    account_id: UUID, transfer_id: UUID, table: ExportedTable, rows: Sequence[Row]
) -> dict[UUID, UUID | None]:
    """Return which of these rows, and of those that they refer to, were not stored, and what there is instead."""
    names = ["id", *(each.column for each in table.all_references)]
    named = {UUID(row[name]) for row in rows for name in names if row[name] is not None}
    found = UnstoredRow.objects.filter(account_id=account_id, transfer_id=transfer_id, row_id__in=named)
    return dict(found.values_list("row_id", "existing_id"))


def note_unstored(account_id: UUID, transfer_id: UUID, unstored: Mapping[UUID, UUID | None]) -> None:
    """Note rows that were not stored, for rows that refer to them."""
    UnstoredRow.objects.bulk_create(
        UnstoredRow(account_id=account_id, transfer_id=transfer_id, row_id=row_id, existing_id=existing)
        for row_id, existing in unstored.items()
    )
