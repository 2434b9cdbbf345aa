"""Conversations to extract from in tests, extraction until nothing is due, and its results."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from memory.models import Conversation, Entity, Fact, Link
from memory.owner import Owner
from memory.services.account_walk import BatchReport
from memory.services.extraction.extract import extract_due
from memory.services.turns import StoredTurns
from tests.memory.turns import say, turn

TURN_TIME = datetime(2026, 2, 4, 12, tzinfo=UTC)
"""A Wednesday."""


def say_sentences(
    owner: Owner, *sentences: str, name: str = "Ana", conversation_id: str = "c1", at: datetime = TURN_TIME
) -> StoredTurns:
    """Store sentences of a user with this name, one per turn."""
    drafts = []
    for sentence in sentences:
        draft = turn(sentence, timestamp=at)
        drafts.append(with_name(draft, name))
    return say(owner, *drafts, conversation_id=conversation_id)


def with_name(draft: Any, name: str) -> Any:
    return replace(draft, message=replace(draft.message, name=name))


def extract_all(now: datetime) -> BatchReport:
    """Extract until nothing is due."""
    total = Counter({"claimed": 0, "stored": 0, "failed": 0})
    while (batch := extract_due(now=now, limit=4)).examined:
        total += Counter({"claimed": batch.examined, "stored": batch.changed, "failed": batch.failed})
        if batch.stopped:
            break
    return BatchReport(examined=total["claimed"], changed=total["stored"], failed=total["failed"])


def claims(**filters: Any) -> list[str]:
    """Return the claims of all facts, in any state."""
    rows = Fact.objects.filter(**filters).order_by("text")
    return [fact.text for fact in rows]


def entities(**filters: Any) -> dict[str, str]:
    rows = Entity.objects.filter(**filters)
    return {entity.name: entity.type for entity in rows}


def links(type: str) -> list[tuple[Any, Any]]:  # noqa: A002
    return list(Link.objects.filter(type=type).values_list("source_id", "target_id"))


def extracted(conversation_id: str = "c1") -> tuple[int, int]:
    """Return how many turns there are and how many were extracted."""
    row = Conversation.objects.get(conversation_id=conversation_id)
    return row.turn_count, row.extracted_count


def answer_with(**lists: Any) -> Any:
    """Return a model's answer with these lists and empty ones."""
    empty: dict[str, list[Any]] = {"entities": [], "facts": [], "relationships": [], "preferences": []}
    return lambda asked: empty | lists


def person(name: str, *evidence: int) -> dict[str, Any]:
    return {"name": name, "type": "person", "aliases": [], "description": "", "evidence": list(evidence)}


def fact_json(claim: str, *evidence: int, **fields: Any) -> dict[str, Any]:
    """Return a fact as a model answers it."""
    plain = {
        "number": 1,
        "claim": claim,
        "certainty": "explicit",
        "temporal": "current",
        "entities": [],
        "valid_from": None,
        "valid_to": None,
        "contradicts": [],
        "corrects": [],
        "evidence": list(evidence),
    }
    return plain | fields
