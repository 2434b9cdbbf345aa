"""Rows by the hundred thousand: made by the database, from what a model's columns are by default."""

from typing import Any

from django.db import connection
from django.db.models import Field, Model, UUIDField
from django.db.models.fields import NOT_PROVIDED
from psycopg import sql

from lab.benchmarks.scratch import Scratch


def id_of(scratch: Scratch, noun: str, number: str = "n") -> str:
    """Return SQL for the id of the row with that number, so that other rows may refer to it; ids are in order."""
    digest = f"md5('{noun}:{scratch.account.id}:' || {number})"
    return f"overlay({digest} placing lpad(to_hex({number}), 12, '0') from 1)::uuid"


def insert_rows(scratch: Scratch, model: type[Model], count: int, /, **columns: str) -> None:
    """Insert `count` rows into the account. `columns` are SQL over `n`, from 1; other columns have their defaults."""
    given: dict[str, sql.Composable] = {name: sql.SQL(text) for name, text in columns.items()}
    for field in model._meta.concrete_fields:
        name = str(field.column)
        if name == "account_id":
            given[name] = sql.Literal(scratch.account.id)
        elif name not in given and (default := default_of(field)) is not None:
            given[name] = default
    statement = sql.SQL("INSERT INTO {table} ({columns}) SELECT {values} FROM generate_series(1, {count}) AS n").format(
        table=sql.Identifier(model._meta.db_table),
        columns=sql.SQL(", ").join(map(sql.Identifier, given)),
        values=sql.SQL(", ").join(given.values()),
        count=sql.Literal(count),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection))
        # or the planner looks up what refers to these rows by reading through all of them, each time
        cursor.execute(f"ANALYZE {model._meta.db_table}")


def default_of(field: "Field[Any, Any]") -> sql.Composable | None:
    """Return SQL for a column's default; None if the database has one, or if none fits."""
    if field.primary_key and isinstance(field, UUIDField):
        return sql.SQL("gen_random_uuid()")
    if field.db_default is not NOT_PROVIDED or not field.has_default():
        return None
    return sql.Literal(field.get_db_prep_save(field.get_default(), connection))
