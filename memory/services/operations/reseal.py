"""Encrypts sealed columns again after another key was put first: every sealed column of every model.

Rows are processed in the order of their keys, one batch per transaction. The work may be killed at any point and run
again: values sealed with the first key are left alone, so a new run continues where the last one stopped.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from django.apps import apps
from django.db import connection, models, transaction

from memory.models.statements import binary_cursor, fetch_rows
from memory_project.encryption import SealBroken, is_current, seal_anew
from memory_project.fields import SealedJSONField

BATCH_ROWS = 100
BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of sealed values: a tool invocation may have a megabyte, and writers of a row wait for its batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTable:
    """A table with its key and its sealed columns."""

    name: str
    key: str
    key_type: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationCounts:
    """Numbers of rows examined, and of their sealed values: rotated (on a dry run: to rotate), current, unreadable."""

    rows: int = 0
    rotated: int = 0
    current: int = 0
    unreadable: int = 0

    def __add__(self, other: "RotationCounts") -> "RotationCounts":
        fields = zip(self.__slots__, astuple(self), astuple(other), strict=True)
        return RotationCounts(**{name: one + another for name, one, another in fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Upper limits of a transaction; a single row is processed whatever its size."""

    rows: int = BATCH_ROWS
    bytes: int = BATCH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedBatch:
    """The result of a batch of a table's rows; `last` is the key of its last row."""

    table: str
    last: Any
    rotated: RotationCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """A range of keys: after a key (None: from the first), up to and including another."""

    after: Any
    until: Any


Row = tuple[Any, ...]
"""A row's key, then its sealed values."""


def find_sealed_tables() -> list[SealedTable]:
    """Return every table with sealed columns, by name: any model with a sealed field is rotated."""
    found = [describe_table(model) for model in apps.get_models() if not model._meta.proxy and model._meta.managed]
    return sorted((table for table in found if table.columns), key=lambda table: table.name)


def describe_table(model: type[models.Model]) -> SealedTable:
    meta = model._meta
    sealed = [field for field in meta.local_concrete_fields if isinstance(field, SealedJSONField)]
    return SealedTable(
        name=meta.db_table,
        key=str(meta.pk.column),
        # without the length, which a cast does not need
        key_type=str(meta.pk.db_type(connection)).partition("(")[0],
        columns=tuple(str(field.column) for field in sealed),
    )


def count_sealed_rows(table: SealedTable) -> int:
    """Return the number of rows with a sealed value."""
    # names come from the models
    [(count,)] = fetch_rows(f"SELECT count(*) FROM {quote_name(table.name)} WHERE {filled_condition(table)}")  # noqa: S608
    return int(count)


def rotate_tables(
    tables: Sequence[SealedTable], *, size: BatchLimits = BatchLimits()
) -> Generator[RotatedBatch, None, None]:
    """Seal with the first key whatever other keys open, without blocking writers; each step commits a batch.

    Values that no key opens are left as they are and counted. Raises ImproperlyConfigured without a key.
    """
    for table in tables:
        yield from rotate_in_batches(table, size=size, is_dry_run=False)


def preview_rotation(
    tables: Sequence[SealedTable], *, size: BatchLimits = BatchLimits()
) -> Generator[RotatedBatch, None, None]:
    """Yield what `rotate_tables` would do, without changes or locks."""
    for table in tables:
        yield from rotate_in_batches(table, size=size, is_dry_run=True)


def rotate_in_batches(table: SealedTable, *, size: BatchLimits, is_dry_run: bool) -> Iterator[RotatedBatch]:
    # up to the current last key: newer rows are sealed with the first key already, and might never end
    last, until = None, find_last_key(table)
    while until is not None:
        left = KeyRange(after=last, until=until)
        with transaction.atomic():
            last = find_batch_end(table, left, size=size)
            if last is None:
                return
            rows = read_sealed_rows(table, replace(left, until=last), locked=not is_dry_run)
            resealed, rotated = reseal_rows(rows)
            if not is_dry_run:
                write_resealed_rows(table, resealed)
        yield RotatedBatch(table=table.name, last=last, rotated=rotated)


