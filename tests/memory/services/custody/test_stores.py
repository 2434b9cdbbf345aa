"""Every table and every key of Redis has a rule for the erasure of a user."""

import pytest
from django.db import connection

from memory.services.custody.sealed import SEALED, sealed_columns
from memory.services.custody.stores import KEY_RULES, OTHER_TABLES, RULES, rule_of, tables
from memory_project.redis import KEY_PATTERNS, SHARED_KEYS


def test_every_table_has_a_rule() -> None:
    for model in tables().values():
        rule_of(model)  # raises LookupError, which says what to do


def test_no_rule_is_left_of_a_table_that_is_gone() -> None:
    assert set(RULES) <= set(tables())


def test_every_sealed_column_is_searched_or_goes_as_a_whole() -> None:
    sealed = {name for name, model in tables().items() if sealed_columns(model)}

    assert sealed == {*SEALED, "encryption_canary", "erasures", "transfer_parts"}


@pytest.mark.django_db
def test_every_other_table_of_the_database_has_a_rule() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition")  # fmt: skip
        found = {name for (name,) in cursor.fetchall()}

    assert found - tables().keys() == OTHER_TABLES.keys()


def test_every_key_of_redis_has_a_rule() -> None:
    patterns = {"session", "agent", "value", "once", "running", "written"}

    assert set(KEY_RULES) == {*KEY_PATTERNS, *SHARED_KEYS, *patterns}
