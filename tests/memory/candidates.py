"""Candidates for tests of what ranks them."""

from typing import Any
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.candidates import Candidate, OpenGoal
from memory.retrieval.plans import LinkBetween, QueryAnalysis, ScoringContext
from memory.retrieval.queries import Query
from memory.retrieval.scorers import SCORERS
from tests.memory.episodes import NOW

PLAIN: dict[str, Any] = {
    "kind": Kind.TURN,
    "agent_id": "assistant",
    "user_id": "",
    "channel": "_global",
    "conversation_id": "c1",
    "event_time": NOW,
    "last_accessed": None,
    "token_count": 5,
    "salience": 0.5,
    "trust": 1.0,
    "pinned": False,
    "source": "",
    "ways": frozenset({"lexical"}),
    "bm25": 1.0,
    "similarity": 0.5,
}


def found(number: int, text: str = "", **fields: Any) -> Candidate:
    """The candidate of this id; its text is its number, unless it has another."""
    return Candidate(**PLAIN | {"id": UUID(int=number), "text": text or f"text {number}"} | fields)


def ranked(*scores: float, **fields: Any) -> list[Candidate]:
    """Numbered from 1, with these scores."""
    return [found(number, score=score, **fields) for number, score in enumerate(scores, start=1)]


def numbers(candidates: list[Candidate]) -> list[int]:
    return [candidate.id.int for candidate in candidates]


def asking(*links: LinkBetween, **fields: Any) -> ScoringContext:
    """`fields` are those of the query."""
    query = Query(**{"text": "anything"} | fields)
    return ScoringContext(
        owner=Owner(account_id=UUID(int=1)), query=query, analysis=QueryAnalysis(), now=NOW, links=links
    )


def link(source: int, type: str, target: int) -> LinkBetween:  # noqa: A002
    return LinkBetween(source=UUID(int=source), target=UUID(int=target), type=type, weight=1.0)


def goals(*ids: int) -> list[OpenGoal]:
    """Open goals, the most urgent first."""
    plain: dict[str, Any] = {"description": "", "status": "active", "priority": 0, "deadline": None}
    return [OpenGoal(id=UUID(int=number), **plain) for number in ids]


def factor_of(name: str, context: ScoringContext, **fields: Any) -> float:
    """Return the factor by which a scorer multiplies a candidate with these fields."""
    candidate = found(1, score=1.0, **fields)
    SCORERS[name]([candidate], context)
    return candidate.score
