"""Migrations since the last version leave its code running: they add, and take nothing away (docs/operations.md).

What the last version had is what its dump says is applied. `lab.release` asks for a dump of each version.
"""

import gzip
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

APPLIED = re.compile(r"^\d+\t(\w+)\t(\w+)\t", re.MULTILINE)
OWN_APPS = {"memory", "ledger", "lab"}
ALTER_TABLE = re.compile(r'ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?"?([\w{}%]+)"?([^;]*)', re.IGNORECASE)
BREAKING_ALTER = re.compile(
    r"DROP\s+COLUMN|DROP\s+CONSTRAINT|DROP\s+DEFAULT|RENAME\s+(?:TO|COLUMN)|SET\s+NOT\s+NULL|SET\s+DATA\s+TYPE|"
    r"ALTER\s+(?:COLUMN\s+)?\w+\s+TYPE|ADD\s+CONSTRAINT|ADD\s+(?:UNIQUE|CHECK|PRIMARY|FOREIGN)|"
    r"ADD\s+COLUMN(?:(?!DEFAULT|,|;).)*NOT\s+NULL(?:(?!DEFAULT|,|;).)*(?:,|;|$)",
    re.IGNORECASE | re.DOTALL,
)
BREAKING_SQL = re.compile(
    r"DROP\s+(?:TABLE|VIEW|MATERIALIZED\s+VIEW|TYPE|SEQUENCE)(?!\s+IF\s+EXISTS\s+pg_temp)|CREATE\s+UNIQUE\s+INDEX",
    re.IGNORECASE,
)
BREAKING = (
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.RemoveField,
    migrations.RenameField,
    migrations.AlterModelTable,
    migrations.AlterUniqueTogether,
    # an upsert names the columns of a constraint
    migrations.RemoveConstraint,
)
WIDER = (
    ("varchar", "text"),
    ("smallint", "integer"),
    ("smallint", "bigint"),
    ("integer", "bigint"),
)
"""Types of columns that hold all of another one's values."""
ALLOWED: dict[tuple[str, str], str] = {
    ("memory", "0050_runs_per_account"): "only workers begin runs, by no upsert; one of the last version is run on it",
}
"""Migrations with something that the test finds, and why the former code may run on it all the same."""


def version_of(dump: Path) -> tuple[int, ...]:
    return tuple(map(int, dump.name.removesuffix(".sql.gz").split(".")))


def applied_by_last_version() -> set[tuple[str, str]]:
    last = max(Path(__file__).parent.glob("*.sql.gz"), key=version_of)
    return set(APPLIED.findall(gzip.decompress(last.read_bytes()).decode()))


@cache
def former_state() -> ProjectState:
    """Return the models of the last version."""
    loader, applied = MigrationLoader(None), applied_by_last_version()
    return loader.project_state([key for key in loader.graph.nodes if key in applied])


def find_breaking(app: str, operations: Sequence[Operation]) -> Iterator[str]:
    """Yield what the code of the last version cannot run on. Tables that are new since are none of its business."""
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from find_breaking(app, operation.database_operations)
        elif isinstance(operation, migrations.RunSQL):
            yield from find_breaking_sql(text_of(operation.sql))
        elif is_breaking(app, operation):
            yield operation.describe()


def is_breaking(app: str, operation: Operation) -> bool:
    name = getattr(operation, "model_name", getattr(operation, "old_name", getattr(operation, "name", "")))
    model = former_state().models.get((app, str(name).lower()))
    if model is None:
        return False
    if isinstance(operation, (migrations.AddField, migrations.AlterField)):
        former: Any = model.fields.get(operation.name)
        return narrows(former, operation.field)
    if isinstance(operation, migrations.AddConstraint):
        return bool(fields_of(operation.constraint) & model.fields.keys() - {"account", "id"})
    return isinstance(operation, BREAKING)


def narrows(former: Any, field: Any) -> bool:
    """Return True if a field refuses what the last version writes, which names no field that it does not have."""
    if field.many_to_many:
        return False
    if former is None:
        return not (field.null or field.has_db_default())
    is_wider = field.is_relation or former.is_relation or holds_all(former, field)
    loses_default = former.has_db_default() and not (field.has_db_default() or field.null)
    return not is_wider or loses_default or (former.null and not field.null) or (field.unique and not former.unique)


def holds_all(former: Any, field: Any) -> bool:
    """Return True if the type of a column holds all that the former one held."""
    before, after = former.db_type(connection), field.db_type(connection)
    if before == after:
        return True
    kind, length = before.partition("(")[0], getattr(former, "max_length", None)
    if kind == after.partition("(")[0] == "varchar":
        return field.max_length is None or bool(length and field.max_length >= length)
    return (kind, after) in WIDER