def find_last_key(table: SealedTable) -> Any:
    """Return the last key of the table, or None for an empty table."""
    key = quote_name(table.key)
    # names come from the models
    rows = fetch_rows(f"SELECT {key} FROM {quote_name(table.name)} ORDER BY {key} DESC LIMIT 1")  # noqa: S608
    return rows[0][0] if rows else None


def find_batch_end(table: SealedTable, left: KeyRange, *, size: BatchLimits) -> Any:
    """Return the key of the last row that fits into a batch, None if no row is left. Reads sizes, not values."""
    key, (where, bounds) = quote_name(table.key), range_condition(table, left)
    length = " + ".join(f"coalesce(octet_length({quote_name(column)}), 0)" for column in table.columns)
    statement = (
        "SELECT key FROM (SELECT key, length, sum(length) OVER (ORDER BY key) AS total FROM ("  # noqa: S608 - names from the models
        f"SELECT {key} AS key, {length} AS length FROM {quote_name(table.name)} "
        f"WHERE {where} ORDER BY {key} LIMIT %s"
        ") AS next) AS summed WHERE total <= %s OR total = length ORDER BY key DESC LIMIT 1"
    )
    rows = fetch_rows(statement, [*bounds, size.rows, size.bytes])
    return rows[0][0] if rows else None


def read_sealed_rows(table: SealedTable, keys: KeyRange, *, locked: bool) -> list[Row]:
    """Return rows ordered by key. Locked rows wait for other rotations and for erasures, and block nobody else."""
    key, (where, bounds) = quote_name(table.key), range_condition(table, keys)
    statement = (
        f"SELECT {', '.join([key, *map(quote_name, table.columns)])} FROM {quote_name(table.name)} "  # noqa: S608 - our own
        f"WHERE {where} ORDER BY {key}{' FOR NO KEY UPDATE' if locked else ''}"
    )
    with binary_cursor() as cursor:
        cursor.execute(statement, bounds)
        found: list[Row] = cursor.fetchall()
    return found


def range_condition(table: SealedTable, keys: KeyRange) -> tuple[str, list[Any]]:
    """Return the condition for rows of a range that have a sealed value, and its parameters."""
    key = quote_name(table.key)
    lower_bound, bounds = ("", []) if keys.after is None else (f"{key} > %s AND ", [keys.after])
    return f"{lower_bound}{key} <= %s AND ({filled_condition(table)})", [*bounds, keys.until]


def filled_condition(table: SealedTable) -> str:
    return " OR ".join(f"{quote_name(column)} IS NOT NULL" for column in table.columns)


def reseal_rows(rows: Sequence[Row]) -> tuple[list[Row], RotationCounts]:
    """Return the rows that change, with all their values after the change, and the counts."""
    changed: list[Row] = []
    counts = Counter[str]()
    for key, *values in rows:
        resealed = [reseal_value(bytes(value)) if value is not None else (None, "") for value in values]
        outcomes = [outcome for _, outcome in resealed if outcome]
        counts.update(outcomes)
        if "rotated" in outcomes:
            changed.append((key, *(value for value, _ in resealed)))
    return changed, RotationCounts(rows=len(rows), **counts)


def reseal_value(sealed: bytes) -> tuple[bytes, str]:
    """Return the value sealed with the first key, if any key opens it, and what it counts as in RotationCounts."""
    if is_current(sealed):
        return sealed, "current"
    try:
        return seal_anew(sealed), "rotated"
    except SealBroken:
        return sealed, "unreadable"


def write_resealed_rows(table: SealedTable, rows: Sequence[Row]) -> None:
    """Store the rows in one statement; none for no rows."""
    if not rows:
        return
    names = [quote_name(name) for name in (table.key, *table.columns)]
    assignments = ", ".join(f"{name} = new.{name}" for name in names[1:])
    arrays = ", ".join([f"%s::{table.key_type}[]", *(["%s::bytea[]"] * len(table.columns))])
    statement = (
        f"UPDATE {quote_name(table.name)} AS old SET {assignments} FROM unnest({arrays}) "  # noqa: S608 - names of our own
        f"AS new ({', '.join(names)}) WHERE old.{names[0]} = new.{names[0]}"
    )
    with binary_cursor() as cursor:
        cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])


def quote_name(name: str) -> str:
    return str(connection.ops.quote_name(name))
