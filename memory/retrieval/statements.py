"""Composing raw SQL behind the wall: a queryset's WHERE with named parameters, to stand in a larger statement."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Conditions on one table, its columns qualified by the table's name; `parameters` belong to its placeholders."""

    sql: str
    parameters: dict[str, Any]


def where_of(queryset: "QuerySet[Any]", *, prefix: str) -> Where:
    """The WHERE of a queryset without joins; `prefix` keeps its parameters apart from others in one statement."""
    query = queryset.query
    compiler = query.get_compiler(connection=connection)
    compiler.pre_sql_setup()
    sql, parameters = compiler.compile(query.where)
    names = [f"{prefix}{number}" for number in range(len(parameters))]
    return Where(
        sql=sql % tuple(f"%({name})s" for name in names),
        parameters=dict(zip(names, parameters, strict=True)),
    )


@lru_cache(maxsize=256)
def squeeze(statement: str) -> str:
    """The statement without its indentation: psycopg remembers how to bind those of up to 4,096 characters only."""
    return re.sub(r"\s+", " ", statement)
