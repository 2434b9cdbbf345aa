"""Changes by staff, for the audit log: the reason, and the values of rows before and after.

The owner of a change of staff carries a `RowChanges`. The audit entry that a service writes in its transaction then has
the differences between the rows as they were and as they are (`audit.record_audit`), whatever the service.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import BinaryField, Field, Model

from memory.audit import MAX_TEXT_CHARACTERS
from memory_project.admin_lists import read_uuid

MAX_CHANGED_ROWS = 100
"""Rows whose values one entry has."""

BOOKKEEPING = frozenset(
    {
        *("version", "updated_at", "content_hash", "wording", "identity", "token_count", "embed_after"),
        *("embed_attempts", "embed_error", "secret_hash", "fact_digest", "entity_digests", "last_used_at"),
        *("last_accessed", "recorded_at", "belief_number"),
    }
)
"""Columns that follow from others, or that nobody should read in a log."""

Values = Mapping[str, Any]
"""The values of a row's columns, as JSON."""


@dataclass(slots=True, kw_only=True)
class RowChanges:
    """The changes of some rows of a model since it was made. Not for several threads.

    A deletion is recorded without the values of the row: what is deleted does not live on in the audit log.
    """

    account_id: UUID
    reason: str = ""
    model: type[Model] | None = None
    before: dict[UUID, Values] = field(default_factory=dict)

    def describe(self, affected_ids: Sequence[UUID | str]) -> dict[str, Any]:
        """Return the reason, and what has changed since the last call: of the watched rows, and of new ones."""
        described: dict[str, Any] = {"reason": self.reason} if self.reason else {}
        changes = self.collect(affected_ids)
        return described | ({"changes": changes} if changes else {})

    def collect(self, affected_ids: Sequence[UUID | str]) -> dict[str, Any]:
        if self.model is None:
            return {}
        found = [row_id for row_id in map(read_uuid, map(str, affected_ids)) if row_id is not None]
        # no longer watched once it is deleted
        wanted = dict.fromkeys([*self.before, *found[:MAX_CHANGED_ROWS]])
        after = read_values(self.model, self.account_id, wanted)
        changes: dict[str, Any] = {}
        for row_id in wanted:
            old, new = self.before.get(row_id), after.get(row_id)
            if new is None:
                if old is not None:
                    changes[str(row_id)] = "deleted"
            elif different := differences(old or {}, new):
                changes[str(row_id)] = different
        self.before = after
        return changes


def differences(old: Values, new: Values) -> dict[str, list[Any]]:
    """Return the old and the new value of each column that differs. A column that was empty has the old value None."""
    return {
        name: [old.get(name), value] for name, value in new.items() if value != old.get(name) and is_said(old, value)
    }


def is_said(old: Values, value: Any) -> bool:
    """Return False for the empty columns of a new row."""
    return bool(old) or value not in (None, "", [], {})


def watch_rows(account_id: UUID, model: type[Model] | None, row_ids: Iterable[UUID], *, reason: str) -> RowChanges:
    """Return the changes of these rows of an account from now on. Without a model there is only the reason."""
    before = {} if model is None else read_values(model, account_id, row_ids)
    return RowChanges(account_id=account_id, reason=reason, model=model, before=before)


def model_named(name: str) -> type[Model] | None:
    """Return the model of the service with this name in lower case, or None if its rows are not in the database."""
    try:
        model = apps.get_model("memory", name)
    except LookupError:
        return None
    key = model._meta.pk
    return model if key is not None and key.get_internal_type() == "UUIDField" and account_column(model) else None


def account_column(model: type[Model]) -> str:
    """Return the column that says whose account a row is, or "" for rows of no account."""
    if model._meta.model_name == "account":
        return "pk"
    return "account_id" if any(each.attname == "account_id" for each in model._meta.concrete_fields) else ""


def read_values(model: type[Model], account_id: UUID, row_ids: Iterable[UUID]) -> dict[UUID, Values]:
    """Return the readable columns of these rows of the account by id, long texts cut."""
    ids = list(row_ids)[:MAX_CHANGED_ROWS]
    names = [column.attname for column in model._meta.concrete_fields if is_readable(column)]
    rows = (
        model._default_manager.filter(**{account_column(model): account_id}, pk__in=ids).values_list("pk", *names)
        if ids
        else []
    )
    return {row[0]: {name: json_value(value) for name, value in zip(names, row[1:], strict=True)} for row in rows}


def is_readable(column: "Field[Any, Any]") -> bool:
    return not (column.primary_key or column.name in BOOKKEEPING or isinstance(column, BinaryField))


def json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return value[:MAX_TEXT_CHARACTERS]
    return value if isinstance(value, bool | int | float | list | dict | None) else str(value)
