"""The four tiers of a turn's reasoning (E3), from none to the provider's own trace.

A deeper tier is never derived from a shallower one. Readers get the shallowest of what is stored, what the account
allows and what they ask for (`shallowest`).
"""

from enum import StrEnum


class ReasoningTier(StrEnum):
    """The documented tiers, shallowest first."""

    NONE = "none"
    DECISION_SUMMARY = "decision_summary"
    """The shortest durable explanation of why the turn moved in one direction."""
    STRUCTURED_RATIONALE = "structured_rationale"
    """Decisions, rejected options, blockers."""
    RAW_TRACE = "raw_trace"
    """The reasoning that the provider showed, encrypted at rest."""


class Provenance(StrEnum):
    """The origin of a reasoning."""

    PROVIDER_TRACE = "provider_trace"
    RUNTIME_PROJECTION = "runtime_projection"
    """Derived by the runtime, or by this service, from what it knew of the turn."""
    REPLAY = "replay"
    """Reconstructed later."""


DEPTHS = {tier: depth for depth, tier in enumerate(ReasoningTier)}


def shallowest(*tiers: str) -> ReasoningTier:
    """Return the shallowest of the tiers."""
    return min(map(ReasoningTier, tiers), key=lambda tier: DEPTHS[tier])


def is_deeper(tier: str, than: str) -> bool:
    return DEPTHS[ReasoningTier(tier)] > DEPTHS[ReasoningTier(than)]
