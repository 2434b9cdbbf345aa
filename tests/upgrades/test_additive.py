"""Migrations since the last version leave its code running: they add, and take nothing away (docs/operations.md)."""

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

LAST_DUMP = max(Path(__file__).parent.glob("*.sql.gz"))
APPLIED = re.compile(r"^\d+\t(\w+)\t(\w+)\t", re.MULTILINE)
OWN_APPS = {"memory", "ledger", "lab"}
BREAKING_SQL = re.compile(
    r"DROP\s+TABLE(?!\s+IF\s+EXISTS\s+pg_temp)|DROP\s+COLUMN|RENAME\s+(?:TO|COLUMN)|SET\s+NOT\s+NULL"
    r"|ADD\s+COLUMN(?:(?!DEFAULT|,|;).)*NOT\s+NULL(?:(?!DEFAULT|,|;).)*(?:,|;|$)",
    re.IGNORECASE | re.DOTALL,
)
BREAKING = (
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.RemoveField,
    migrations.RenameField,
    # an upsert names the columns of a constraint
    migrations.RemoveConstraint,
)
ALLOWED: dict[tuple[str, str], str] = {
    ("memory", "0050_runs_per_account"): "only workers begin runs, by no upsert, and they are stopped before",
}
"""Migrations with something that the test finds, and why the former code may run on it all the same."""


def applied_by_last_version() -> set[tuple[str, str]]:
    return set(APPLIED.findall(gzip.decompress(LAST_DUMP.read_bytes()).decode()))


def find_breaking(operations: Sequence[Operation], *, created: set[str]) -> Iterator[str]:
    """Yield what the former code cannot run on. Tables that the same version creates are none of its business."""
    for operation in operations:
        model = str(getattr(operation, "model_name", getattr(operation, "name", ""))).lower()
        if isinstance(operation, migrations.CreateModel):
            created.add(model)
        elif isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from find_breaking(operation.database_operations, created=created)
        elif isinstance(operation, migrations.RunSQL):
            yield from (match[0] for match in BREAKING_SQL.finditer(text_of(operation.sql)))
        elif model not in created and is_breaking(operation):
            yield operation.describe()


def is_breaking(operation: Operation) -> bool:
    if isinstance(operation, migrations.AddField):
        # the former code names no such column when it inserts
        return not (operation.field.null or operation.field.has_db_default() or operation.field.many_to_many)
    return isinstance(operation, BREAKING)


def text_of(sql: Any) -> str:
    if isinstance(sql, str):
        return sql
    return ";\n".join(each if isinstance(each, str) else each[0] for each in sql)


def new_migrations() -> list[tuple[str, str]]:
    loader, applied = MigrationLoader(None), applied_by_last_version()
    return sorted(key for key in loader.disk_migrations if key[0] in OWN_APPS and key not in applied)


def test_no_migration_since_the_last_version_takes_away_what_its_code_uses() -> None:
    loader, created = MigrationLoader(None), set[str]()

    found = {
        key: breaking
        for key in new_migrations()
        if (breaking := list(find_breaking(loader.disk_migrations[key].operations, created=created)))
    }

    assert {key: found[key] for key in found.keys() - ALLOWED.keys()} == {}
    assert found.keys() >= ALLOWED.keys()


def test_the_last_version_is_known() -> None:
    assert ("memory", "0001_initial") in applied_by_last_version()


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("account", "name"),
        migrations.DeleteModel("account"),
        migrations.RemoveConstraint("account", "name"),
        migrations.AddField("account", "shade", models.TextField(default="")),
        migrations.RunSQL("ALTER TABLE accounts DROP COLUMN name"),
        migrations.RunSQL("ALTER TABLE accounts ADD COLUMN shade text NOT NULL"),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_takes_away_is_found(operation: Operation) -> None:
    assert list(find_breaking([operation], created=set()))


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("account", "shade", models.TextField(null=True)),
        migrations.AddField("account", "shade", models.TextField(db_default="")),
        migrations.RunSQL("ALTER TABLE accounts ADD COLUMN shade text NOT NULL DEFAULT ''"),
        migrations.RunSQL("DROP TRIGGER one ON accounts"),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_adds_is_allowed(operation: Operation) -> None:
    assert list(find_breaking([operation], created=set())) == []
