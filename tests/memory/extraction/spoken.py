"""Chunks for the offline rules, and what they make of them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from memory.extraction.knowledge import Chunk, ChunkTurn, ExtractedFact, Extraction, KnownFact
from memory.extraction.rules import RuleExtractor

AT = datetime(2023, 5, 18, 15, 0, tzinfo=UTC)
"""A Thursday."""


def turn(text: str, *, speaker: str = "", role: str = "user", index: int = 0) -> ChunkTurn:
    return ChunkTurn(index=index, role=role, speaker=speaker, text=text, timestamp=AT)


def extracted(turns: Sequence[ChunkTurn], *, known: Sequence[str] = (), before: Sequence[ChunkTurn] = ()) -> Extraction:
    facts = [KnownFact(number=number, claim=claim) for number, claim in enumerate(known, start=1)]
    chunk = Chunk(turns=turns, before=before, known=facts)
    return RuleExtractor().extract(chunk, meter=lambda usage: None, deadline_seconds=1)


def said(*texts: str, speaker: str = "", role: str = "user", known: Sequence[str] = ()) -> Extraction:
    """Return what is extracted from one speaker's turns."""
    turns = [turn(text, speaker=speaker, role=role, index=index) for index, text in enumerate(texts)]
    return extracted(turns, known=known)


def claims(text: str, *, speaker: str = "", role: str = "user") -> list[str]:
    return [fact.claim for fact in said(text, speaker=speaker, role=role).facts]


def only(extraction: Extraction) -> ExtractedFact:
    [fact] = extraction.facts
    return fact
