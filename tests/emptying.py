"""Empties the tables after tests that commit: what is small row by row, what is large as a whole.

Django's own way truncates all tables, whether anything is in them or not, and makes all permissions again: a quarter of
a second a test. Content types, permissions and the shipped groups of staff stay here, since every test needs the same.

Sessions that a test left in a transaction, such as those of processes that it killed, are ended where they keep a
lock for long: else the time limit would strike within the statement, and the worker's connection be of no use to all
tests after it.
"""

import warnings
from typing import Any

from django.db import OperationalError, connections
from django.test import TransactionTestCase
from psycopg.errors import LockNotAvailable
from psycopg.pq import TransactionStatus

KEPT = "'django_migrations', 'django_content_type', 'auth_permission', 'auth_group', 'auth_group_permissions'"
# no trigger fires, nor does a key, since all tables are emptied; deleted rows stay in their file until it is large
EMPTY = f"""
DO $$
DECLARE found record; is_filled boolean; large text;
BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL lock_timeout = '15s';
    FOR found IN
        SELECT oid::regclass AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) BETWEEN 1 AND 131072
            AND relname NOT IN ({KEPT})
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', found.name) INTO is_filled;
        IF is_filled THEN
            EXECUTE format('DELETE FROM %s', found.name);
        END IF;
    END LOOP;
    SELECT string_agg(oid::regclass::text, ', ') INTO large FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 131072
        AND relname NOT IN ({KEPT});
    IF large IS NOT NULL THEN
        EXECUTE format('TRUNCATE %s CASCADE', large);
    END IF;
END $$
"""


END_OTHERS = """
SELECT state || ': ' || left(query, 200), pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
"""


def empty_tables(case: Any) -> None:
    for alias in case._databases_names(include_mirrors=False):
        with connections[alias].cursor() as cursor:
            try:
                cursor.execute(EMPTY)
            except OperationalError as err:
                if not isinstance(err.__cause__, LockNotAvailable):
                    raise
                cursor.execute(END_OTHERS)
                warnings.warn(f"a test left sessions, which were ended: {cursor.fetchall()}", stacklevel=2)
                cursor.execute(EMPTY)


def close_broken_connections() -> None:
    """Close connections that something interrupted within a statement, or every later test would fail of it."""
    for each in connections.all(initialized_only=True):
        if each.connection is not None and each.connection.info.transaction_status == TransactionStatus.ACTIVE:
            each.close()
            warnings.warn(f"a test left the connection {each.alias} within a statement; it was closed", stacklevel=2)


def empty_after_commits() -> None:
    """Let every test that commits empty the tables afterwards, instead of flushing the database."""
    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[attr-defined]
