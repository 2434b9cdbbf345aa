"""Composing raw SQL behind the wall: a queryset's WHERE with named parameters, to stand in a larger statement.

Making and compiling querysets takes longer than most searches. A statement is therefore composed once for each shape of
owner and query, with stand-ins for their values (`STAND_IN`, `OWNER`), and the values are bound when it is run.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from memory.models.binary import numbered_cursor
from memory.owner import Owner

STAND_IN: Mapping[str, Any] = {
    "account_id": UUID(int=1),
    "agent_id": "\x01agent_id",
    "user_id": "\x01user_id",
    "channel": "\x01channel",
    "model": "\x01model",
    "now": datetime(1, 1, 1, tzinfo=UTC),
}
"""Values that nothing else has: where a compiled queryset has one, the parameter of that name goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerShape:
    """What of an owner decides a statement's text."""

    has_agent: bool
    has_user: bool
    has_channel: bool

    @property
    def owner(self) -> Owner:
        """An owner of this shape made of stand-ins."""
        names = [name for name in ("agent_id", "user_id", "channel") if getattr(self, f"has_{name.split('_')[0]}")]
        return Owner(account_id=STAND_IN["account_id"], **{name: STAND_IN[name] for name in names})


def shape_of(owner: Owner) -> OwnerShape:
    return OwnerShape(has_agent=bool(owner.agent_id), has_user=bool(owner.user_id), has_channel=len(owner.channels) > 1)


def bind_owner(owner: Owner, *, now: datetime) -> dict[str, Any]:
    """The values of the stand-ins."""
    return {
        "account_id": owner.account_id,
        "agent_id": owner.agent_id,
        "user_id": owner.user_id,
        "channel": owner.channel,
        "now": now,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A part of a statement, or a whole one; `parameters` are those of its placeholders that are the same each time."""

    text: str
    parameters: Mapping[str, Any]


def where_of(queryset: "QuerySet[Any]", *, prefix: str) -> Sql:
    """The WHERE of a queryset without joins, its columns qualified by the table's name.

    `prefix` keeps its own parameters apart from others in one statement.
    """
    query = queryset.query
    compiler = query.get_compiler(connection=connection)
    compiler.pre_sql_setup()
    sql, values = compiler.compile(query.where)
    stand_ins = {value: name for name, value in STAND_IN.items()}
    names = [stand_ins.get(value, f"{prefix}{number}") for number, value in enumerate(values)]
    own = {name: value for name, value in zip(names, values, strict=True) if name not in STAND_IN}
    return Sql(text=sql % tuple(f"%({name})s" for name in names), parameters=own)


def squeeze(statement: str) -> str:
    """The statement without its indentation: a third less to send, and to look through for placeholders, each time."""
    return re.sub(r"\s+", " ", statement)


PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A whole statement as the server takes it, `$1` in place of the first of `names`: long ones would be looked
    through for placeholders each time."""

    text: str
    names: tuple[str, ...]
    parameters: Mapping[str, Any]

    def read(self, values: Mapping[str, Any]) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """The names of its columns, and its rows."""
        given = {**self.parameters, **values}
        with numbered_cursor() as cursor:
            cursor.execute(self.text, [given[name] for name in self.names])
            return [column[0] for column in cursor.description or ()], cursor.fetchall()


def numbered(sql: Sql) -> Statement:
    """The statement with numbers for names, without its indentation."""
    names: dict[str, int] = {}

    def number(placeholder: re.Match[str]) -> str:
        name = placeholder[1]
        return f"${names.setdefault(name, len(names) + 1)}" if name else "%"

    text = PLACEHOLDER.sub(number, squeeze(sql.text))
    return Statement(text=text, names=tuple(names), parameters=sql.parameters)
