"""Empties the tables after tests that commit: what is small row by row, what is large as a whole.

Django's own way truncates all tables, whether anything is in them or not, and makes all permissions again: a quarter of
a second a test. Content types, permissions and the shipped groups of staff stay here, since every test needs the same.
"""

from typing import Any

from django.db import connections
from django.test import TransactionTestCase

KEPT = "'django_migrations', 'django_content_type', 'auth_permission', 'auth_group', 'auth_group_permissions'"
# no trigger fires, nor does a key, since all tables are emptied; deleted rows stay in their file until it is large
EMPTY = f"""
DO $$
DECLARE found record; is_filled boolean; large text;
BEGIN
    SET LOCAL session_replication_role = replica;
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


def empty_tables(case: Any) -> None:
    for alias in case._databases_names(include_mirrors=False):
        with connections[alias].cursor() as cursor:
            cursor.execute(EMPTY)


def empty_after_commits() -> None:
    """Let every test that commits empty the tables afterwards, instead of flushing the database."""
    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[attr-defined]
