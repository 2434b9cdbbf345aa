"""A connection of its own that sees the database as it was at one moment, next to the connection of the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections

from memory_project.postgresql.hangs import watched_connection
from memory_project.postgresql.replicas import PRIMARY


@contextmanager
def open_snapshot(alias: str = PRIMARY) -> Iterator["psycopg.Connection[Any]"]:
    """Open a transaction that reads at one moment, at the primary or at a replica, which both write nothing in it."""
    parameters = connections[alias].get_connection_params()
    for name in ("pool", "cursor_factory", "server_side_binding", "context"):
        parameters.pop(name, None)
    with watched_connection(alias).connect(**parameters) as session:
        session.isolation_level, session.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        session.execute("SET LOCAL statement_timeout = 0")
        session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        # cursors are read to their ends: what all rows take counts, not what the first ones do
        session.execute("SET LOCAL cursor_tuple_fraction = 1")
        yield session
