"""Reading SQL for tests: which tables of accounts a statement reads or writes without naming the account.

PostgreSQL's own parser (pglast) reads the statements, so that everything the server accepts is understood.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

from django.apps import apps
from django.db import connection
from pglast import ast, parse_sql
from pglast.enums import A_Expr_Kind, BoolExprType, JoinType, SubLinkType

from memory_project.tenancy import INSTALLATION_TABLES

ACCOUNT = "account_id"
ACCOUNTS = "accounts"
"""The table of the accounts, whose ids are accounts: a join with all of them names none."""

PARAMETER = re.compile(r"%(?:\(\w+\))?[sbt]\b")

QUERIES = (ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt)

PLUMBING = {
    *("memory.models.statements.fetch_rows", "memory.models.statements.execute_statement"),
    "memory.services.embedding.vector_index.run_query",
}
"""Functions that execute statements for others."""

Column = tuple[str, str]
"""The alias of a column's table, empty if the statement does not say it, and the column's name."""


@cache
def tenant_tables() -> frozenset[str]:
    """Return the names of the tables whose rows belong to accounts."""
    models = [model for app in ("memory", "ledger") for model in apps.get_app_config(app).get_models()]
    tables = {model._meta.db_table for model in models if ACCOUNT in {f.column for f in model._meta.concrete_fields}}
    return frozenset(tables - INSTALLATION_TABLES.keys())


def account_column(table: str) -> str:
    """Return the name of the column with the account of a table's rows, empty for a table of the installation."""
    return "id" if table == ACCOUNTS else ACCOUNT if table in tenant_tables() else ""


def unfiltered_tables(sql: str) -> list[str]:
    """Return the tables of accounts, in alphabetical order, of which the statement does not say the account.

    In each SELECT, UPDATE, DELETE and MERGE, a condition of its WHERE or of a join must compare the table's
    `account_id`, by `=`, `IN` or as part of a row, with something of the outside (a parameter, a function, or the
    account of an outer query or CTE), or with the account of a table for which that holds. The ids of `accounts` are
    such accounts: that table is returned too where others are joined with all its rows. A condition in only one branch
    of an OR is none, and the ON of an outer join says nothing of the side whose rows all stay. An INSERT must name the
    column. Raises pglast.Error for what PostgreSQL would not parse.
    """
    text = PARAMETER.sub("NULL", sql).replace("%%", "%")
    statements = [raw.stmt for raw in parse_sql(text)]
    found = {table for statement in statements for table in find_unfiltered(statement, frozenset())}
    if not any(table in tenant_tables() for statement in statements for table in tables_in(statement)):
        found.discard(ACCOUNTS)
    return sorted(found)


def tables_in(node: Any) -> Iterator[str]:
    """Yield the names of what a statement reads or writes."""
    if isinstance(node, ast.RangeVar):
        yield str(node.relname)
    for each in children_of(node):
        yield from tables_in(each)


def children_of(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple | list):
        yield from node
    elif isinstance(node, ast.Node):
        yield from (getattr(node, name) for name in node)


def find_unfiltered(node: Any, ctes: frozenset[str]) -> Iterator[str]:
    """Yield the unfiltered tables of a node of the parse tree and of all below it. `ctes` are names of no tables."""
    if isinstance(node, tuple | list):
        for each in node:
            yield from find_unfiltered(each, ctes)
    elif isinstance(node, ast.WithClause):
        defined: Any = node.ctes
        for place, cte in enumerate(defined):
            # those before it, and of a recursive clause all
            seen = defined if node.recursive else defined[:place]
            yield from find_unfiltered(cte.ctequery, ctes | {each.ctename for each in seen})
    elif isinstance(node, ast.Node):
        inner = ctes
        if isinstance(node, QUERIES):
            clause: Any = node.withClause
            inner |= {cte.ctename for cte in clause.ctes} if clause else set()
            yield from unfiltered_in_query(node, inner)
        for name in node:
            yield from find_unfiltered(getattr(node, name), ctes if name == "withClause" else inner)


def unfiltered_in_query(query: Any, ctes: frozenset[str]) -> list[str]:
    """Return the unfiltered tables of the query's own FROM, USING or target."""
    if is_a(query, ast.InsertStmt):
        table, columns = query.relation.relname, [each.name for each in query.cols or ()]
        return [table] if table in tenant_tables() and ACCOUNT not in columns else []
    scope = Scope(ctes)
    for source in sources_of(query):
        scope.add_source(source)
    condition = query.joinCondition if is_a(query, ast.MergeStmt) else query.whereClause
    scope.conditions.append((condition, frozenset(scope.tables)))
    return scope.unfiltered()


def sources_of(query: Any) -> Sequence[Any]:
    """Return what the query reads from or writes to, besides sub-queries in its expressions."""
    if is_a(query, ast.SelectStmt):
        return query.fromClause or ()
    if is_a(query, ast.MergeStmt):
        return query.relation, query.sourceRelation
    others = query.fromClause if is_a(query, ast.UpdateStmt) else query.usingClause
    return query.relation, *(others or ())


