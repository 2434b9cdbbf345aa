"""Raw SQL with tenant isolation: the WHERE of a queryset, with named parameters, as a part of a larger statement.

Building and compiling querysets takes longer than most searches. So a statement is built once for each shape of owner
and query, with stand-ins for their values (`STAND_INS`, `OwnerShape.owner`), and the values are bound on each run.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg.sql
from django.db import connection
from django.db.models import QuerySet

from memory.models.statements import binary_cursor, fetch_dicts, numbered_cursor
from memory.owner import Owner

STAND_INS: Mapping[str, Any] = {
    "account_id": UUID(int=1),
    "agent_id": "\x01agent_id",
    "user_id": "\x01user_id",
    "channel": "\x01channel",
    "model": "\x01model",
    "now": datetime(1, 1, 1, tzinfo=UTC),
}
"""Unique values. Where a compiled queryset contains one, it is replaced by the parameter of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerShape:
    """The properties of an owner that decide the text of a statement."""

    has_agent: bool
    has_user: bool
    has_channel: bool
    limited_to_user: bool

    @property
    def owner(self) -> Owner:
        """Return an owner of this shape with stand-ins for values."""
        names = [name for name in ("agent_id", "user_id", "channel") if getattr(self, f"has_{name.split('_')[0]}")]
        given = {name: STAND_INS[name] for name in names}
        return Owner(account_id=STAND_INS["account_id"], limited_to_user=self.limited_to_user, **given)


def owner_shape(owner: Owner) -> OwnerShape:
    return OwnerShape(
        has_agent=bool(owner.agent_id),
        has_user=bool(owner.user_id),
        has_channel=len(owner.channels) > 1,
        limited_to_user=owner.limited_to_user,
    )


def owner_params(owner: Owner, *, now: datetime) -> dict[str, Any]:
    """Return the values of the stand-ins."""
    return {
        "account_id": owner.account_id,
        "agent_id": owner.agent_id,
        "user_id": owner.user_id,
        "channel": owner.channel,
        "now": now,
    }


PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A statement or a part of one. `parameters` holds the values that are the same on each run, none of a client's."""

    text: str
    parameters: Mapping[str, Any]

    def numbered(self, *, plans_once: bool = False) -> "NumberedStatement":
        """Return the statement with numbered placeholders and without indentation.

        Its own parameters become literals: the planner then knows them in a plan that is kept, too.
        """
        names: dict[str, int] = {}
        literals = {name: psycopg.sql.Literal(value).as_string() for name, value in self.parameters.items()}

        def number(placeholder: re.Match[str]) -> str:
            name = placeholder[1]
            if not name:
                return "%"
            return literals.get(name) or f"${names.setdefault(name, len(names) + 1)}"

        text = PLACEHOLDER.sub(number, collapse_whitespace(self.text))
        return NumberedStatement(text=text, names=tuple(names), plans_once=plans_once)

    def read_dicts(self, owner: Owner, values: Mapping[str, Any], *, now: datetime) -> list[dict[str, Any]]:
        """Run the statement for an owner with JSON columns parsed. Return its rows by column name."""
        with binary_cursor() as cursor:
            cursor.execute(self.text, {**self.parameters, **owner_params(owner, now=now), **values})
            return fetch_dicts(cursor)


def where_sql(queryset: "QuerySet[Any]", *, prefix: str) -> Sql:
    """Return the WHERE of a queryset without joins. Its columns are qualified by the table's name.

    `prefix` keeps its parameters apart from others in the same statement.
    """
    query = queryset.query
    compiler = query.get_compiler(connection=connection)
    compiler.pre_sql_setup()
    sql, values = compiler.compile(query.where)
    stand_ins = {value: name for name, value in STAND_INS.items()}
    names = [stand_ins.get(value, f"{prefix}{number}") for number, value in enumerate(values)]
    own = {name: value for name, value in zip(names, values, strict=True) if name not in STAND_INS}
    return Sql(text=sql % tuple(f"%({name})s" for name in names), parameters=own)


SEARCHED_COLUMNS = """id, account_id, kind, agent_id, user_id, channel, conversation_id, context_id, event_time,
    expires_at, archived, quarantined, buried, pinned, embed_after, salience, token_count, lexemes, "index", record_id,
    slot, tier, entry_type, confidence, recorded_at, retracted_at, valid_from, valid_to, completed_at"""
"""The columns of a memory that recalls filter, order and score by."""


def memory_by_id_sql(memory_id: str) -> str:
    """Return a sub-select of one of the account's memories, named `memories`, with the columns that recalls search.

    OFFSET 0 makes the planner look it up by its key, whatever conditions the statement has on it.
    """
    return f"""(
        SELECT {SEARCHED_COLUMNS} FROM memories
        WHERE memories.account_id = %(account_id)s AND memories.id = {memory_id} OFFSET 0
    ) AS memories"""


def memory_sql(expression: str, *, table: str) -> str:
    """Return an expression over a memory, called `{own}` in it, for rows of `table`: `memories` or `memory_vectors`.

    For vectors it becomes a sub-select that looks the memory up by its key. With EXISTS the planner might read all
    memories that fit instead.
    """
    if table == "memories":
        return f"({expression.format(own=table)})"
    return f"""(SELECT {expression.format(own="own")} FROM memories AS own
        WHERE own.account_id = %(account_id)s AND own.id = {table}.memory_id)"""


def collapse_whitespace(statement: str) -> str:
    """Remove the indentation of a statement, which makes it a third shorter to send and to search for placeholders."""
    return re.sub(r"\s+", " ", statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedStatement:
    """A statement with numbered placeholders: `$1` for the first of `names`, and so on.

    Named placeholders would make psycopg search a long statement on each run.
    """

    text: str
    names: tuple[str, ...]
    plans_once: bool = False
    """True for look-ups by key and small accounts, whose plan is the same for all parameters (`numbered_cursor`)."""

    def read(self, values: Mapping[str, Any]) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """Run the statement. Return the names of its columns, and its rows."""
        with numbered_cursor(plans_once=self.plans_once) as cursor:
            cursor.execute(self.text, [values[name] for name in self.names])
            # not `description`, which makes an object of each column
            result = cursor.pgresult
            return [result.fname(place).decode() for place in range(result.nfields)], cursor.fetchall()

    def read_dicts(self, owner: Owner, values: Mapping[str, Any], *, now: datetime) -> list[dict[str, Any]]:
        """Run the statement for an owner. Return its rows by column name."""
        columns, rows = self.read({**owner_params(owner, now=now), **values})
        return [dict(zip(columns, row, strict=True)) for row in rows]
