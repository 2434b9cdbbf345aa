"""Every table of accounts can be partitioned or distributed by account: PostgreSQL's catalogue says so."""

import re

import pytest
from django.db import connection, models

from memory.models.table import kind_models
from memory_project.tenancy import INSTALLATION_TABLES, AccountForeignKey
from tests.memory.models.tenant_rows import managed_models, references_of

pytestmark = pytest.mark.django_db

TABLES = """
WITH tables AS (
    SELECT c.oid, c.relname AS name, a.attnum AS account, coalesce(a.attnotnull, false) AS is_filled,
        c.relname ~ '^(auth|django|otp)_' OR c.relname = ANY (%(installation)s) AS is_of_installation
    FROM pg_class c
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'account_id' AND NOT a.attisdropped
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
), keys AS (
    SELECT i.indrelid, i.indisprimary, (i.indkey::int2[])[0:i.indnkeyatts - 1] AS columns, c.relname AS name
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indisprimary OR i.indisunique OR i.indisexclusion
), tenants AS (
    SELECT * FROM tables WHERE NOT is_of_installation
), refs AS (
    SELECT ours.name, k.conname, theirs.name AS target, k.confdeltype::text || k.confupdtype::text AS actions,
        ours.is_of_installation, EXISTS (
            SELECT FROM unnest(k.conkey, k.confkey) AS pair (ours, theirs)
            WHERE pair.ours = ours.account AND pair.theirs = theirs.account
        ) AS has_account
    FROM pg_constraint k JOIN tables ours ON ours.oid = k.conrelid JOIN tenants theirs ON theirs.oid = k.confrelid
    WHERE k.contype = 'f'
)
"""

FAULTS = {
    "columns": """
        SELECT format('table %%s: account_id is missing or may be NULL: add it as AccountRow does', name)
        FROM tenants WHERE NOT is_filled
    """,
    "primary keys": """
        SELECT format('table %%s: primary key lacks account_id: add it as migration 0022 does', name)
        FROM tenants WHERE NOT EXISTS (
            SELECT FROM keys WHERE indrelid = tenants.oid AND indisprimary AND tenants.account = ANY (keys.columns)
        )
    """,
    "unique indexes": """
        SELECT format('table %%s: unique index %%s lacks account_id: add "account" to its fields',
            tenants.name, keys.name)
        FROM tenants JOIN keys ON keys.indrelid = tenants.oid AND NOT keys.indisprimary
        WHERE (tenants.account = ANY (keys.columns)) IS NOT TRUE
    """,
    "references": """
        SELECT format('table %%s: foreign key %%s to %%s lacks account_id: use AccountForeignKey and'
            ' ReferenceInAccount', name, conname, target)
        FROM refs WHERE NOT is_of_installation AND NOT has_account
    """,
    "actions": """
        SELECT format('table %%s: foreign key %%s sets columns when its target is deleted or changes, which a'
            ' distributed database refuses: let code clear them, as DELETE_MEMORIES does', name, conname)
        FROM refs WHERE NOT is_of_installation AND actions ~ '[nd]'
    """,
    "references of the installation": """
        SELECT format('table %%s: foreign key %%s refers to %%s, a table of accounts, whose rows are not on every'
            ' machine: drop it', name, conname, target)
        FROM refs WHERE is_of_installation
    """,
}
"""Statements that describe what keeps a table from being distributed by account, one text for each fault."""


REFERENCE_TO_AGENTS = "FOREIGN KEY (account_id, agent) REFERENCES agents (account_id, id)"

DEFINITIONS = """
SELECT k.conname, k.conrelid::regclass::text || ': ' || pg_get_constraintdef(k.oid) FROM pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0 AND k.conrelid IN (SELECT oid FROM tenants)
    AND k.confrelid IN (SELECT oid FROM tenants)
"""

ACTION = re.compile(" (ON DELETE CASCADE|DEFERRABLE INITIALLY DEFERRED)$")


