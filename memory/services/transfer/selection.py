"""The rows that an archive of an account, an agent or a user has.

Of an agent or a user: the rows with its id, all that goes with them (turns with their conversation, versions with their
fact), and the shared rows that they refer to. A row that goes with something of others, such as a turn of the user in a
conversation of somebody else, stays with that. References to rows that are not selected are left empty.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from psycopg import sql

from memory.services.transfer.rules import BY_CONVERSATION, SHARED, ExportedTable, exported_tables

Session = psycopg.Connection[Any]

CREATE = "CREATE TEMPORARY TABLE transfer_selected (name text, id uuid, PRIMARY KEY (name, id)) ON COMMIT DROP"

# of all rows at once: a distributed database refuses to look up each row in a table that is on one machine alone
IS_SELECTED = (
    "{id} IN (SELECT s.id FROM transfer_selected s WHERE s.name = {name})"
    if settings.DATABASE_IS_DISTRIBUTED
    else "EXISTS (SELECT FROM transfer_selected s WHERE s.name = {name} AND s.id = {id})"
)
IN_CONVERSATION = (
    "t.conversation_id IN (SELECT c.conversation_id FROM conversations c WHERE c.account_id = {account} AND {selected})"
    if settings.DATABASE_IS_DISTRIBUTED
    else "EXISTS (SELECT FROM conversations c"
    " WHERE c.account_id = t.account_id AND c.conversation_id = t.conversation_id AND {selected})"
)
# marks of the agent, and the ends of ledgers with one, in conversations that have no turn
IN_NO_CONVERSATION = """
(t.agent_id = {agent} OR t.event = 'ended' AND EXISTS (SELECT FROM injections o WHERE o.account_id = t.account_id
    AND o.conversation_id = t.conversation_id AND o.agent_id = {agent}))
AND NOT EXISTS (SELECT FROM conversations c
    WHERE c.account_id = t.account_id AND c.conversation_id = t.conversation_id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferScope:
    """The account, or an agent or a user of it, to be exported."""

    account_id: UUID
    agent_id: str = ""
    user_id: str = ""

    @property
    def kind(self) -> str:
        if self.agent_id:
            return "agent"
        return "user" if self.user_id else "account"

    @property
    def name(self) -> str:
        """The id of the agent or user; empty for an account."""
        return self.agent_id or self.user_id

    @property
    def is_whole(self) -> bool:
        return self.kind == "account"


def select_rows(session: Session, scope: TransferScope) -> None:
    """Note the ids of an agent's or a user's rows in the temporary table `transfer_selected`."""
    session.execute(CREATE)
    known = exported_tables()
    # in the order of their references, and last what goes with conversations by their name
    for table in sorted(known.values(), key=lambda each: each.name in BY_CONVERSATION):
        if table.name in SHARED:
            continue
        condition = selection_of(table, scope)
        if condition is not None:
            insert_selected(session, scope, table.name, condition)
        # plans for the next tables need to know how many there are
        session.execute("ANALYZE transfer_selected")
    for table in known.values():
        for reference in (each for each in table.all_references if each.target in SHARED):
            named = sql.SQL("EXISTS (SELECT FROM {} r WHERE r.account_id = t.account_id AND r.{} = t.id AND {})")
            condition = named.format(sql.Identifier(table.name), sql.Identifier(reference.column), is_selected(table))
            insert_selected(session, scope, reference.target, condition)


def insert_selected(session: Session, scope: TransferScope, name: str, condition: sql.Composable) -> None:
    statement = sql.SQL(
        "INSERT INTO transfer_selected SELECT {name}, t.id FROM {table} t WHERE t.account_id = {account} AND ({rows})"
        " ON CONFLICT DO NOTHING"
    )
    named = sql.Literal(name), sql.Identifier(name), sql.Literal(scope.account_id)
    session.execute(statement.format(name=named[0], table=named[1], account=named[2], rows=condition))


def is_selected(table: ExportedTable) -> sql.Composable:
    """Return the condition on rows `r` of a table that they are selected."""
    return selected_sql(table.name, sql.SQL("r.id"))


def selection_of(table: ExportedTable, scope: TransferScope) -> sql.Composable | None:
    """Return the condition on rows `t` of a table; None if none of its rows is selected."""
    if table.name in BY_CONVERSATION:
        selected = selected_sql("conversations", sql.SQL("c.id"))
        condition: sql.Composable = sql.SQL(IN_CONVERSATION).format(
            account=sql.Literal(scope.account_id), selected=selected
        )
        if table.name == "injections" and scope.agent_id:
            condition += sql.SQL(" OR ") + sql.SQL(IN_NO_CONVERSATION).format(agent=sql.Literal(scope.agent_id))
        return condition
    column = f"{scope.kind}_id"
    has_column = any(field.column == column for field in table.model._meta.concrete_fields)
    own = sql.SQL("t.{} = {}").format(sql.Identifier(column), sql.Literal(scope.name)) if has_column else None
    parents = [each for each in table.references if each.cascades and each.target not in SHARED]
    if not parents:
        return own
    with_parents = [goes_with(parent.column, parent.target) for parent in parents]
    if table.name != "memories":
        return sql.SQL(" AND ").join(with_parents)
    # a memory may go with something, or stand by itself
    empty_or_with = [
        sql.SQL("(t.{} IS NULL OR {})").format(sql.Identifier(parent.column), condition)
        for parent, condition in zip(parents, with_parents, strict=True)
    ]
    roots = sql.SQL(" OR ").join([*([own] if own is not None else []), *with_parents])
    return sql.SQL("({}) AND {}").format(roots, sql.SQL(" AND ").join(empty_or_with))


def goes_with(column: str, target: str) -> sql.Composable:
    return selected_sql(target, sql.SQL("t.{}").format(sql.Identifier(column)))


def selected_sql(table: str, row_id: sql.Composable) -> sql.Composable:
    """Return the condition on the id of a row of the table that the row is selected."""
    return sql.SQL(IS_SELECTED).format(name=sql.Literal(table), id=row_id)
