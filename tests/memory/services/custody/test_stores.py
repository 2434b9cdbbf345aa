"""Every table and every key of Redis has a rule for the erasure of a user."""

import pytest
from django.db import connection

from memory.services.custody.sealed import SEALED, sealed_columns
from memory.services.custody.stores import RULES, rule_of, tables
from memory_project.redis import KEY_PATTERNS, SHARED_KEYS

STAFF_TABLES = ("auth_group", "auth_permission", "auth_group_permissions", "auth_user", "auth_user_groups")
OTHER_TABLES: dict[str, str] = {
    "django_admin_log": "a step of its own erases the names of rows and the reasons in it",
    "memory_audit_late": "holds nothing when a transaction ends: its trigger moves each entry into the audit log",
    "django_session": "holds who of the staff is logged in, and the account that was chosen",
    "django_content_type": "holds names of models",
    "django_migrations": "holds names of migrations",
    "otp_totp_totpdevice": "holds devices of staff",
    **dict.fromkeys((*STAFF_TABLES, "auth_user_user_permissions"), "holds staff and their rights"),
}
"""What erasing a user does to tables that have no model of ours, and are no partitions."""

KEY_RULES: dict[str, str] = {
    "written": "a position in PostgreSQL's log; it expires",
    "working_memory": "fields that name the user are deleted; the key goes with its conversation",
    "ledger": "items that name the user are evicted; the key goes with its conversation",
    "session": "keys of the user are deleted; in sessions of others, what names the user",
    "agent": "values that name the user are deleted, and so are their names",
    "once": "holds digits and times, and expires with the answers that are kept",
    "running": "holds a random word, while a request runs",
    "value": "values that name the user are deleted",
    "ledger_journal": "becomes rows of `injections`, which are erased",
    "ledger_epoch": "holds no texts",
    "ledger_restored": "holds keys of ledgers, until they are restored",
    "ledger_flushed": "holds no texts",
    "access_log": "holds ids of contexts, entries and agents",
    "access_lost": "holds ids of contexts",
    "audit_reads": "becomes rows of `memory_audit_log`, which are erased",
    "health_probe": "holds no texts",
    "refused_audit_reads": "lines that name the user are deleted",
}
"""What erasing a user does to the keys of Redis, by the names in `memory_project.redis`."""


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
