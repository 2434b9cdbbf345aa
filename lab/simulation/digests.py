"""The final state of an account as one digest, and the differences of two states.

States are compared by contents, without ids and without the wall clock: a row is described by its columns, in which the
id of another row is replaced by that row's description, and a time by its day. Left out is what depends on the clock or
on who did it: when a row was written, leases, attempts, errors, runs of jobs.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Model

from memory.models import Account

VOLATILE = re.compile(
    r"created_at|updated_at|id|identity|content_hash|.*_digests?|.*lease_until|.*attempts|.*error|version|stream_id"
    r"|saved_session|saved_at|secret_hash|prefix|last_used_at|cleared_at|account_id|at"
)
DUE = re.compile(r".*_after")
"""Columns that depend on the clock; whether they are set does not."""
LEFT_OUT = frozenset(
    {"JobRun", "ApiKey", "AuditEntry", "TermCount", "MetricSample", "SharedContextPool", "Memory", "MemoryTable"}
)
"""Models left out: word counts follow from the texts, audit entries from what they are about, and memories are
described by the models of their kinds."""
AN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
DECIMALS = 4
VECTOR = "vector"
"""The column that is described by a digest, because of its length."""

Row = dict[str, Any]
Table = tuple[str, list[Row]]


def describe_state(account: Account) -> dict[str, list[str]]:
    """Return the rows of each table in order, as JSON."""
    tables = [(model.__name__, list(rows_of_table(model, account))) for model in sorted_models()]
    names = {row["id"]: name_of_row(table, row) for table, rows in tables for row in rows}
    return {
        table: sorted(json.dumps(describe_row(row, names), sort_keys=True) for row in rows) for table, rows in tables
    }


def digest_of(state: Mapping[str, list[str]]) -> str:
    """Return the SHA-256 digest over all tables."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def differences(one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Return the tables and rows that only one state has, after `-` for the first state and `+` for the other."""
    for table in sorted({*one, *other}):
        mine, yours = Counter(one.get(table, ())), Counter(other.get(table, ()))
        yield from ((table, f"- {row}") for row in (mine - yours).elements())
        yield from ((table, f"+ {row}") for row in (yours - mine).elements())


def sorted_models() -> list[type[Model]]:
    found = [model for model in apps.get_models() if model.__name__ not in LEFT_OUT and has_account(model)]
    return sorted(found, key=lambda model: model.__name__)


def has_account(model: type[Model]) -> bool:
    return any(field.attname == "account_id" for field in model._meta.concrete_fields)


def rows_of_table(model: type[Model], account: Account) -> Iterable[Row]:
    """Return the rows with their ids."""
    names = [field.attname for field in model._meta.concrete_fields]
    key = str(model._meta.pk.attname if model._meta.pk else "id")
    rows = model._default_manager.filter(account_id=account.id).order_by(key)
    for values in rows.values(*names).iterator():
        yield {"id": values[key], **{name: plain_value(name, value) for name, value in values.items() if name != key}}


def plain_value(name: str, value: Any) -> Any:
    """Convert to JSON values. Ids of other rows stay."""
    if DUE.fullmatch(name):
        return value is not None
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, float):
        return round(value, DECIMALS)
    if value is None or isinstance(value, (str, int, UUID)):
        return value
    if isinstance(value, (dict, list)) and name != VECTOR:
        return value
    return hashlib.sha256(str(value).encode()).hexdigest()


def name_of_row(table: str, row: Row) -> str:
    """Return the row's own description, whatever it refers to."""
    said = json.dumps(describe_row(row, {}), sort_keys=True)
    return f"{table}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def describe_row(row: Row, names: Mapping[UUID, str]) -> Row:
    return {name: replace_ids(value, names) for name, value in row.items() if not VOLATILE.fullmatch(name)}


def replace_ids(value: Any, names: Mapping[UUID, str]) -> Any:
    """Replace every id in the value, at any depth, by what it names."""
    if isinstance(value, UUID):
        return names.get(value, "")
    if isinstance(value, str):
        return AN_ID.sub(lambda found: names.get(UUID(found.group()), ""), value)
    if isinstance(value, dict):
        return {replace_ids(name, names): replace_ids(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [replace_ids(each, names) for each in value]
    return value
