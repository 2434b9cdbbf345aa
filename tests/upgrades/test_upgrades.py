"""Every database of a former version migrates forward, and what it holds stays as it was."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from memory.services.backup.database import choose_program
from memory_project.embedded.paths import PROJECT
from memory_project.embedded.postgres import MAJOR_VERSION
from tests.upgrades.checksums import ENCRYPTION_KEY, read_checksums

DUMPS = sorted(Path(__file__).parent.glob("*.sql.gz"))
NAMES = [path.name.removesuffix(".sql.gz") for path in DUMPS]
CHANGED_BY_MIGRATIONS: dict[str, set[str]] = {
    # every migration adds rows to them
    "django_migrations": {"*"},
    "django_content_type": {"*"},
    "auth_permission": {"*"},
    # the groups of staff are made and extended after every migration
    "auth_group": {"*"},
    "auth_group_permissions": {"*"},
}
"""Columns by table that a later migration changes on purpose. Say why."""


@contextmanager
def database_of(dump: Path) -> Iterator[str]:
    """Yield the URL of a database that is restored from the dump."""
    server = os.environ["DATABASE_URL"]
    name = f"upgrade_{os.getpid()}"
    url = server.replace("/memory?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            run([str(choose_program("psql", int(MAJOR_VERSION))), "--quiet", "--set=ON_ERROR_STOP=1", url], dump)
            yield url
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def run(command: list[str], dump: Path) -> None:
    done = subprocess.run(command, input=gzip.decompress(dump.read_bytes()), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]


def manage(*arguments: str, url: str) -> str:
    environ = os.environ | {"DATABASE_URL": url, "MEMORY_ENCRYPTION_KEYS": ENCRYPTION_KEY}
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=PROJECT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("dump", DUMPS, ids=NAMES)
def test_a_former_database_migrates_forward_unchanged(dump: Path) -> None:
    with database_of(dump) as url:
        with psycopg.connect(url) as connection:
            before = read_checksums(connection)

        manage("migrate", "--verbosity=0", url=url)

        with psycopg.connect(url) as connection:
            after = read_checksums(connection, before)
        changed = {
            f"{table}.{column}"
            for table, columns in after.items()
            for column, checksum in columns.items()
            if checksum != before[table][column] and not {"*", column} & CHANGED_BY_MIGRATIONS.get(table, set())
        }
        assert changed == set()
        assert sum(any(not each.startswith("0 ") for each in columns.values()) for columns in before.values()) > 30
        # what is sealed in it opens, too
        assert '"unreadable": 0' in manage("rotate_encryption_keys", "--dry-run", "--json", url=url)
