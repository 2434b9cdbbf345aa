"""A connection of its own that sees the database as it was at one moment, next to the connection of the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


@contextmanager
def open_snapshot() -> Iterator["psycopg.Connection[Any]"]:
    """Open a transaction that reads at one moment. It may only write temporary tables, which go with it."""
    parameters = connection.get_connection_params()
    for name in ("pool", "cursor_factory", "server_side_binding", "context"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SET LOCAL statement_timeout = 0")
        session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        try:
            yield session
        finally:
            session.rollback()
