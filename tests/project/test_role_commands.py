"""Jobs and commands do their work as the application's role, with the owner's URL at hand; `migrate` makes the role."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.db import connection

from memory.services.operations.reseal import find_sealed_tables
from tests import template
from tests.memory.migrations import new_database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.django_db(transaction=True)]

ROLE = "memory_of_this_test"
PASSWORD = "of@this/test"


def url_of(user: str, database: str) -> str:
    return os.environ["DATABASE_URL"].replace("//memory@/memory?", f"//{user}@/{database}?")


@pytest.fixture
def database() -> Iterator[str]:
    """A migrated database without a role of the application."""
    with new_database("role", template=template.NAME) as name:
        try:
            yield name
        finally:
            with psycopg.connect(url_of("memory", name), autocommit=True) as owner:
                owner.execute(f"DROP OWNED BY {ROLE}".encode())
                owner.execute(f"DROP ROLE {ROLE}".encode())


def test_all_jobs_and_commands_run_as_the_role_of_the_application(database: str, tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "DATABASE_URL": url_of(f"{ROLE}:{quote(PASSWORD, safe='')}", database),
        "DATABASE_OWNER_URL": url_of("memory", database),
        "MEMORY_ALLOW_TINY_EMBEDDINGS": "1",
    }

    done = subprocess.run(
        [sys.executable, "-m", "tests.project.role_commands", str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    rotated, left = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert {name: each["rotated"] for name, each in rotated["tables"].items()} == {
        table.name: len(table.columns) for table in find_sealed_tables()
    }
    assert (left["rotated"], left["unreadable"], left["current"]) == (0, 0, rotated["rotated"])
    # one of the user who was not erased, and its copy
    assert f"facts [('{ROLE}', 2)]" in done.stdout
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolpassword LIKE 'SCRAM-SHA-256$%%', rolsuper FROM pg_authid WHERE rolname = %s", [ROLE])
        assert cursor.fetchone() == (True, False)
