"""Statements in SQL, for what the ORM cannot express. They run on Django's connection and in its transaction.

Vectors are sent in binary: as text, which Django uses for parameters, they cost ten times as much. The cursors for that
are psycopg's own, which bind parameters on the server. They are wrapped by Django's, so that their statements are
counted and logged like others.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.json import JsonbLoader

Embedding = NDArray[np.float32]

PREPARED_AFTER = 5
"""Number of executions after which the server keeps a statement prepared."""


class HalfVectorDumper(Dumper):
    """Dumps half vectors without a type oid: the server takes it from the column or cast, which saves a look-up."""

    format = Format.BINARY

    def dump(self, obj: HalfVector) -> bytes:
        return obj.to_binary()

    def quote(self, obj: HalfVector) -> bytes:
        return f"'{obj.to_text()}'".encode()


psycopg.adapters.register_dumper(HalfVector, HalfVectorDumper)


@contextmanager
def binary_cursor() -> Generator[CursorWrapper, None, None]:
    """Yield a cursor on Django's connection and in its transaction whose parameters the server binds."""
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        # Django has its connections leave JSON as text, for its own fields to read
        cursor.adapters.register_loader("jsonb", JsonbLoader)
        yield connection._prepare_cursor(cursor)  # type: ignore[attr-defined]


@contextmanager
def numbered_cursor() -> Generator[CursorWrapper, None, None]:
    """Yield such a cursor for statements with `$1`, `$2`, … that returns rows in binary: times as text cost 10 µs each.

    The server keeps repeated statements prepared: parsing a statement of 5 KB takes it as long as many a search.
    """
    connection.ensure_connection()
    session = connection.connection
    former, session.prepare_threshold = session.prepare_threshold, PREPARED_AFTER
    try:
        with psycopg.RawCursor(session) as cursor:
            cursor.format = Format.BINARY
            yield connection._prepare_cursor(cursor)  # type: ignore[attr-defined]
    finally:
        session.prepare_threshold = former


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
