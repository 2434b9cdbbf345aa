"""Commands of `manage.py` on a database that lacks migrations, and without one: a sentence, and no traceback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.db import OperationalError, ProgrammingError, connection, transaction

from memory_project.postgresql.failures import (
    describe_missing_migrations,
    explain_failure,
    name_place,
    shorten_reason,
)

PROJECT = Path(__file__).parents[2]
NO_TABLES = "The database lacks its tables: wait until `make up` has made them, or run `manage.py migrate`."
NOBODY_LISTENS = "postgres://somebody:hidden@127.0.0.1:1/memory"


@pytest.fixture
def empty_database(db: None) -> Iterator[str]:
    """Return the URL of a database without tables."""
    name = f"empty_{uuid4().hex[:12]}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        yield os.environ["DATABASE_URL"].replace("/memory?", f"/{name}?")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def run(url: str, *command: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": url} | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_a_command_says_that_the_database_lacks_its_tables(empty_database: str) -> None:
    done = run(empty_database, "memory_stats")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{NO_TABLES}\n")


@pytest.mark.parametrize("command", ["memory_stats", "migrate"])
def test_a_command_says_where_and_why_postgresql_does_not_answer(command: str) -> None:
    done = run(NOBODY_LISTENS, command)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "PostgreSQL at 127.0.0.1:1 cannot be used: connection refused. Check DATABASE_URL, and that the server runs.\n"
    )


@pytest.mark.django_db
def test_missing_migrations_are_counted_and_the_first_is_named() -> None:
    assert describe_missing_migrations() is None

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    assert describe_missing_migrations() == (
        "The database lacks 1 migration of this version, first sessions.0001_initial: run `manage.py migrate`."
    )

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations")
    assert describe_missing_migrations() == NO_TABLES


@pytest.mark.django_db
def test_an_unknown_table_in_a_migrated_database_is_a_fault_and_needs_its_traceback() -> None:
    with pytest.raises(ProgrammingError) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM nowhere")

    assert explain_failure(raised.value) is None


@pytest.mark.django_db
def test_an_operational_error_of_a_server_that_answers_needs_its_traceback() -> None:
    assert explain_failure(OperationalError("deadlock detected")) is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            (
                'connection failed: connection to server at "127.0.0.1", port 1 failed: Connection refused\n'
                "\tIs the server running on that host and accepting TCP/IP connections?\n"
            ),
            "connection refused",
        ),
        (
            (
                'connection failed: connection to server at "10.0.0.1", port 5432 failed: FATAL:  database "x" does '
                "not exist"
            ),
            'database "x" does not exist',
        ),
        (
            'connection failed: connection to server on socket "/s/.s.PGSQL.5432" failed: No such file or directory',
            "no such file or directory",
        ),
        (
            "failed to resolve host 'db': [Errno -2] Name or service not known",
            "failed to resolve host 'db': [Errno -2] Name or service not known",
        ),
        ("connection timeout expired", "connection timeout expired"),
        ("", "no reason given"),
    ],
)
def test_the_reason_of_an_outage_is_what_the_driver_says_of_it(message: str, reason: str) -> None:
    assert shorten_reason(message) == reason


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ({"host": "db.example", "port": "6432"}, "db.example:6432"),
        ({"host": "::1"}, "[::1]:5432"),
        ({"host": "/run/postgresql"}, "/run/postgresql"),
        ({}, "localhost:5432"),
    ],
)
def test_the_place_of_a_server_is_host_and_port_or_the_folder_of_its_socket(
    parameters: dict[str, str], place: str
) -> None:
    assert name_place(parameters) == place
