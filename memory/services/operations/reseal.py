"""Sealing anew what is encrypted at rest, once another key is in front: every column of that kind that a model has.

Rows go by in the order of their keys, a batch a transaction. Killed anywhere, nothing is half done: what the first key
opens already is left alone, so another run goes on where this one stopped.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.apps import apps
from django.db import connection, models, transaction

from memory.models.binary import binary_cursor
from memory_project.encryption import SealBroken, is_current, seal_anew
from memory_project.fields import SealedJSONField

BATCH_ROWS = 100
BATCH_BYTES = 8 * 1024 * 1024
"""Of sealed values: a row of invocations may have a megabyte, and whoever writes to one waits for its batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTable:
    """A table, its key, and its columns that are sealed."""

    name: str
    key: str
    key_type: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """Sealed values so far, of rows looked at: sealed anew (or to be, on a dry run), current already, unreadable."""

    rows: int = 0
    rotated: int = 0
    current: int = 0
    unreadable: int = 0

    def __add__(self, other: "Rotated") -> "Rotated":
        return Rotated(
            rows=self.rows + other.rows,
            rotated=self.rotated + other.rotated,
            current=self.current + other.current,
            unreadable=self.unreadable + other.unreadable,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """How much is sealed anew in a transaction at most; a single row, however large it is, goes by."""

    rows: int = BATCH_ROWS
    bytes: int = BATCH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What became of some rows of a table; `last` is the key of the last one."""

    table: str
    last: Any
    rotated: Rotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Which rows: behind a key (None: from the first on), up to another."""

    after: Any
    until: Any


Row = tuple[Any, ...]
"""A row's key, then its sealed values."""


def sealed_tables() -> list[SealedTable]:
    """Every table with sealed columns, by name: whatever model has such a field is rotated."""
    found = [describe_table(model) for model in apps.get_models() if not model._meta.proxy and model._meta.managed]
    return sorted((table for table in found if table.columns), key=lambda table: table.name)


def describe_table(model: type[models.Model]) -> SealedTable:
    meta = model._meta
    sealed = [field for field in meta.local_concrete_fields if isinstance(field, SealedJSONField)]
    return SealedTable(
        name=meta.db_table,
        key=str(meta.pk.column),
        # without a length, which no key needs here
        key_type=str(meta.pk.db_type(connection)).partition("(")[0],
        columns=tuple(str(field.column) for field in sealed),
    )


def count_rows(table: SealedTable) -> int:
    """Those with something sealed."""
    with connection.cursor() as cursor:
        # names of our own
        cursor.execute(f"SELECT count(*) FROM {quoted(table.name)} WHERE {filled(table)}")  # noqa: S608
        [count] = cursor.fetchone()
    return int(count)


def rotate_tables(tables: Sequence[SealedTable], *, size: BatchSize = BatchSize()) -> Generator[Batch, None, None]:
    """Seal under the first key whatever another one opens, beside those who write; each batch is committed with its
    step. What no key opens is left as it is, and counted. Raises ImproperlyConfigured without a key."""
    for table in tables:
        yield from step_through(table, size=size, is_rehearsal=False)


def rehearse_rotation(tables: Sequence[SealedTable], *, size: BatchSize = BatchSize()) -> Generator[Batch, None, None]:
    """What `rotate_tables` would do; changes nothing, and nobody waits for it."""
    for table in tables:
        yield from step_through(table, size=size, is_rehearsal=True)


def step_through(table: SealedTable, *, size: BatchSize, is_rehearsal: bool) -> Iterator[Batch]:
    # no further: what is written from now on is under the first key, and might never end
    last, until = None, last_key(table)
    while until is not None:
        left = Stretch(after=last, until=until)
        with transaction.atomic():
            last = end_of_batch(table, left, size=size)
            if last is None:
                return
            rows = read_rows(table, replace(left, until=last), locked=not is_rehearsal)
            anew, rotated = seal_rows(rows)
            if not is_rehearsal:
                write_rows(table, anew)
        yield Batch(table=table.name, last=last, rotated=rotated)


def last_key(table: SealedTable) -> Any:
    """None for an empty table."""
    key = quoted(table.key)
    with connection.cursor() as cursor:
        # names of our own
        cursor.execute(f"SELECT {key} FROM {quoted(table.name)} ORDER BY {key} DESC LIMIT 1")  # noqa: S608
        found = cursor.fetchone()
    return found[0] if found else None


def end_of_batch(table: SealedTable, left: Stretch, *, size: BatchSize) -> Any:
    """The key of the last row that still goes into a batch; None where none is left. No value is read for it."""
    key, (where, bounds) = quoted(table.key), bounded(table, left)
    length = " + ".join(f"coalesce(octet_length({quoted(column)}), 0)" for column in table.columns)
    statement = (
        f"SELECT key FROM (SELECT key, length, sum(length) OVER (ORDER BY key) AS total FROM "  # noqa: S608 - our own
        f"(SELECT {key} AS key, {length} AS length FROM {quoted(table.name)} WHERE {where} ORDER BY {key} LIMIT %s) "
        "AS next) AS summed WHERE total <= %s OR total = length ORDER BY key DESC LIMIT 1"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*bounds, size.rows, size.bytes])
        found = cursor.fetchone()
    return found[0] if found else None