def find_faults(part: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(TABLES + FAULTS[part], {"installation": list(INSTALLATION_TABLES)})
        return sorted(row[0] for row in cursor.fetchall())


def make_tables(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize("part", FAULTS)
def test_every_table_can_be_distributed_by_account(part: str) -> None:
    faults = find_faults(part)

    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("part", "table", "fault"),
    [
        ("columns", "id int PRIMARY KEY", "table notes: account_id is missing"),
        ("columns", "id int PRIMARY KEY, account_id uuid", "table notes: account_id is missing or may be NULL"),
        ("primary keys", "id int PRIMARY KEY, account_id uuid NOT NULL", "table notes: primary key lacks account_id"),
        ("primary keys", "id int, account_id uuid NOT NULL", "table notes: primary key lacks account_id"),
        ("unique indexes", "name text UNIQUE, account_id uuid", "unique index notes_name_key lacks account_id"),
        ("unique indexes", "name text UNIQUE", "unique index notes_name_key lacks account_id"),
        (
            "unique indexes",
            "name text, account_id uuid NOT NULL, UNIQUE (name) INCLUDE (account_id)",
            "unique index notes_name_account_id_key lacks account_id",
        ),
        (
            "references",
            "account_id uuid, parent uuid, other uuid, FOREIGN KEY (other, parent) REFERENCES agents (account_id, id)",
            "table notes: foreign key notes_other_parent_fkey to agents lacks account_id",
        ),
        (
            "actions",
            f"account_id uuid, agent uuid, {REFERENCE_TO_AGENTS} ON DELETE SET NULL (agent)",
            "table notes: foreign key notes_account_id_agent_fkey sets columns",
        ),
    ],
    ids=[
        *("no account", "nullable account", "account beside the key", "no key", "unique name", "without an account"),
        *("account beside the columns", "account of another pair", "set null"),
    ],
)
def test_a_table_that_cannot_be_distributed_is_reported(part: str, table: str, fault: str) -> None:
    make_tables(f"CREATE TABLE notes ({table})")

    (found,) = find_faults(part)

    assert fault in found


def test_a_reference_of_an_installation_table_to_an_account_is_reported() -> None:
    make_tables(
        "ALTER TABLE metric_samples ADD account_id uuid, ADD agent uuid",
        f"ALTER TABLE metric_samples ADD {REFERENCE_TO_AGENTS}",
    )

    (found,) = find_faults("references of the installation")

    assert "table metric_samples: foreign key metric_samples_account_id_agent_fkey refers to agents" in found


def test_the_tables_of_the_installation_exist() -> None:
    existing = set(connection.introspection.table_names())

    assert INSTALLATION_TABLES.keys() <= existing


def relations(model: type[models.Model]) -> "list[models.ForeignKey[models.Model, models.Model]]":
    """Return the fields of a model that refer to tables of accounts."""
    fields = [field for field in model._meta.concrete_fields if isinstance(field, models.ForeignKey)]
    ours = [field for field in fields if field.related_model._meta.app_label in ("memory", "ledger")]
    return [field for field in ours if field.related_model._meta.db_table not in INSTALLATION_TABLES]


def test_fields_that_refer_to_tables_of_accounts_compare_accounts() -> None:
    of_all = [field for model in [*managed_models(), *kind_models().values()] for field in relations(model)]

    others = [str(field) for field in of_all if not isinstance(field, AccountForeignKey)]

    assert not others, f"{others} refer to tables of accounts: make each an AccountForeignKey"


def test_every_field_that_refers_within_an_account_has_its_reference() -> None:
    # the table of memories has the fields of all kinds
    missing = [
        str(field) for model in managed_models() for field in relations(model) if field.name not in references_of(model)
    ]

    assert not missing, f"{missing}: declare a ReferenceInAccount in the model's constraints"


def test_the_database_has_the_declared_references_and_no_others() -> None:
    declared = {
        reference.name: f"{model._meta.db_table}: FOREIGN KEY (account_id, {field.column})"
        f" REFERENCES {field.related_model._meta.db_table}(account_id, id)"
        for model in managed_models()
        for field in relations(model)
        if (reference := references_of(model).get(field.name))
    }

    with connection.cursor() as cursor:
        cursor.execute(TABLES + DEFINITIONS, {"installation": list(INSTALLATION_TABLES)})
        found = {name: ACTION.sub("", definition) for name, definition in cursor.fetchall()}

    assert found == declared
