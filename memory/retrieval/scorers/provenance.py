"""Provenance (E6): how far a memory is trusted, a claim believed, and what vouches for it.

Evidence is a link to a turn that the memory is DERIVED_FROM, where that turn is a candidate as well, or that staff
wrote it. What people pinned has been chosen by them.
"""

from collections.abc import Sequence

from memory.retrieval.candidates import IS_PINNED, Candidate
from memory.retrieval.plans import Setting
from memory.scoring import provenance_factor

DERIVED_FROM = "DERIVED_FROM"
BY_PEOPLE = "staff"


def provenance(candidates: Sequence[Candidate], setting: Setting) -> None:
    derived = {link.source for link in setting.links if link.type == DERIVED_FROM}
    for candidate in candidates:
        is_told = candidate.id in derived
        factor = provenance_factor(
            trust=candidate.trust,
            confidence=candidate.confidence,
            has_evidence=is_told or candidate.source == BY_PEOPLE,
            is_pinned=candidate.pinned,
        )
        candidate.multiply("provenance", factor, "what was said supports it" if is_told else "")
        if candidate.pinned:
            candidate.give(IS_PINNED)
