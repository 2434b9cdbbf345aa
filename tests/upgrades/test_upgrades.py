"""Every database of a former version migrates forward, and what it holds stays as it was."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory.services.backup.database import choose_program
from memory_project.embedded.paths import PROJECT
from memory_project.embedded.postgres import MAJOR_VERSION
from tests.upgrades.checksums import ENCRYPTION_KEY, read_checksums
from tests.upgrades.test_additive import OWN_APPS, former_state, version_of

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

NEVER_CHANGED = {"memory_audit_log", "memory_audit_late"}
"""Tables whose rows no version changes."""


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


def columns_of_last_version() -> dict[str, set[str]]:
    """Return the columns by table that the models of the last version read and write."""
    found: dict[str, set[str]] = {}
    for model in former_state().apps.get_models():
        if model._meta.app_label in OWN_APPS and model._meta.db_table not in NEVER_CHANGED:
            written = [str(field.column) for field in model._meta.concrete_fields if not field.generated]
            found.setdefault(model._meta.db_table, set()).update(written)
    return found


@pytest.mark.slow
@pytest.mark.django_db
def test_rows_are_written_as_by_the_last_version_before_and_after_the_migrations() -> None:
    with database_of(max(DUMPS, key=version_of)) as url:
        before = write_samples(url)
        manage("migrate", "--verbosity=0", url=url)
        after = write_samples(url)

    assert {each: refused for each, refused in after.items() if refused != before[each]} == {}
    inserted = {
        table for (table, _, verb), refused in after.items() if (verb, refused) == ("INSERT", "UniqueViolation")
    }
    updated = {table for (table, _, verb), refused in after.items() if (verb, refused) == ("UPDATE", "")}
    assert min(len(inserted), len(updated)) > 20
    assert sum(table == "memories" for table, _, _ in after) > 20


def write_samples(url: str) -> dict[tuple[str, Any, str], str]:
    """Write rows of each table of the last version, with its columns, and return what refused that."""
    with psycopg.connect(url, autocommit=True) as connection:
        return {
            (table, key, statement.partition(" ")[0]): refusal_of(connection, statement, key)
            for table, columns in columns_of_last_version().items()
            for key in keys_of_samples(connection, table)
            for statement in (update_sql(table, columns), insert_sql(table, columns))
        }


def keys_of_samples(connection: "psycopg.Connection[Any]", table: str) -> list[Any]:
    """Return the primary key of a row of the table, and of one of each kind of memory."""
    if table == "memories":
        found = connection.execute("SELECT DISTINCT ON (kind) id FROM memories ORDER BY kind, id")
    else:
        found = connection.execute(f"SELECT id FROM {table} ORDER BY id LIMIT 1".encode())
    return [key for (key,) in found]


def update_sql(table: str, columns: set[str]) -> str:
    """Return the statement that leaves a row as it is."""
    same = ", ".join(f'"{column}" = "{column}"' for column in sorted(columns))
    return f"UPDATE {table} SET {same} WHERE id = %s"


def insert_sql(table: str, columns: set[str]) -> str:
    """Return the statement that inserts a row once more. That it is there already is looked for last."""
    names = ", ".join(f'"{column}"' for column in sorted(columns))
    return f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} WHERE id = %s"


def refusal_of(connection: "psycopg.Connection[Any]", statement: str, key: Any) -> str:
    """Return the name of the error of a statement, empty for none."""
    try:
        connection.execute(statement.encode(), [key])
    except psycopg.Error as err:
        return type(err).__name__
    return ""
