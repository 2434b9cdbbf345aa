"""The rows that an archive of an account, an agent or a user has.

Of an agent or a user: the rows with its id, all that goes with them (turns with their conversation, versions with their
fact), and the shared rows that they refer to. A row that goes with something of others, such as a turn of the user in a
conversation of somebody else, stays with that. References to rows that are not selected are left empty.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from memory.services.transfer.rules import BY_CONVERSATION, SHARED, Reference, exported_tables

Session = psycopg.Connection[Any]

IN_CONVERSATION = """
EXISTS (SELECT FROM conversations c
    WHERE c.account_id = {account} AND c.conversation_id = {row}.conversation_id AND {selected})
"""
# marks of the agent, and the ends of ledgers with one, in conversations that have no turn
IN_NO_CONVERSATION = """
({row}.agent_id = {agent} OR {row}.event = 'ended' AND EXISTS (SELECT FROM injections o WHERE o.account_id = {account}
    AND o.conversation_id = {row}.conversation_id AND o.agent_id = {agent}))
AND NOT EXISTS (SELECT FROM conversations c
    WHERE c.account_id = {account} AND c.conversation_id = {row}.conversation_id)
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


def is_selected(name: str, scope: TransferScope, row: str = "t") -> sql.Composable:
    """Return the condition on a row of a table that an archive of the scope has it; `row` is its alias in SQL.

    It contains the conditions on what the row goes with. No ids of rows are kept: a replica may be asked, which takes
    no temporary table, and ids of millions of rows need no memory.
    """
    if scope.is_whole:
        return sql.SQL("true")
    table = exported_tables()[name]
    if name in SHARED:
        return is_referred_to(name, scope, row)
    if name in BY_CONVERSATION:
        return goes_with_conversation(name, scope, row)
    column = f"{scope.kind}_id"
    has_column = any(field.column == column for field in table.model._meta.concrete_fields)
    own = sql.SQL("{}.{} = {}").format(sql.SQL(row), sql.Identifier(column), sql.Literal(scope.name))
    parents = [each for each in table.references if each.cascades and each.target not in SHARED]
    if not parents:
        return own if has_column else sql.SQL("false")
    with_parents = [refers_to_selected(parent, scope, row) for parent in parents]
    if name != "memories":
        return sql.SQL("({})").format(sql.SQL(" AND ").join(with_parents))
    # a memory may go with something, or stand by itself
    empty_or_with = [
        sql.SQL("({}.{} IS NULL OR {})").format(sql.SQL(row), sql.Identifier(parent.column), condition)
        for parent, condition in zip(parents, with_parents, strict=True)
    ]
    roots = sql.SQL(" OR ").join([own, *with_parents])
    return sql.SQL("(({}) AND {})").format(roots, sql.SQL(" AND ").join(empty_or_with))


def refers_to_selected(reference: Reference, scope: TransferScope, row: str) -> sql.Composable:
    """Return the condition that a row refers to one that is selected."""
    target = f"{row}_r"
    return sql.SQL("EXISTS (SELECT FROM {} {} WHERE {}.account_id = {} AND {}.id = {}.{} AND {})").format(
        sql.Identifier(reference.target),
        *(sql.SQL(target), sql.SQL(target), sql.Literal(scope.account_id), sql.SQL(target)),
        *(sql.SQL(row), sql.Identifier(reference.column), is_selected(reference.target, scope, target)),
    )


def is_referred_to(name: str, scope: TransferScope, row: str) -> sql.Composable:
    """Return the condition that a selected row refers to the row of a shared table."""
    referring = [
        sql.SQL("SELECT r.{} FROM {} r WHERE r.account_id = {} AND {}").format(
            sql.Identifier(each.column),
            *(sql.Identifier(table.name), sql.Literal(scope.account_id), is_selected(table.name, scope, "r")),
        )
        for table in exported_tables().values()
        for each in table.all_references
        if each.target == name
    ]
    return sql.SQL("{}.id IN ({})").format(sql.SQL(row), sql.SQL(" UNION ").join(referring))


def goes_with_conversation(name: str, scope: TransferScope, row: str) -> sql.Composable:
    """Return the condition that the conversation of a row, which it names by the client's id, is selected."""
    names = {"account": sql.Literal(scope.account_id), "row": sql.SQL(row), "agent": sql.Literal(scope.agent_id)}
    condition = sql.SQL(IN_CONVERSATION).format(**names, selected=is_selected("conversations", scope, "c"))
    if name == "injections" and scope.agent_id:
        condition = sql.SQL("{} OR {}").format(condition, sql.SQL(IN_NO_CONVERSATION).format(**names))
    return sql.SQL("({})").format(condition)