def fields_of(constraint: Any) -> set[str]:
    """Return the names of fields that a constraint is about."""
    condition = getattr(constraint, "condition", None)
    named = [*getattr(constraint, "fields", ()), getattr(constraint, "field", ""), *names_in(condition)]
    return {name.partition("__")[0] for name in named if name}


def names_in(condition: Any) -> Iterator[str]:
    for child in getattr(condition, "children", ()):
        if isinstance(child, tuple):
            yield child[0]
        else:
            yield from names_in(child)


def find_breaking_sql(text: str) -> Iterator[str]:
    tables = {model.options.get("db_table") or f"{app}_{name}" for (app, name), model in former_state().models.items()}
    for table, changes in ALTER_TABLE.findall(text):
        # a name that is filled in later may be any table's
        if table in tables or not table.isidentifier():
            yield from (f"{table}: {match[0]}" for match in BREAKING_ALTER.finditer(changes))
    yield from (match[0] for match in BREAKING_SQL.finditer(text))


def text_of(sql: Any) -> str:
    if isinstance(sql, str):
        return sql
    return ";\n".join(each if isinstance(each, str) else each[0] for each in sql)


def new_migrations() -> list[tuple[str, str]]:
    loader, applied = MigrationLoader(None), applied_by_last_version()
    return sorted(key for key in loader.disk_migrations if key[0] in OWN_APPS and key not in applied)


def test_no_migration_since_the_last_version_takes_away_what_its_code_uses() -> None:
    loader = MigrationLoader(None)

    found = {
        key: breaking
        for key in new_migrations()
        if (breaking := list(find_breaking(key[0], loader.disk_migrations[key].operations)))
    }

    assert {key: found[key] for key in found.keys() - ALLOWED.keys()} == {}
    assert found.keys() >= ALLOWED.keys()


def test_the_last_version_is_known() -> None:
    assert ("memory", "0001_initial") in applied_by_last_version()
    assert version_of(Path("0.10.0.sql.gz")) > version_of(Path("0.9.0.sql.gz"))


NAMED = models.Q(name__gt="") & ~models.Q(shade="")


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("account", "name"),
        migrations.RenameField("account", "name", "title"),
        migrations.DeleteModel("account"),
        migrations.RenameModel("Account", "Tenant"),
        migrations.AlterModelTable("account", "tenants"),
        migrations.RemoveConstraint("account", "name"),
        migrations.AddConstraint("account", models.UniqueConstraint(fields=["name"], name="one")),
        migrations.AddConstraint("account", models.CheckConstraint(condition=NAMED, name="two")),
        migrations.AddField("account", "shade", models.TextField(default="")),
        migrations.AlterField("account", "shade", models.TextField()),
        migrations.AlterField("account", "name", models.CharField(max_length=10, unique=True)),
        migrations.AlterField("account", "name", models.IntegerField(unique=True)),
        migrations.AlterField("conversation", "title", models.CharField(max_length=5_000, unique=True)),
        migrations.AlterField("conversation", "archived_at", models.DateTimeField()),
        migrations.AlterField("conversation", "created_at", models.DateTimeField()),
        migrations.RunSQL("ALTER TABLE accounts DROP COLUMN name"),
        migrations.RunSQL("ALTER TABLE accounts ADD COLUMN shade text NOT NULL"),
        migrations.RunSQL("ALTER TABLE {table} ALTER COLUMN name TYPE integer"),
        migrations.RunSQL("ALTER TABLE accounts ADD CONSTRAINT three CHECK (name <> '')"),
        migrations.RunSQL("DROP TABLE accounts"),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_takes_away_is_found(operation: Operation) -> None:
    assert list(find_breaking("memory", [operation]))
    assert list(find_breaking("memory", [migrations.SeparateDatabaseAndState([operation])]))


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("account", "shade", models.TextField(null=True)),
        migrations.AddField("account", "shade", models.TextField(db_default="")),
        migrations.AddConstraint("account", models.UniqueConstraint(fields=["account", "shade"], name="one")),
        migrations.AddField("unheard", "shade", models.TextField()),
        migrations.AlterField("account", "name", models.TextField(unique=True)),
        migrations.AlterField("conversation", "created_at", models.DateTimeField(null=True)),
        migrations.RunSQL("ALTER TABLE accounts ADD COLUMN shade text NOT NULL DEFAULT ''"),
        migrations.RunSQL("ALTER TABLE unheard DROP COLUMN shade, ADD CONSTRAINT four CHECK (true)"),
        migrations.RunSQL("DROP TRIGGER one ON accounts"),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_adds_is_allowed(operation: Operation) -> None:
    assert list(find_breaking("memory", [operation])) == []
