"""How much of a turn's reasoning there is to tell (E3): four tiers, from nothing to the provider's own trace.

Nothing makes a deeper tier out of a shallower one. What is told is the shallowest of what is stored, what the account
allows and what was asked for (`shallowest`).
"""

from enum import StrEnum


class ReasoningTier(StrEnum):
    """The documented tiers, the shallowest first."""

    NONE = "none"
    DECISION_SUMMARY = "decision_summary"
    """The shortest durable explanation of why the turn moved in one direction."""
    STRUCTURED_RATIONALE = "structured_rationale"
    """Decisions, rejected options, blockers."""
    RAW_TRACE = "raw_trace"
    """What the provider showed of its reasoning: sealed at rest."""


class Provenance(StrEnum):
    """Where a reasoning comes from."""

    PROVIDER_TRACE = "provider_trace"
    RUNTIME_PROJECTION = "runtime_projection"
    """The runtime, or this service, made it out of what it knew of the turn."""
    REPLAY = "replay"
    """Somebody reconstructed it later."""


DEPTHS = {tier: depth for depth, tier in enumerate(ReasoningTier)}


def shallowest(*tiers: str) -> ReasoningTier:
    """The one of the tiers that tells least."""
    return min(map(ReasoningTier, tiers), key=lambda tier: DEPTHS[tier])


def is_deeper(tier: str, than: str) -> bool:
    return DEPTHS[ReasoningTier(tier)] > DEPTHS[ReasoningTier(than)]
