"""Sealing anew what is encrypted at rest, once another key is in front: every column of that kind that a model has.

Rows go by in the order of their keys, a batch a transaction. Killed anywhere, nothing is half done: what the first key
opens already is left alone, so another run goes on where this one stopped.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models, transaction

from memory_project.encryption import SealBroken, is_current, seal_anew
from memory_project.fields import SealedJSONField

BATCH_ROWS = 100
"""A row of invocations may hold a megabyte."""


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
class Batch:
    """What became of some rows of a table; `last` is the key of the last one."""

    table: str
    last: Any
    rotated: Rotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Which rows: behind a key (None: from the first on), up to another, at most so many."""

    after: Any
    until: Any
    most: int


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


def rotate_tables(tables: Sequence[SealedTable], *, batch_rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
    """Seal under the first key whatever another one opens, beside those who write; each batch is committed with its
    step. What no key opens is left as it is, and counted. Raises ImproperlyConfigured without a key."""
    for table in tables:
        yield from step_through(table, batch_rows=batch_rows, is_rehearsal=False)


def rehearse_rotation(tables: Sequence[SealedTable], *, batch_rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
    """What `rotate_tables` would do; changes nothing, and nobody waits for it."""
    for table in tables:
        yield from step_through(table, batch_rows=batch_rows, is_rehearsal=True)


def step_through(table: SealedTable, *, batch_rows: int, is_rehearsal: bool) -> Iterator[Batch]:
    # no further: what is written from now on is under the first key, and might never end
    last, until = None, last_key(table)
    while until is not None:
        with transaction.atomic():
            rows = read_rows(table, Stretch(after=last, until=until, most=batch_rows), locked=not is_rehearsal)
            anew, rotated = seal_rows(rows)
            if not is_rehearsal:
                write_rows(table, anew)
        if not rows:
            return
        last = rows[-1][0]
        yield Batch(table=table.name, last=last, rotated=rotated)


def last_key(table: SealedTable) -> Any:
    """None for an empty table."""
    key = quoted(table.key)
    with connection.cursor() as cursor:
        # names of our own
        cursor.execute(f"SELECT {key} FROM {quoted(table.name)} ORDER BY {key} DESC LIMIT 1")  # noqa: S608
        found = cursor.fetchone()
    return found[0] if found else None


def read_rows(table: SealedTable, stretch: Stretch, *, locked: bool) -> list[Row]:
    """Rows in the order of the key. Locked ones wait for other rotations alone: nobody else changes these."""
    key, columns = quoted(table.key), [quoted(name) for name in table.columns]
    behind = "" if stretch.after is None else f"{key} > %s AND "
    statement = (
        f"SELECT {', '.join([key, *columns])} FROM {quoted(table.name)} "  # noqa: S608 - names of our own
        f"WHERE {behind}{key} <= %s AND ({filled(table)}) ORDER BY {key} LIMIT %s"
        f"{' FOR NO KEY UPDATE' if locked else ''}"
    )
    bounds = [] if stretch.after is None else [stretch.after]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*bounds, stretch.until, stretch.most])
        found: list[Row] = cursor.fetchall()
    return found


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
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])


def quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
