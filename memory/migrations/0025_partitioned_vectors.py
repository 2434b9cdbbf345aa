"""`memory_vectors` in hash partitions by account, so that a search plans with the indexes of one partition only.

The rows are copied into a new table, in batches that commit. A trigger repeats there what the former version writes
meanwhile. The new table then takes the place of the former one in one short transaction. A migration that was stopped
goes on where it was: rows that are copied are not copied again. It does not go back, since the former table is dropped.

Indexes over vectors (HNSW, IVFFlat) are dropped with the former table, and not built here: the job `vector_indexes`
builds those of large accounts, which are searched exactly until then.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import OperationalError, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from psycopg.errors import LockNotAvailable

from memory import conf

ROWS_AT_A_TIME = 5_000
"""Rows of a statement that copies: a second or less, for which writes wait."""

TABLE = """
CREATE TABLE memory_vectors_new (
    LIKE memory_vectors INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
    CONSTRAINT memory_vectors_new_pkey PRIMARY KEY (id, account_id),
    CONSTRAINT vector_once_a_model_new UNIQUE (account_id, memory_id, model)
) PARTITION BY HASH (account_id);
CREATE INDEX vector_created_new ON memory_vectors_new USING brin (created_at);
CREATE INDEX vector_owner_new ON memory_vectors_new (account_id, agent_id, kind, model);
CREATE INDEX vector_conversation_new ON memory_vectors_new (account_id, conversation_id, kind, model);
CREATE INDEX vector_user_new ON memory_vectors_new (account_id, user_id, kind, model);
CREATE INDEX vector_context_new ON memory_vectors_new (account_id, context_id, kind, model)
    WHERE context_id IS NOT NULL
"""

PARTITION = """
CREATE TABLE memory_vectors_p{remainder:02} PARTITION OF memory_vectors_new
FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})
"""

MIRROR = """
CREATE FUNCTION memory_vectors_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM memory_vectors_new WHERE account_id = OLD.account_id AND id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO memory_vectors_new SELECT NEW.*;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_vectors_mirror AFTER INSERT OR UPDATE OR DELETE ON memory_vectors
FOR EACH ROW EXECUTE FUNCTION memory_vectors_mirror()
"""

NEXT = """
SELECT max(id::text)::uuid, count(*) FROM (SELECT id FROM memory_vectors WHERE id > %s ORDER BY id LIMIT %s) AS next
"""

COPY = """
INSERT INTO memory_vectors_new SELECT * FROM memory_vectors WHERE id > %s AND id <= %s ON CONFLICT DO NOTHING
"""

# of the former table, by name: constraints of another table may have the same name
REFERENCES = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint AS former
WHERE conrelid = 'memory_vectors'::regclass AND contype = 'f' AND NOT EXISTS (
    SELECT FROM pg_constraint WHERE conrelid = 'memory_vectors_new'::regclass AND conname = former.conname
) ORDER BY 1
"""

INDEXES = "SELECT count(*) FROM pg_indexes WHERE tablename = 'memory_vectors' AND indexname ~ '^vectors_(of|nearest)_'"

LOCK = "SET LOCAL lock_timeout = '{timeout}'; LOCK TABLE accounts, memories, memory_vectors IN {mode} MODE"
PAUSE_SECONDS = 0.1
SHORT_WAITS = 40
"""Waits of half a second after which the migration waits for as long as it takes."""

SWAP = """
DROP TABLE memory_vectors;
DROP FUNCTION memory_vectors_mirror();
ALTER TABLE memory_vectors_new RENAME TO memory_vectors;
ALTER TABLE memory_vectors RENAME CONSTRAINT memory_vectors_new_pkey TO memory_vectors_pkey;
ALTER TABLE memory_vectors RENAME CONSTRAINT vector_once_a_model_new TO vector_once_a_model;
ALTER INDEX vector_created_new RENAME TO vector_created;
ALTER INDEX vector_owner_new RENAME TO vector_owner;
ALTER INDEX vector_conversation_new RENAME TO vector_conversation;
ALTER INDEX vector_user_new RENAME TO vector_user;
ALTER INDEX vector_context_new RENAME TO vector_context
"""


