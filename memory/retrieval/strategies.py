"""Search in strategies (X4): what is nearest to a task, ranked by how often it worked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows, take_rows
from memory.scoring import success_rate

STRATEGIES = Searched(
    kind=Kind.STRATEGY,
    table="strategies",
    columns=(
        *("description", "context_pattern", "task_type", "tool_sequence"),
        *("success_count", "failure_count", "strategies.last_used"),
    ),
    type_column="task_type",
)
LEAST_CANDIDATES = 200
CANDIDATES_A_HIT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyHit(Hit):
    """A found strategy. `score` is what it was ranked by: likeness to the task times `success_rate`."""

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
        """Expected, see `scoring.success_rate`."""
        return success_rate(self.success_count, self.failure_count)


StrategiesFound = Found[StrategyHit]


def search_strategies(owner: Owner, query: MemoryQuery, *, now: datetime) -> StrategiesFound:
    """The `top_k` best of the strategies nearest to the query, of `query.types` (task types) if it names any.

    One statement. Looked through are the nearest 200, or ten times `top_k`, so that what works often passes what is
    a little nearer; they are ranked by similarity x success rate. Those found by their words (their vector is pending,
    or there is none of the query) are ranked by success rate / place among them, and alternate with the others.
    """
    candidates = max(LEAST_CANDIDATES, CANDIDATES_A_HIT * query.top_k)
    found = search_rows(owner, STRATEGIES, replace(query, top_k=candidates), now=now)
    best = take_rows(rank_rows(found.hits), query.top_k)
    return Found(hits=[make_hit(row) for row in best], degraded=found.degraded)


def rank_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows with their `score`, those found by meaning and those found by words each best first."""
    by_words = [row for row in rows if row["similarity"] is None]
    likeness = {row["id"]: row["similarity"] for row in rows}
    likeness |= {row["id"]: 1 / place for place, row in enumerate(by_words, start=1)}
    scored = [row | {"score": score_of(row, likeness[row["id"]])} for row in rows]
    # draws go to the more similar, then to the order of the search
    return sorted(scored, key=lambda row: (-row["score"], -(row["similarity"] or 0)))


def score_of(row: Row, likeness: float) -> float:
    # what points away from the task is not better for failing more often
    return max(likeness, 0.0) * success_rate(row["success_count"], row["failure_count"])


def make_hit(row: Row) -> StrategyHit:
    return StrategyHit(**{name: value for name, value in row.items() if name != "text"})
