"""The migration of `memory_vectors` to a partitioned table, over vectors of two accounts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from memory import conf
from memory.services.embedding.vector_index import find_partitions
from tests.memory.former_rows import LAST_ALIKE, ROWS, contents, fill
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

migration: Any = import_module("memory.migrations.0025_partitioned_vectors")

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

FORMER, NEW = "0024_queues_by_account", "0025_partitioned_vectors"


@pytest.fixture(scope="module")
def _former(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Make a database of the former version with rows of every kind, and return its name."""
    with django_db_blocker.unblock(), new_database("former") as name:
        with connected_to(name):
            fill(migrate_to("0019_encryption_canary", ledger="0001_initial"))
            migrate_to(FORMER)
        yield name


@pytest.fixture(autouse=True)
def _own_database(_former: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(migration, "ROWS_AT_A_TIME", 3)
    with new_database("migrated", template=_former) as name, connected_to(name):
        yield


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def contents_of_former() -> dict[str, Any]:
    """Return all rows, without the copies of those that are still in the former table."""
    return {table: rows for table, rows in contents().items() if table != "memory_vectors_new"}


PARTITIONS = "SELECT account_id, array_agg(DISTINCT tableoid::regclass::text) FROM memory_vectors GROUP BY 1"


def test_vectors_keep_their_content_in_the_partition_of_their_account() -> None:
    before = contents()
    assert len(before["memory_vectors"]) == 2 * ROWS

    migrate_to(LAST_ALIKE)

    assert contents() == before
    found = dict(
        fetch("SELECT account_id, array_agg(DISTINCT tableoid::regclass::text) FROM memory_vectors GROUP BY 1")
    )
    assert found == {account: find_partitions(account) for account in found}
    assert (len(found), len(find_partitions())) == (2, conf.VECTOR_PARTITIONS)


def test_a_migrated_database_has_the_schema_of_a_new_one() -> None:
    migrate_forward()

    found = schema()
    with connected_to(connection.settings_dict["NAME"].removesuffix("_migrated")):
        # other tests build indexes of their accounts
        assert found == {each for each in schema() if not each[0].startswith("vectors_of_")}
    assert not [name for name, _, _ in found if "vector" in name and "_new" in name]
    assert fetch("SELECT FROM pg_proc WHERE proname = 'memory_vectors_mirror'") == []


LINES = [
    ("PARTITION OF memory_vectors_new", 5),
    ("CREATE FUNCTION memory_vectors_mirror", 1),
    ("INSERT INTO memory_vectors_new SELECT *", 1),
    ("INSERT INTO memory_vectors_new SELECT *", 3),
    ("ADD CONSTRAINT", 2),
    ("LOCK TABLE accounts", 1),
    ("LOCK TABLE accounts", 2),
    ("DROP TABLE memory_vectors", 1),
    ("ANALYZE memory_vectors", 1),
]


@pytest.mark.parametrize(("text", "number"), LINES)
def test_it_goes_on_where_it_was_stopped(text: str, number: int) -> None:
    before = contents()
    with pytest.raises(StoppedError), stopping_at(number, text):
        migrate_to(NEW)
    execute(CHANGES)
    changed = contents_of_former()
    assert changed["memory_vectors"] != before["memory_vectors"]

    migrate_to(LAST_ALIKE)
    assert contents() == changed
    migrate_forward()

    found = schema()
    with connected_to(connection.settings_dict["NAME"].removesuffix("_migrated")):
        # other tests build indexes of their accounts
        assert found == {each for each in schema() if not each[0].startswith("vectors_of_")}


# as the former version writes: texts embedded anew, memories that move, are archived, or deleted with their vectors
CHANGES = """
INSERT INTO memory_vectors (id, memory_id, account_id, kind, agent_id, user_id, channel, conversation_id,
    context_id, event_time, live, expires_at, model, width, vector)
SELECT gen_random_uuid(), id, account_id, kind, agent_id, user_id, channel, conversation_id, context_id, event_time,
    true, expires_at, 'new', 2, '[1,2]'
FROM memories WHERE kind = 'goal';
UPDATE memory_vectors SET vector = '[7,8,9]', created_at = now() WHERE kind IN ('turn', 'fact');
UPDATE memories SET channel = 'moved', archived = true WHERE kind = 'episode';
DELETE FROM memory_links WHERE source_id IN (SELECT memory_id FROM memory_vectors WHERE kind = 'strategy');
DELETE FROM memory_vectors WHERE kind = 'strategy';
"""


def test_what_the_former_version_writes_between_two_batches_is_kept() -> None:
    with pytest.raises(StoppedError), stopping_at(2, "INSERT INTO memory_vectors_new SELECT *"):
        migrate_to(NEW)
    assert fetch("SELECT count(*) FROM memory_vectors_new") == [(3,)]
    execute(CHANGES)
    execute("DELETE FROM memory_vectors WHERE kind IN ('turn', 'fact')")
    changed = contents_of_former()

    migrate_to(LAST_ALIKE)

    assert contents() == changed


@pytest.mark.slow
def test_it_goes_on_after_the_process_was_killed() -> None:
    before = contents()
    url = os.environ["DATABASE_URL"].replace("/memory?", f"/{connection.settings_dict['NAME']}?")
    command = [sys.executable, "manage.py", "migrate", "memory", "--verbosity=0", "--skip-checks"]
    # with the table, whose trigger is made under a lock that the writer would not let it have
    with pytest.raises(StoppedError), stopping_at(1, "INSERT INTO memory_vectors_new SELECT *"):
        migrate_to(NEW)
    with other_connection() as writer:
        writer.execute("UPDATE memory_vectors SET live = live")
        with subprocess.Popen(command, env=os.environ | {"DATABASE_URL": url}) as process:
            try:
                wait_for(
                    "SELECT FROM pg_stat_activity WHERE datname = current_database()"
                    " AND wait_event_type = 'Lock' AND query LIKE 'LOCK TABLE%'"
                )
            finally:
                # SIGKILL
                process.kill()

    migrate_to(LAST_ALIKE)

    assert contents() == before


def test_reads_do_not_wait_until_the_tables_are_swapped() -> None:
    held: list[str] = []
    with other_connection() as reader:

        def execute_while_read(execute: Any, sql: Any, *args: Any) -> Any:
            # takes the place of the former table: milliseconds
            if sql in (migration.LOCK.format(mode="ACCESS EXCLUSIVE", timeout="500ms"), migration.SWAP):
                return execute(sql, *args)
            reader.execute("LOCK TABLE accounts, memories, memory_vectors IN ACCESS SHARE MODE")
            try:
                return execute(sql, *args)
            finally:
                reader.rollback()
                held.append(str(sql))

        execute("SELECT set_config('lock_timeout', '1s', false)")
        with connection.execute_wrapper(execute_while_read):
            migrate_to(NEW)

    assert sum("INSERT INTO memory_vectors_new SELECT *" in sql for sql in held) == 4


def test_the_swap_waits_for_a_transaction_without_keeping_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents()
    attempts: list[float] = []

    def end_reader(seconds: float) -> None:
        # the locks it has got so far are given up meanwhile
        with other_connection() as other:
            other.execute("LOCK TABLE accounts, memories IN ROW EXCLUSIVE MODE NOWAIT")
        reader.rollback()
        attempts.append(seconds)

    monkeypatch.setattr(migration.time, "sleep", end_reader)
    with other_connection() as reader:
        reader.execute("SELECT count(*) FROM memory_vectors")
        migrate_to(LAST_ALIKE)

    assert (len(attempts), contents()) == (1, before)


def test_it_says_how_far_it_is_and_which_indexes_are_to_be_built_again(capsys: pytest.CaptureFixture[str]) -> None:
    execute("CREATE INDEX vectors_of_one ON memory_vectors USING hnsw ((vector::halfvec(3)) halfvec_cosine_ops)")

    migrate_forward()

    shown = capsys.readouterr().out
    assert "memory_vectors: 3 of 10 rows copied" in shown
    assert "memory_vectors: 10 of 10 rows copied" in shown
    assert "1 indexes over vectors were dropped" in shown
    assert "run `manage.py run_job vector_indexes`" in shown