@dataclass(slots=True)
class Scope:
    """The tables of accounts in one query, and what its conditions compare their accounts with."""

    ctes: frozenset[str]
    tables: dict[str, str] = field(default_factory=dict)
    """The tables by alias."""
    conditions: list[tuple[Any, frozenset[str]]] = field(default_factory=list)
    """Conditions, each with the aliases of which it can tell something."""
    shared: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    """Aliases joined by USING (account_id), with those of which that tells something."""

    def add_source(self, source: Any) -> frozenset[str]:
        """Add a table or join of the FROM and return the aliases of the tables of accounts in it."""
        if is_a(source, ast.RangeVar):
            if not account_column(source.relname) or (source.relname in self.ctes and not source.schemaname):
                return frozenset()
            alias = source.alias.aliasname if source.alias else source.relname
            self.tables[alias] = source.relname
            return frozenset({alias})
        if not is_a(source, ast.JoinExpr):
            return frozenset()
        left, right = self.add_source(source.larg), self.add_source(source.rarg)
        sides = {JoinType.JOIN_INNER: left | right, JoinType.JOIN_LEFT: right, JoinType.JOIN_RIGHT: left}
        inner = sides.get(JoinType(source.jointype), frozenset())
        self.conditions.append((source.quals, inner))
        if ACCOUNT in {each.sval for each in source.usingClause or ()}:
            self.shared.append((left | right, inner))
        return left | right

    def unfiltered(self) -> list[str]:
        """Return the tables whose account no condition says."""
        known: set[str] = set()
        while more := self.aliases_with_account(known) - known:
            known |= more
        return [table for alias, table in self.tables.items() if alias not in known]

    def aliases_with_account(self, known: set[str]) -> set[str]:
        """Return the aliases whose account is said, given those of which it is known."""
        found = {alias for condition, aliases in self.conditions for alias in self.said_by(condition, known) & aliases}
        for joined, aliases in self.shared:
            # of a single one the other side is no table of accounts, such as a CTE, and has the account too
            if len(joined) == 1 or joined & known:
                found |= aliases
        return found

    def said_by(self, condition: Any, known: set[str]) -> set[str]:
        """Return the aliases of which the condition says the account."""
        if is_a(condition, ast.BoolExpr):
            branches = [self.said_by(each, known) for each in condition.args]
            if condition.boolop == BoolExprType.AND_EXPR:
                return set().union(*branches)
            return set.intersection(*branches) if condition.boolop == BoolExprType.OR_EXPR else set()
        pairs = [(self.account_of(ours), theirs) for ours, theirs in compared(condition)]
        return {alias for alias, theirs in pairs if alias and self.is_known(theirs, alias, known)}

    def account_of(self, node: Any) -> str:
        """Return the alias if the node is the account of a table of this query, otherwise an empty text."""
        if not is_a(node, ast.ColumnRef):
            return ""
        alias, name = self.resolve(column_of(node))
        return alias if alias in self.tables and name == account_column(self.tables[alias]) else ""

    def resolve(self, column: Column) -> Column:
        """Return the column with the alias that it has without saying so, if any.

        An account without an alias is that of the only table with one: PostgreSQL refuses ambiguous names.
        """
        alias, name = column
        owners = (each for each, table in self.tables.items() if account_column(table) == name)
        return (alias or next(owners, ""), name)

    def is_known(self, node: Any, alias: str, known: set[str]) -> bool:
        """Return whether a value is from outside, or the account of other tables of this query that is known."""
        used = {self.resolve(column) for column in columns_in(node)}
        of_query = {each: name for each, name in used if each in self.tables}
        of_others = {name for each, name in used if each not in self.tables}
        if any(name != account_column(self.tables[each]) for each, name in of_query.items()):
            return False
        return alias not in of_query and of_query.keys() <= known and of_others <= {ACCOUNT, "id"}


def is_a(node: Any, kind: Any) -> bool:
    """Return whether the node is of a kind. mypy takes each of its parts for optional."""
    return isinstance(node, kind)


def compared(condition: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what the condition compares for being equal, each pair in both orders."""
    if is_a(condition, ast.SubLink) and condition.subLinkType == SubLinkType.ANY_SUBLINK:
        names = [each.sval for each in condition.operName or ()]
        if names in ([], ["="]):
            for each in members(condition.testexpr):
                yield each, ()
    if not is_a(condition, ast.A_Expr) or [each.sval for each in condition.name] != ["="]:
        return
    if condition.kind == A_Expr_Kind.AEXPR_OP:
        left, right = members(condition.lexpr), members(condition.rexpr)
        for ours, theirs in zip(left, right, strict=True) if len(left) == len(right) else ():
            yield ours, theirs
            yield theirs, ours
    elif condition.kind in (A_Expr_Kind.AEXPR_IN, A_Expr_Kind.AEXPR_OP_ANY):
        for each in members(condition.lexpr):
            yield each, condition.rexpr


def members(node: Any) -> Sequence[Any]:
    """Return the values of a row, or the one value."""
    return node.args if is_a(node, ast.RowExpr) else (node,)


def columns_in(node: Any) -> Iterator[Column]:
    """Yield the columns of an expression, but not those of sub-queries in it."""
    if isinstance(node, ast.ColumnRef):
        yield column_of(node)
    elif isinstance(node, tuple | list):
        for each in node:
            yield from columns_in(each)
    elif isinstance(node, ast.Node) and not isinstance(node, QUERIES):
        for name in node:
            yield from columns_in(getattr(node, name))


def column_of(node: Any) -> Column:
    names = [getattr(each, "sval", "*") for each in node.fields]
    return (names[-2] if len(names) > 1 else ""), names[-1]


@contextmanager
def statements_captured() -> Iterator[dict[str, str]]:
    """Collect the distinct statements of this thread's connection, each with the function that executed it first."""
    found: dict[str, str] = {}

    def note(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if str(sql) not in found:
            found[str(sql)] = executing_function()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def executing_function() -> str:
    """Return the module and name of the innermost running function of the service, empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        place = f"{frame.f_globals['__name__']}.{frame.f_code.co_name}"
        if place.startswith(("memory.", "ledger.")) and place not in PLUMBING:
            return place
        frame = frame.f_back
    return ""
