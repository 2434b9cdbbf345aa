"""Sentences about failures of PostgreSQL that end a command: no server that can be used, or missing migrations."""

from contextlib import suppress
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from memory_project.postgresql.roles import owner_settings

UNDEFINED = frozenset(("42P01", "42703", "42883", "42704"))
"""Codes of errors about a table, a column, a function or another object that does not exist."""
MIGRATIONS_MISSING = "memory.E016"
"""The id of the system check for missing migrations."""
DEFAULT_PORT = 5432
CONNECT_SECONDS = 3


def explain_failure(err: Exception) -> str | None:
    """Return what is wrong and what to do, in a sentence; None for an error of another kind, such as a fault."""
    if isinstance(err, (OperationalError, psycopg.OperationalError)):
        return describe_outage()
    if getattr(err.__cause__ or err, "sqlstate", None) in UNDEFINED:
        with suppress(Error):
            return describe_missing_migrations()
    return None


def describe_missing_migrations() -> str | None:
    """Return a sentence if the database lacks migrations of this version, else None. Raises DatabaseError."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if not executor.loader.applied_migrations:
        return "The database lacks its tables: wait until `make up` has made them, or run `manage.py migrate`."
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return None
    number = "1 migration" if len(plan) == 1 else f"{len(plan)} migrations"
    return f"The database lacks {number} of this version, first {plan[0][0]}: run `manage.py migrate`."


def describe_outage() -> str | None:
    """Return a sentence with the place of the server and the reason why it takes no connection; None if it does."""
    for variable, given in (("DATABASE_URL", {}), ("DATABASE_OWNER_URL", owner_settings())):
        if given is None:
            continue
        connection: Any = connections[DEFAULT_DB_ALIAS].copy()
        connection.settings_dict |= given
        parameters = {**connection.get_connection_params(), "connect_timeout": CONNECT_SECONDS}
        try:
            psycopg.connect(**parameters).close()
        except psycopg.OperationalError as err:
            return (
                f"PostgreSQL at {name_place(parameters)} cannot be used: {shorten_reason(str(err))}. "
                f"Check {variable}, and that the server runs."
            )
    return None


def name_place(parameters: dict[str, Any]) -> str:
    """Return host and port, or the folder of the socket."""
    host = str(parameters.get("host") or "localhost")
    if host.startswith("/"):
        return host
    return f"{f'[{host}]' if ':' in host else host}:{parameters.get('port') or DEFAULT_PORT}"


def shorten_reason(text: str) -> str:
    """Return the reason from a message of the driver, which puts the place before it and lines of advice behind it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    found = next((line for line in lines if "failed: " in line), lines[0])
    reason = found.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
    return reason[:1].lower() + reason[1:]
