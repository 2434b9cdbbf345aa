"""Statements in SQL, for what the ORM cannot express. They run on Django's connection and in its transaction.

Vectors are sent in binary: as text, which Django uses for parameters, they cost ten times as much. The cursors for that
are psycopg's own, which bind parameters on the server. They are wrapped by Django's, so that their statements are
counted and logged like others.
"""

import struct
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from uuid import UUID

import numpy as np
import psycopg
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.json import JsonbLoader

Embedding = NDArray[np.float32]

VECTOR_HEAD_BYTES = 4
"""Bytes before the numbers of a sent halfvec: its dimensions and two unused bytes."""
UUID_TYPE = psycopg.adapters.types["uuid"]
ID_SIZE = struct.pack("!i", 16)
PREPARED_AFTER = 5
"""Number of executions after which the server keeps a statement prepared."""


class HalfVectorDumper(Dumper):
    """Dumps half vectors without a type oid: the server takes it from the column or cast, which saves a look-up."""

    format = Format.BINARY

    def dump(self, obj: HalfVector) -> bytes:
        return obj.to_binary()

    def quote(self, obj: HalfVector) -> bytes:
        return f"'{obj.to_text()}'".encode()


class HalfVectors:
    """A parameter of type `halfvec[]` of vectors that may have different widths, at least one."""

    def __init__(self, vectors: Sequence[Embedding]) -> None:
        self.vectors = vectors
        # not while psycopg sends the statement: its connection is locked then
        self.element_oid = halfvec_oid()

    def to_binary(self) -> bytes:
        """Return PostgreSQL's binary form: the array's head, then each element's size, width and numbers."""
        head = struct.pack("!5i", 1, 0, self.element_oid, len(self.vectors), 1)
        if len({len(vector) for vector in self.vectors}) > 1:
            return head + b"".join(self._elements([vector]) for vector in self.vectors)
        return head + self._elements(self.vectors)

    @staticmethod
    def _elements(vectors: Sequence[Embedding]) -> bytes:
        width = len(vectors[0])
        elements = np.empty(
            len(vectors), dtype=[("size", ">i4"), ("width", ">i2"), ("unused", ">i2"), ("vector", ">f2", (width,))]
        )
        elements["size"], elements["width"], elements["unused"] = VECTOR_HEAD_BYTES + 2 * width, width, 0
        with np.errstate(over="ignore"):
            elements["vector"] = np.asarray(vectors, dtype=np.float32)
        return elements.tobytes()


@cache
def halfvec_oid() -> int:
    """Return the oid of `halfvec`, which differs from database to database. One statement in the life of a process."""
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        [(oid,)] = cursor.execute("SELECT 'halfvec'::regtype::oid")
    return int(oid)


class HalfVectorsDumper(Dumper):
    """Dumps arrays of half vectors in binary. Written as numbers, one by one, they would take ten times as long."""

    format = Format.BINARY

    def dump(self, obj: HalfVectors) -> bytes:
        return obj.to_binary()

    def quote(self, obj: HalfVectors) -> bytes:
        texts = ",".join(f'"{half_vector(vector).to_text()}"' for vector in obj.vectors)
        return f"'{{{texts}}}'".encode()


@dataclass(frozen=True, slots=True)
class Ids:
    """A parameter of type `uuid[]` of many ids, at least one. In a list, each would be dumped on its own: 2 µs."""

    ids: Collection[UUID]

    def to_binary(self) -> bytes:
        """Return PostgreSQL's binary form: the array's head, then each element's size and number."""
        head = struct.pack("!5i", 1, 0, UUID_TYPE.oid, len(self.ids), 1)
        return head + b"".join([ID_SIZE + each.bytes for each in self.ids])


class IdsDumper(Dumper):
    """Dumps arrays of ids in binary."""

    format = Format.BINARY
    oid = UUID_TYPE.array_oid

    def dump(self, obj: Ids) -> bytes:
        return obj.to_binary()


psycopg.adapters.register_dumper(Ids, IdsDumper)
psycopg.adapters.register_dumper(HalfVector, HalfVectorDumper)
psycopg.adapters.register_dumper(HalfVectors, HalfVectorsDumper)


