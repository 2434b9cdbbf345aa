"""Confidence of the hits of a search in one kind, which is no recall: what `confidence` says of candidates.

Two statements for a question with a text: its analysis, and which of its terms each hit holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from memory.models.statements import binary_cursor
from memory.owner import Owner
from memory.providers.connections import NEVER
from memory.retrieval.confidence import FLOOR, MAX_JUDGED, chances_of, floor_among, may_be_silent
from memory.retrieval.plans import QueryAnalysis, RecallContext, ScoringContext
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers.lexical import quote_lexeme
from memory.retrieval.rewriters.names import find_names
from memory.retrieval.search import Hit, MemoryQuery

H = TypeVar("H", bound=Hit)

HELD = """
SELECT id, (
    SELECT coalesce(bit_or(1::bigint << (place::int - 1)), 0)
    FROM unnest(%(terms)s::tsquery[]) WITH ORDINALITY AS asked (term, place) WHERE memories.lexemes @@ term
) FROM memories WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[])"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedHit:
    """The numbers of a hit that its confidence depends on."""

    similarity: float | None
    held: int
    speaker: str = ""
    text: str = ""


def judge_hits(owner: Owner, query: MemoryQuery, hits: Sequence[H], *, now: datetime) -> list[H]:
    """Return the hits with their `likelihood`, in their order."""
    if not hits:
        return []
    context = scoring_context(owner, query, now=now)
    held = terms_held(owner, context.analysis, [hit.id for hit in hits])
    judged = [JudgedHit(similarity=hit.similarity, held=held.get(hit.id, 0)) for hit in hits]
    chances = chances_of(judged, context)
    return [replace(hit, likelihood=chance) for hit, chance in zip(hits, chances, strict=True)]


def keep_helpful_hits(query: MemoryQuery, hits: Sequence[H]) -> list[H]:
    """Return the judged hits, or none if none of the first twenty is likely enough to help (`floor_among`).

    Hits that were found by their words, since they have no vector yet, may help. As many hits as were wanted are the
    best of nobody knows how many.
    """
    floor = floor_among(len(hits)) if len(hits) < query.top_k else FLOOR
    may_help = any(hit.similarity is None or (hit.likelihood or 0.0) >= floor for hit in hits[:MAX_JUDGED])
    return list(hits) if may_help or not may_be_silent(question_of(query)) else []


def question_of(query: MemoryQuery) -> Query:
    return Query(text=query.text, model=query.model, vector=query.vector)


def scoring_context(owner: Owner, query: MemoryQuery, *, now: datetime) -> ScoringContext:
    """Return what a recall of the question would know about it before it looks for memories."""
    context, asked = RecallContext(owner=owner, now=now, deadline=NEVER), question_of(query)
    if not asked.text.strip():
        return ScoringContext(owner=owner, query=asked, analysis=QueryAnalysis(), now=now)
    asked = find_names(asked, context)
    return ScoringContext(owner=owner, query=asked, analysis=analyze_query(owner, asked, context), now=now)


def terms_held(owner: Owner, analysis: QueryAnalysis, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the terms that each memory holds, bit n for term n of the analysis."""
    terms = [quote_lexeme(term.lexeme) for term in analysis.terms]
    if not terms:
        return {}
    with binary_cursor() as cursor:
        cursor.execute(HELD, {"terms": terms, "account_id": owner.account_id, "ids": list(ids)})
        return dict(cursor.fetchall())
