"""Erasing from what is encrypted at rest in rows of others: it is decrypted to find the user in it."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from memory.models import ReasoningTrace, ToolInvocation
from memory.models.statements import fetch_rows
from memory.services.custody.naming import Naming
from memory.services.custody.stores import Model
from memory_project.encryption import SealBroken, unseal
from memory_project.fields import SealedJSONField

SCANNED_ROWS = 50
"""Rows of a batch: a value may have a megabyte, and writers of a row wait for its batch."""

SEALED: dict[str, Model] = {model._meta.db_table: model for model in (ReasoningTrace, ToolInvocation)}
"""Tables with sealed columns that may name a user, by name. Archives and selections go as a whole."""


def sealed_columns(model: Model) -> list[str]:
    return [str(field.column) for field in model._meta.concrete_fields if isinstance(field, SealedJSONField)]


def mask_sealed_rows(table: str, account_id: UUID, naming: Naming, *, after: UUID) -> tuple[int, UUID | None]:
    """Remove what names the user from sealed values of the next rows, in the caller's transaction.

    Returns the number of rows that were changed, and the row to continue after, None at the end of the table. Values
    that no key opens stay.
    """
    model = SEALED[table]
    columns = sealed_columns(model)
    # composed of names of the models alone
    statement = f"""
    SELECT id, {", ".join(columns)} FROM {table} WHERE account_id = %s AND id > %s ORDER BY id LIMIT %s
    FOR NO KEY UPDATE
    """  # noqa: S608
    rows = fetch_rows(statement, [account_id, after, SCANNED_ROWS])
    changed = 0
    for row_id, *values in rows:
        if changes := masked_values(columns, values, naming):
            model._default_manager.filter(account_id=account_id, id=row_id).update(**changes)
            changed += 1
    return changed, rows[-1][0] if len(rows) == SCANNED_ROWS else None


def masked_values(columns: Iterable[str], values: Sequence[Any], naming: Naming) -> dict[str, Any]:
    """Return those of the values that name the user, without that."""
    changes = {}
    for column, value in zip(columns, values, strict=True):
        if value is None:
            continue
        try:
            plain = json.loads(unseal(bytes(value)))
        except SealBroken:
            continue
        if (masked := naming.without(plain)) != plain:
            changes[column] = masked
    return changes