@contextmanager
def binary_cursor(results: Format = Format.TEXT, *, binds_here: bool = False) -> Generator[CursorWrapper, None, None]:
    """Yield a cursor on Django's connection and in its transaction whose parameters the server binds.

    It returns rows as text, as Django's own do, or in binary: times take 10 µs each as text, bytes twice their size.
    With `binds_here`, parameters are written into the statement.
    """
    connection.ensure_connection()
    with (psycopg.ClientCursor if binds_here else psycopg.Cursor)(connection.connection) as cursor:
        # Django has its connections leave JSON as text, for its own fields to read
        cursor.adapters.register_loader("jsonb", JsonbLoader)
        cursor.format = results
        yield connection._prepare_cursor(cursor)  # type: ignore[attr-defined]


USE_GENERIC_PLAN, USE_CUSTOM_PLAN = (
    f"SELECT set_config('plan_cache_mode', {mode}, false), set_config('enable_seqscan', {scan}, false)"
    for mode, scan in (("'force_generic_plan'", "'off'"), ("NULL", "NULL"))
)
"""Settings around statements whose plans are kept: these read tables by indexes, since a table grows after all.

A value NULL is that of the session.
"""


@contextmanager
def numbered_cursor(*, plans_once: bool = False) -> Generator[CursorWrapper, None, None]:
    """Yield such a cursor for statements with `$1`, `$2`, … that returns rows in binary: times as text cost 10 µs each.

    The server keeps repeated statements prepared: parsing a statement of 5 KB takes it as long as many a search. With
    `plans_once` it also keeps their plan, whatever the parameters are, instead of planning each execution
    (`postgresql.options`). That suits statements on few rows, whose plan takes longer than they do. Behind a pooler
    nothing of this is done: the next transaction may have another session, which has not prepared the statement and
    would keep the settings; nor where the database is distributed, since the parameters decide which machine executes
    the statement.
    """
    connection.ensure_connection()
    session = connection.connection
    if connection.settings_dict.get("IS_POOLED") or settings.DATABASE_IS_DISTRIBUTED:
        with psycopg.RawCursor(session) as cursor:
            cursor.format = Format.BINARY
            yield connection._prepare_cursor(cursor)  # type: ignore[attr-defined]
        return
    former, session.prepare_threshold = session.prepare_threshold, PREPARED_AFTER
    try:
        with (KeptPlanCursor if plans_once else psycopg.RawCursor)(session) as cursor:
            cursor.format = Format.BINARY
            yield connection._prepare_cursor(cursor)  # type: ignore[attr-defined]
    finally:
        session.prepare_threshold = former


class KeptPlanCursor(psycopg.RawCursor[Any]):
    """A cursor whose statements are executed by generic plans, and those of others after them by custom ones again."""

    def execute(self, *arguments: Any, **options: Any) -> Self:
        """Execute a statement. It and the settings around it are sent together, and answered together."""
        session = self.connection
        try:
            with session.pipeline(), psycopg.Cursor(session) as settings_cursor:
                settings_cursor.execute(USE_GENERIC_PLAN, prepare=True)
                super().execute(*arguments, **options)
                settings_cursor.execute(USE_CUSTOM_PLAN, prepare=True)
        except BaseException:
            # of a failed transaction the server has taken the setting back; psycopg may think that the statement is
            # prepared, although the server could not do it
            with suppress(psycopg.Error):
                session._prepared.clear()
                session.execute(USE_CUSTOM_PLAN)
            raise
        return self


def half_vector(embedding: Embedding | Sequence[float]) -> HalfVector:
    """Convert an embedding to a parameter of half precision: 11 bits of mantissa, range up to 65,504."""
    return HalfVector(np.asarray(embedding, dtype=np.float32))


def fetch_dicts(cursor: CursorWrapper) -> list[dict[str, Any]]:
    """Fetch all rows as dicts by column name."""
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


Parameters = Sequence[Any] | Mapping[str, Any]


def fetch_rows(statement: str, parameters: Parameters | None = None) -> list[Any]:
    """Run a statement and return its rows, which are tuples."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def execute_statement(statement: str, parameters: Parameters | None = None) -> int:
    """Run a statement and return the number of rows that it affected."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
