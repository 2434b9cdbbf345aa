"""Questions asked on Thursday 18 May 2023, 15:00."""

from datetime import UTC, datetime
from uuid import UUID

from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.providers.language_models import LanguageModel, Usage
from memory.retrieval.plans import RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.rewriters import REWRITERS

NOW = datetime(2023, 5, 18, 15, 0, tzinfo=UTC)
OWNER = Owner(account_id=UUID(int=1))


def recall_context(
    *,
    seconds: float | None = 5.0,
    model: LanguageModel | None = None,
    techniques: frozenset[str] = frozenset(),
    usages: list[Usage] | None = None,
) -> RecallContext:
    return RecallContext(
        owner=OWNER,
        now=NOW,
        deadline=Deadline.after(seconds),
        model=model,
        meter=None if usages is None else usages.append,
        techniques=techniques,
    )


def rewritten(text: str, at: RecallContext | None = None) -> Query:
    """Pass a question through all rewriters, without a model unless one is given."""
    query, at = Query(text=text), at or recall_context()
    for rewriter in REWRITERS.values():
        query = rewriter(query, at)
    return query
