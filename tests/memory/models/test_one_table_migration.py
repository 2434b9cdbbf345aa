"""The migrations from a table for each kind to one table, over rows of every kind."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection
from pytest_django import DjangoDbBlocker

from memory_project.tenancy import INSTALLATION_TABLES, ReferenceInAccount
from tests.memory.former_rows import KINDS, LAST_ALIKE, ROWS, contents, fill, tables
from tests.memory.migrations import (
    StoppedError,
    connected_to,
    fetch,
    migrate_forward,
    migrate_to,
    new_database,
    other_connection,
    schema,
    stopping_at,
    wait_for,
)

first_half: Any = import_module("memory.migrations.0020_kind_columns")
keys: Any = import_module("memory.migrations.0022_accounts_in_keys")

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def _former(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Make a database of the former version with rows of every kind, and return its name."""
    with django_db_blocker.unblock(), new_database("former") as name:
        with connected_to(name):
            fill(migrate_to("0019_encryption_canary", ledger="0001_initial"))
        yield name


@pytest.fixture(autouse=True)
def _own_database(_former: str, transactional_db: None) -> Iterator[None]:
    with new_database("migrated", template=_former) as name, connected_to(name):
        yield


def copied() -> dict[Any, Any]:
    """Return the memories that have columns of their kind, and the transactions that wrote them."""
    rows = fetch("SELECT id, xmin::text FROM memories WHERE coalesce(log_id::text, key_decisions::text, status) <> ''")
    return dict(rows)


def test_rows_of_every_kind_keep_their_content() -> None:
    before = contents()
    of_account = before.keys() - INSTALLATION_TABLES.keys()
    assert all(len(before[table]) >= 2 * ROWS for table in of_account)

    migrate_to(LAST_ALIKE)

    after = contents()
    assert after == before
    assert {row["kind"] for row in after["memories"].values()} == set(KINDS.values())


def test_a_migrated_database_has_the_schema_of_a_new_one() -> None:
    migrate_forward()

    found = schema()
    with connected_to(connection.settings_dict["NAME"].removesuffix("_migrated")):
        # other tests build indexes of their accounts
        assert found == {each for each in schema() if not each[0].startswith("vectors_of_")}
    assert not KINDS.keys() & set(tables())
    validated = {name for name, _, is_valid in found if is_valid}
    for model in apps.get_app_config("memory").get_models():
        wanted = {each.name for each in model._meta.constraints if isinstance(each, ReferenceInAccount)}
        if model._meta.managed:
            assert {f"{model._meta.db_table}.{name}" for name in wanted} <= validated


def test_copying_goes_on_where_it_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents()
    monkeypatch.setattr(first_half, "ROWS_AT_A_TIME", 3)
    with pytest.raises(StoppedError), stopping_at(3, "UPDATE memories"):
        migrate_to("0020_kind_columns")
    first = copied()
    assert len(first) == 6

    migrate_to("0020_kind_columns")

    assert first.items() <= copied().items()
    migrate_to(LAST_ALIKE)
    assert contents() == before


@pytest.mark.slow
def test_copying_goes_on_after_the_process_was_killed() -> None:
    before = contents()
    url = os.environ["DATABASE_URL"].replace("/memory?", f"/{connection.settings_dict['NAME']}?")
    command = [sys.executable, "manage.py", "migrate", "memory", "0020", "--verbosity=0", "--skip-checks"]
    # with the columns, which are added under a lock that the writer would not let it have
    with pytest.raises(StoppedError), stopping_at(1, "UPDATE memories"):
        migrate_to("0020_kind_columns")
    with other_connection() as writer:
        writer.execute("SELECT FROM memories WHERE kind = 'goal' FOR UPDATE")
        with subprocess.Popen(command, env=os.environ | {"DATABASE_URL": url}) as migration:
            try:
                wait_for(
                    "SELECT FROM pg_stat_activity WHERE datname = current_database()"
                    " AND wait_event_type = 'Lock' AND query LIKE 'UPDATE memories%'"
                )
            finally:
                # SIGKILL
                migration.kill()
    assert copied()

    migrate_to(LAST_ALIKE)

    assert contents() == before