def read_rows(table: SealedTable, stretch: Stretch, *, locked: bool) -> list[Row]:
    """Rows in the order of the key. Locked ones wait for other rotations and for erasures, nobody else."""
    key, (where, bounds) = quoted(table.key), bounded(table, stretch)
    statement = (
        f"SELECT {', '.join([key, *map(quoted, table.columns)])} FROM {quoted(table.name)} "  # noqa: S608 - our own
        f"WHERE {where} ORDER BY {key}{' FOR NO KEY UPDATE' if locked else ''}"
    )
    with binary_cursor() as cursor:
        cursor.execute(statement, bounds)
        found: list[Row] = cursor.fetchall()
    return found


def bounded(table: SealedTable, stretch: Stretch) -> tuple[str, list[Any]]:
    """A condition for the rows of a stretch that have something sealed, and its parameters."""
    key = quoted(table.key)
    behind, bounds = ("", []) if stretch.after is None else (f"{key} > %s AND ", [stretch.after])
    return f"{behind}{key} <= %s AND ({filled(table)})", [*bounds, stretch.until]


def filled(table: SealedTable) -> str:
    return " OR ".join(f"{quoted(column)} IS NOT NULL" for column in table.columns)


def seal_rows(rows: Sequence[Row]) -> tuple[list[Row], Rotated]:
    """The rows that change, with all their values as they shall be; and the figures."""
    changed: list[Row] = []
    total = Rotated(rows=len(rows))
    for key, *values in rows:
        anew, rotated = seal_values(values)
        total += rotated
        if rotated.rotated:
            changed.append((key, *anew))
    return changed, total


def seal_values(values: Sequence[Any]) -> tuple[list[bytes | None], Rotated]:
    anew: list[bytes | None] = []
    rotated = current = unreadable = 0
    for value in values:
        sealed = None if value is None else bytes(value)
        if sealed is None:
            pass
        elif is_current(sealed):
            current += 1
        else:
            try:
                sealed = seal_anew(sealed)
                rotated += 1
            except SealBroken:
                unreadable += 1
        anew.append(sealed)
    return anew, Rotated(rotated=rotated, current=current, unreadable=unreadable)


def write_rows(table: SealedTable, rows: Sequence[Row]) -> None:
    """One statement; none for no rows."""
    if not rows:
        return
    names = [quoted(name) for name in (table.key, *table.columns)]
    assignments = ", ".join(f"{name} = anew.{name}" for name in names[1:])
    arrays = ", ".join([f"%s::{table.key_type}[]", *(["%s::bytea[]"] * len(table.columns))])
    statement = (
        f"UPDATE {quoted(table.name)} AS old SET {assignments} FROM unnest({arrays}) "  # noqa: S608 - names of our own
        f"AS anew ({', '.join(names)}) WHERE old.{names[0]} = anew.{names[0]}"
    )
    with binary_cursor() as cursor:
        cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])


def quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
