"""One table for all kinds, second half: the last rows, the table's constraints and indexes, and the former tables go.

It runs as one transaction that locks the table, so that nothing is written to the former tables after the last look.
Reads of the former release wait for it.
"""

from importlib import import_module

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from memory_project.tenancy import ReferenceInAccount

first_half = import_module("memory.migrations.0020_kind_columns")

ACCOUNT = """
ALTER TABLE memories
    DROP CONSTRAINT memories_account_id_6f4d2420_fk_accounts_id,
    ADD CONSTRAINT memories_account FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE;
"""


def copy_the_rest(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Copy what changed since the first half, with the tables locked, and drop the former tables."""
    tables = list(first_half.TABLES.values())
    editor.execute(f"LOCK TABLE memories, {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
    for table in tables:
        editor.execute(first_half.copy_statement(editor, table, table))
    editor.execute(f"DROP TABLE {', '.join(tables)}")


def add_constraints(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Add the checks of all kinds in one statement, which reads the table once, then keys and indexes."""
    table = apps.get_model("memory", "MemoryTable")
    with editor.connection.cursor() as cursor:
        existing = editor.connection.introspection.get_constraints(cursor, "memories").keys()
    # references come with the keys they need: see 0022
    missing = [
        each
        for each in table._meta.constraints
        if each.name not in existing and not isinstance(each, ReferenceInAccount)
    ]
    checks = [each for each in missing if isinstance(each, models.CheckConstraint)]
    clauses = [f"ADD {each.constraint_sql(table, editor)}" for each in checks]
    editor.execute(str(f"ALTER TABLE memories {', '.join(clauses)}").replace("%", "%%"), params=[])
    for constraint in missing:
        if constraint not in checks:
            editor.add_constraint(table, constraint)
    for index in table._meta.indexes:
        if index.name not in existing:
            editor.add_index(table, index)


class Migration(migrations.Migration):
    dependencies = [("memory", "0020_kind_columns")]

    operations = [
        migrations.RunPython(copy_the_rest),
        migrations.RunPython(add_constraints),
        migrations.RunSQL(ACCOUNT),
    ]