REQUIRED = """
account_id, kind, agent_id, user_id, channel, conversation_id, text, language, content_hash, token_count, salience,
access_count, event_time, archived, quarantined, buried, pinned, source, trust, version, metadata, embed_attempts,
embed_error
"""

CHANGES = f"""
UPDATE turns SET payload = '{{"z": 1, "a": 2}}', name = 'changed' WHERE index % 2 = 0;
UPDATE facts SET source_turn_id = NULL, valid_to = NULL;
UPDATE goals SET status = 'completed', completed_at = now(), result = 'done';
UPDATE memories SET text = 'renamed' WHERE kind = 'entity';
DELETE FROM episodic_memories;
DELETE FROM memories WHERE kind = 'episode';
INSERT INTO memories (id, identity, {REQUIRED}) SELECT gen_random_uuid(), 'new ' || id, {REQUIRED} FROM memories
WHERE kind = 'entity';
INSERT INTO entities (memory_ptr_id, name, type, aliases, description, properties)
SELECT id, 'new', 'person', '[]', 'é', '{{"b": 1, "a": []}}' FROM memories
WHERE kind = 'entity' AND id NOT IN (SELECT memory_ptr_id FROM entities);
"""


def test_what_the_former_version_writes_after_a_row_was_copied_is_kept() -> None:
    migrate_to("0020_kind_columns")
    with connection.cursor() as cursor:
        cursor.execute(CHANGES)
    changed = contents()

    migrate_to(LAST_ALIKE)

    assert contents() == changed


INVALID = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"


@pytest.mark.slow
def test_keys_go_on_where_they_were_stopped_and_an_unfinished_index_is_built_again() -> None:
    before = contents()
    migrate_to("0021_one_table")
    with other_connection() as writer:
        # building an index waits for those who write
        writer.execute("UPDATE memory_links SET weight = weight")
        fetch("SELECT set_config('lock_timeout', '500', false)")
        with pytest.raises(DatabaseError, match="lock timeout"):
            migrate_to("0022_accounts_in_keys")
    assert fetch(INVALID) == [("memory_links_by_account",)]
    fetch("SELECT set_config('lock_timeout', '0', false)")

    with pytest.raises(StoppedError), stopping_at(10, "VALIDATE CONSTRAINT"):
        migrate_to("0022_accounts_in_keys")
    migrate_to(LAST_ALIKE)
    assert contents() == before
    migrate_forward()

    found = schema()
    with connected_to(connection.settings_dict["NAME"].removesuffix("_migrated")):
        assert found == {each for each in schema() if not each[0].startswith("vectors_of_")}


@pytest.mark.parametrize("name", ["0020_kind_columns", "0022_accounts_in_keys"])
def test_reads_do_not_wait_for_copies_and_for_new_keys(name: str) -> None:
    if name != "0020_kind_columns":
        migrate_to("0021_one_table")
    held: list[str] = []
    with other_connection() as reader:

        def execute_while_read(execute: Callable[..., Any], sql: Any, *args: Any) -> Any:
            # these take a lock for milliseconds, whatever the size of the tables
            if "ADD COLUMN" in str(sql) or connection.in_atomic_block:
                return execute(sql, *args)
            reader.execute(f"LOCK TABLE {', '.join(read)} IN ACCESS SHARE MODE")
            try:
                return execute(sql, *args)
            finally:
                reader.rollback()
                held.append(str(sql))

        read = tables()
        fetch("SELECT set_config('lock_timeout', '1s', false)")
        with connection.execute_wrapper(execute_while_read):
            migrate_to(name)

    expected = {"0020_kind_columns": "UPDATE memories", "0022_accounts_in_keys": "VALIDATE CONSTRAINT"}
    assert sum(expected[name] in sql for sql in held) > 10


@pytest.mark.slow
def test_progress_is_shown_of_large_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(first_half, "ROWS_AT_A_TIME", 4)
    monkeypatch.setattr(keys, "REPORTED_ROWS", 10)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories")

    migrate_forward()

    shown = capsys.readouterr().out
    assert "turns: 8 of 10 rows copied" in shown
    assert "turns: 10 of 10 rows copied" in shown
    assert "keys: 1 of " in shown
    assert "references: 1 of " in shown
