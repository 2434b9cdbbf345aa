"""Migrations over data of a former version: in a database of their own, since they do not go back."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from django.db import connection

from memory.management.commands.migrate import LeanExecutor


@contextmanager
def empty_database() -> Iterator[None]:
    """Connect to a new database without tables. For tests that commit."""
    with new_database("migrated") as name, connected_to(name):
        yield


@contextmanager
def new_database(suffix: str, *, template: str = "template1") -> Iterator[str]:
    """Create a database as a copy of another, and yield its name. It is dropped at the end of the block."""
    name = f"{connection.settings_dict['NAME']}_{suffix}"
    # sessions of processes that were killed, and connections that were closed, end a moment later
    wait_for(
        f"SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '{template}'"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid())"
    )
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield name
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    """Use the database of this name within the block."""
    settings: Any = connection.settings_dict
    former = settings["NAME"]
    connect_to(name)
    try:
        yield
    finally:
        connect_to(former)


def connect_to(name: str) -> None:
    database: Any = connection
    database.close()
    database.close_pool()
    database.settings_dict["NAME"] = name


def migrate_to(name: str, **others: str) -> Any:
    """Migrate to a migration, and to those of other apps by their labels. Return the models."""
    targets = [("memory", name), *others.items()]
    LeanExecutor(connection).migrate(targets)
    return LeanExecutor(connection).loader.project_state(targets).apps


def migrate_forward() -> None:
    """Migrate to the latest version."""
    executor = LeanExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


class StoppedError(Exception):
    """The migration was stopped."""


def stopping_at(number: int, text: str) -> AbstractContextManager[None]:
    """Let the statement of this number, from 1, that contains `text` raise instead of being executed."""
    seen = []

    def count(execute: Callable[..., Any], sql: Any, *args: Any) -> Any:
        if text in str(sql):
            seen.append(sql)
        if len(seen) == number:
            raise StoppedError
        return execute(sql, *args)

    return connection.execute_wrapper(count)


def other_connection() -> "psycopg.Connection[Any]":
    """Return another connection to the database, within a transaction from its first statement on."""
    connection.ensure_connection()
    return psycopg.connect(connection.connection.info.dsn)


def fetch(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows: list[Any] = cursor.fetchall()
        return rows


def wait_for(statement: str) -> None:
    """Wait until the statement returns a row."""
    deadline = time.monotonic() + 60
    while not fetch(statement):
        assert time.monotonic() < deadline, statement
        time.sleep(0.02)


AUDIT_PARTITION = re.compile(r"memory_audit_log_\d")
SCHEMA = """
SELECT conrelid::regclass::text || '.' || conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT attrelid::regclass::text || '.' || attname, format_type(atttypid, atttypmod), NOT attnotnull
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p')
"""


def schema() -> set[tuple[str, str, bool]]:
    """Return constraints, indexes and columns: name, definition, and whether it is valid or, of a column, nullable."""
    # the days of which the audit log has partitions depend on what was logged
    return {row for row in fetch(SCHEMA) if not AUDIT_PARTITION.match(row[0])}
