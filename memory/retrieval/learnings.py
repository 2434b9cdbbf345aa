"""Search in learnings (P10): what agents learnt for their teams."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from memory.kinds import Kind
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, SearchResults, search_kind

# looked up by key, for the few rows that are returned
TEAM = """(
    SELECT team_id FROM persistent_contexts
    WHERE persistent_contexts.id = memories.context_id AND persistent_contexts.account_id = memories.account_id
) AS team_id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningHit(Hit):
    """A found learning with its current votes. `team_id` is None once its team is dissolved."""

    kind: ClassVar[Kind] = Kind.LEARNING

    insight: str
    team_id: UUID | None
    helpful_count: int
    unhelpful_count: int
    score: float


LearningResults = SearchResults[LearningHit]
LEARNINGS = KindSearch(
    kind=Kind.LEARNING,
    hit=LearningHit,
    table="learnings",
    columns=(TEAM, "helpful_count", "unhelpful_count", "learnings.score"),
    text_field="insight",
)


def search_learnings(owner: Owner, query: MemoryQuery, *, now: datetime) -> LearningResults:
    """Return the `top_k` learnings nearest to the query in contexts that the owner may read and that are not archived.

    `query.contexts` limits the contexts (see `search_rows`). One statement.
    """
    return search_kind(owner, LEARNINGS, query, now=now)
