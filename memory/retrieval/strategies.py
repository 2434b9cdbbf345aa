"""Search in strategies (X4): those nearest to a task, ranked by how often they worked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from memory.kinds import Kind
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, Row, SearchResults, interleave_rows, search_rows
from memory.scoring import success_rate

MIN_CANDIDATES = 200
CANDIDATES_PER_HIT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyHit(Hit):
    """A found strategy. It is ranked by `score`, its similarity to the task times `success_rate`."""

    kind: ClassVar[Kind] = Kind.STRATEGY

    description: str
    context_pattern: str
    task_type: str
    tool_sequence: list[Any]
    success_count: int
    failure_count: int
    last_used: datetime | None
    score: float

    @property
    def success_rate(self) -> float:
        """The expected success rate (`scoring.success_rate`)."""
        return success_rate(self.success_count, self.failure_count)


StrategyResults = SearchResults[StrategyHit]
STRATEGIES = KindSearch(
    kind=Kind.STRATEGY,
    hit=StrategyHit,
    table="strategies",
    columns=(
        *("description", "context_pattern", "task_type", "tool_sequence"),
        *("success_count", "failure_count", "strategies.last_used"),
    ),
    text_field="",
    type_column="task_type",
)


def search_strategies(owner: Owner, query: MemoryQuery, *, now: datetime) -> StrategyResults:
    """Return the `top_k` best of the strategies nearest to the query. `query.types` limits their task types.

    One statement. The nearest 200, or ten times `top_k`, are ranked by similarity x success rate, so that a strategy
    that often works comes before one that is a little nearer. Those found by words (without a vector of their own or of
    the query) are ranked by success rate / rank among them, and alternate with the others.
    """
    candidates = max(MIN_CANDIDATES, CANDIDATES_PER_HIT * query.top_k)
    found = search_rows(owner, STRATEGIES, replace(query, top_k=candidates), now=now)
    best = interleave_rows(rank_strategy_rows(found.hits), query.top_k)
    return SearchResults(hits=[STRATEGIES.make_hit(row) for row in best], degraded=found.degraded)


def rank_strategy_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their `score`. Rows found by meaning and rows found by words are each best first."""
    by_words = [row for row in rows if row["similarity"] is None]
    similarity = {row["id"]: row["similarity"] for row in rows}
    similarity |= {row["id"]: 1 / rank for rank, row in enumerate(by_words, start=1)}
    # a strategy that points away from the task does not get better by failing more often
    scored = [
        row | {"score": max(similarity[row["id"]], 0.0) * success_rate(row["success_count"], row["failure_count"])}
        for row in rows
    ]
    # ties go to the more similar, then to the order of the search
    return sorted(scored, key=lambda row: (-row["score"], -(row["similarity"] or 0)))
