"""What may be told of a work episode under a policy (E3, E5): as `services.reasoning.within_policy` says of slots."""

from dataclasses import dataclass, field
from typing import Any

from memory.models import WorkEpisode
from memory.models.work_episodes import TOLD_FROM
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper

SPOKEN = {
    "goal": "Goal",
    "decisions": "Decided",
    "findings": "Found",
    "produced": "Produced",
    "corrections": "Corrected",
    "outcomes": "Came of it",
    "outcome": "Outcome",
}
"""How what an episode's data holds is told without its text, in this order."""
LABELS = tuple((name, label, TOLD_FROM[name]) for name, label in SPOKEN.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEpisode:
    """`tier` is the deepest that the text tells."""

    row: WorkEpisode
    text: str = field(repr=False)
    tier: ReasoningTier


def told_episode(row: WorkEpisode, allowed: ReasoningTier) -> ToldEpisode | None:
    """What may be told where no reasoning deeper than `allowed` may; None where that is nothing.

    An episode that tells more leaves what its data holds of the shallower tiers.
    """
    if not is_deeper(row.tier, allowed):
        return ToldEpisode(row=row, text=row.text, tier=ReasoningTier(row.tier)) if row.text else None
    labels = [(name, label, tier) for name, label, tier in LABELS if not is_deeper(tier, allowed)]
    told = [(tier, f"{label}: {said}") for name, label, tier in labels for said in said_in(row.data.get(name))]
    if not told:
        return None
    deepest = max((tier for tier, _ in told), key=lambda tier: DEPTHS[tier])
    return ToldEpisode(row=row, text="\n".join(line for _, line in told), tier=deepest)


def said_in(value: Any) -> list[str]:
    """The texts of a list, or one text; of outcomes with how each ended."""
    said = value if isinstance(value, list) else [value]
    texts = (f"{each.get('status')}: {each.get('text')}" if isinstance(each, dict) else each for each in said)
    return [each for each in texts if isinstance(each, str) and each]
