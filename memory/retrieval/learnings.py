"""Search in what agents learnt for their teams (P10)."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows

# of the few rows that come back, each by its key
TEAM = """(
    SELECT team_id FROM persistent_contexts
    WHERE persistent_contexts.id = memories.context_id AND persistent_contexts.account_id = memories.account_id
) AS team_id"""

LEARNINGS = Searched(
    kind=Kind.LEARNING,
    table="learnings",
    columns=(TEAM, "helpful_count", "unhelpful_count", "learnings.score"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningHit(Hit):
    """A found learning, with its votes so far. `team_id` is None once its team is dissolved."""

    kind: ClassVar[Kind] = Kind.LEARNING

    insight: str
    team_id: UUID | None
    helpful_count: int
    unhelpful_count: int
    score: float


LearningsFound = Found[LearningHit]


def search_learnings(owner: Owner, query: MemoryQuery, *, now: datetime) -> LearningsFound:
    """The `top_k` learnings nearest to the query in contexts that the owner may read and that are not archived.

    In those of `query.contexts` only, where it names any (see `search_rows`). One statement.
    """
    found = search_rows(owner, LEARNINGS, query, now=now)
    return Found(hits=[make_hit(row) for row in found.hits], degraded=found.degraded)


def make_hit(row: Row) -> LearningHit:
    return LearningHit(insight=row["text"], **{name: value for name, value in row.items() if name != "text"})
