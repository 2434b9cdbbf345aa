"""Statements in SQL, for what the ORM cannot express. They run on Django's connection and in its transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

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
