"""Recalls for tests, stage by stage: what the pipeline's statements are asked with, and what they are sent as."""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper

from memory.models.statements import numbered_cursor
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.retrieval.gathering import GatheredCandidates, gather_candidates
from memory.retrieval.plans import QueryAnalysis, RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.retrievers import RETRIEVERS
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.partitions import table_of


def recall_context(owner: Owner, *, deadline: Deadline | None = None) -> RecallContext:
    return RecallContext(owner=owner, now=NOW, deadline=deadline or Deadline.after(None))


def asked(text: str = "", *, angle: float | None = None, **fields: Any) -> Query:
    """`fields` are those of the query; at an angle, its vector is known."""
    vector = None if angle is None else direction(angle)
    return Query(text=text, model="" if angle is None else MODEL, vector=vector, **fields)


def gathered(owner: Owner, query: Query, analysis: QueryAnalysis, *names: str) -> GatheredCandidates:
    """Gather candidates by the named retrievers, in the order in which they run."""
    retrievers = [retriever for name, retriever in RETRIEVERS.items() if name in names]
    return gather_candidates(owner, query, analysis, retrievers, recall_context(owner))


def found(owner: Owner, query: Query, analysis: QueryAnalysis, *names: str) -> set[str]:
    """The texts of what they bring."""
    return {each.text for each in gathered(owner, query, analysis, *names).candidates}


def about(*entities: UUID) -> QueryAnalysis:
    """Return the analysis of a question that names these entities."""
    return QueryAnalysis(entities=list(entities))


class Sent:
    """The statements that were sent while it was entered, with their parameters."""

    def __init__(self) -> None:
        self.statements: list[tuple[Any, Any]] = []
        self._wrapper = connection.execute_wrapper(self._catch)

    def __enter__(self) -> "Sent":
        self._wrapper.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._wrapper.__exit__(*raised)

    def _catch(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        self.statements.append((sql, params))
        return execute(sql, params, many, context)


CursorFor = Callable[[], AbstractContextManager[CursorWrapper]]


def explain(statement: str, parameters: Any, *, cursor_for: CursorFor = numbered_cursor) -> dict[str, Any]:
    """The plan of a statement, as it was executed, by a cursor like the one that sent it."""
    with cursor_for() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}", parameters)
        [[explained]] = cursor.fetchall()
    plan: dict[str, Any] = explained[0]
    return plan


def steps_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the steps of a plan, with the name of a table in place of its partition's."""
    yield plan | {"Relation Name": table_of(plan["Relation Name"])} if "Relation Name" in plan else plan
    for below in plan.get("Plans", ()):
        yield from steps_of(below)


def rows_read(sent: Sent, *, of: Collection[str], cursor_for: CursorFor = numbered_cursor) -> float:
    """Count the rows of these tables that the only sent statement reads, whether or not it keeps them."""
    [(statement, parameters)] = sent.statements
    steps = steps_of(explain(statement, parameters, cursor_for=cursor_for)["Plan"])
    return sum(rows_of(step) for step in steps if step.get("Relation Name") in of)


def rows_of(step: dict[str, Any]) -> float:
    """Figures of a plan are those of one loop."""
    removed = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Index Recheck", 0)
    return float((step["Actual Rows"] + removed) * step["Actual Loops"])
