"""Scorers by what a memory is like, whatever is asked: its kind, salience, trust, evidence and pin."""

from collections.abc import Sequence

from memory.kinds import spec_of
from memory.retrieval.candidates import IS_PINNED, Candidate
from memory.retrieval.plans import ScoringContext
from memory.scoring import kind_factor, provenance_factor, salience_factor

DERIVED_FROM = "DERIVED_FROM"
STAFF_SOURCE = "staff"


def score_kind_weight(candidates: Sequence[Candidate], _context: ScoringContext) -> None:
    """Weigh by the documented weight of the kind (X8), relative to the largest.

    Words and meaning alone compare kinds badly: of two memories that say the same the shorter one scores higher by
    both, so names and one-line strategies would come before turns. The weights correct that, and a strategy that fits
    clearly better still comes first: the smallest weight costs it as much as 1.4 standard deviations.
    """
    for candidate in candidates:
        candidate.apply_factor("kind_weight", kind_factor(spec_of(candidate.kind).recall_weight))


def score_salience(candidates: Sequence[Candidate], _context: ScoringContext) -> None:
    """Weigh by salience (X11). The initial salience of 0.5 changes nothing."""
    for candidate in candidates:
        candidate.apply_factor("salience", salience_factor(candidate.salience))


def score_provenance(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Weigh by trust, confidence, evidence and pin (E6).

    Evidence is a DERIVED_FROM link to another candidate, or that staff wrote the memory.
    """
    derived = {link.source for link in context.links if link.type == DERIVED_FROM}
    for candidate in candidates:
        is_derived = candidate.id in derived
        factor = provenance_factor(
            trust=candidate.trust,
            confidence=candidate.confidence,
            has_evidence=is_derived or candidate.source == STAFF_SOURCE,
            is_pinned=candidate.pinned,
        )
        candidate.apply_factor("provenance", factor, "what was said supports it" if is_derived else "")
        if candidate.pinned:
            candidate.add_reason(IS_PINNED)