def fetch(editor: BaseDatabaseSchemaEditor, statement: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
    with editor.connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def partition_vectors(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Do what is left to do: make the table, copy, refer to memories and accounts, swap."""
    ((kind,),) = fetch(editor, "SELECT relkind::text FROM pg_class WHERE oid = 'memory_vectors'::regclass")
    if kind == "p":
        # it was stopped after the swap
        return
    make_table(editor)
    copy_rows(editor)
    references = [
        f"ALTER TABLE memory_vectors_new ADD CONSTRAINT {editor.quote_name(name)} {definition}"
        for name, definition in fetch(editor, REFERENCES)
    ]
    execute_locked(editor, "SHARE ROW EXCLUSIVE", references)
    ((dropped,),) = fetch(editor, INDEXES)
    execute_locked(editor, "ACCESS EXCLUSIVE", [SWAP])
    editor.execute("ANALYZE memory_vectors")
    if dropped:
        sys.stdout.write(
            f"\n    {dropped} indexes over vectors were dropped. Large accounts are searched exactly, which is slow,"
            "\n    until the indexes are built again: run `manage.py run_job vector_indexes` before the service starts"
        )


def execute_locked(editor: BaseDatabaseSchemaEditor, mode: str, statements: Sequence[str]) -> None:
    """Run the statements in a transaction that has locked the tables.

    It waits for the locks in short spells, and gives up those it has in between. Otherwise PostgreSQL would refuse
    writers that lock the tables in another order (deadlock). Under writers that never pause it waits for good at last,
    and PostgreSQL may refuse single writes.
    """
    for timeout in (*["500ms"] * SHORT_WAITS, "0"):
        try:
            with transaction.atomic(using=editor.connection.alias):
                for statement in (LOCK.format(mode=mode, timeout=timeout), *statements):
                    editor.execute(statement)
            return
        except OperationalError as err:
            if not isinstance(err.__cause__, LockNotAvailable):
                raise
            time.sleep(PAUSE_SECONDS)


def make_table(editor: BaseDatabaseSchemaEditor) -> None:
    """Make the partitioned table, and let it repeat all writes from now on. All at once, or nothing."""
    ((is_made,),) = fetch(editor, "SELECT to_regclass('memory_vectors_new') IS NOT NULL")
    if is_made:
        return
    with transaction.atomic(using=editor.connection.alias):
        editor.execute(TABLE)
        for remainder in range(conf.VECTOR_PARTITIONS):
            editor.execute(PARTITION.format(modulus=conf.VECTOR_PARTITIONS, remainder=remainder))
        editor.execute(MIRROR)


def copy_rows(editor: BaseDatabaseSchemaEditor) -> None:
    """Copy all rows, and print how far it is where there is much to copy.

    A batch locks the former table against writes. So it sees each row as the trigger left it or will find it, and
    cannot bring back a row that is deleted meanwhile.
    """
    ((total,),) = fetch(editor, "SELECT count(*) FROM memory_vectors")
    copied = 0
    for after, until, rows in ranges(editor):
        with transaction.atomic(using=editor.connection.alias):
            editor.execute("LOCK TABLE memory_vectors IN SHARE ROW EXCLUSIVE MODE")
            editor.execute(COPY, [after, until])
        copied += rows
        if total > ROWS_AT_A_TIME:
            sys.stdout.write(f"\n    memory_vectors: {copied:,} of {total:,} rows copied")


def ranges(editor: BaseDatabaseSchemaEditor) -> Iterator[tuple[Any, Any, int]]:
    """Yield the ranges of ids, exclusive and inclusive, that hold at most `ROWS_AT_A_TIME` rows, and their number."""
    after: Any = "00000000-0000-0000-0000-000000000000"
    while True:
        ((until, rows),) = fetch(editor, NEXT, [after, ROWS_AT_A_TIME])
        if until is None:
            return
        yield after, until, rows
        after = until


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0024_queues_by_account")]

    operations = [migrations.RunPython(partition_vectors)]
