"""Advisory locks that last longer than a transaction of the work done under them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections


@contextmanager
def lock_connection(database: str = DEFAULT_DB_ALIAS) -> Iterator[Any]:
    """Open a transaction on a connection of its own, for locks that end with the block, or with the process.

    It works through a pooler that gives each transaction another session. A transaction that is idle at READ COMMITTED
    keeps no index from being built concurrently.
    """
    connection: Any = connections[database].copy()
    connection.settings_dict["OPTIONS"].pop("pool", None)
    try:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            try:
                yield cursor
            finally:
                # the server learns of a closed connection only later; one that it has cut has no locks any more
                with suppress(DatabaseError):
                    cursor.execute("ROLLBACK")
    finally:
        connection.close()


@contextmanager
def try_advisory_lock(lock_id: int) -> Iterator[bool]:
    """Lock until the end of the block, and yield False if somebody else has locked it."""
    with lock_connection() as cursor:
        yield bool(cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock_id]).fetchone()[0])
