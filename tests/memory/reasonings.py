"""Structured turns with a reasoning, for tests of what is kept of it and told."""

from typing import Any

from memory.extraction.turn_slots import Action, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, TurnRecord
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from tests.memory.records import put_record

RATIONALE = Rationale(
    decisions=[Point(what="plant the roses", why="it is spring")], rejected=[Point(what="wait", why="it may freeze")]
)


def allow(owner: Owner, tier: str, *, trace_tokens: int = 1_000) -> None:
    """From now on the account keeps, and tells, this tier."""
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=tier, raw_trace_tokens=trace_tokens)


def reasoning(*, trace: str = "", rationale: Rationale | None = None, summary: str = "") -> Reasoning:
    """Of the deepest tier that is given."""
    tier = ReasoningTier.DECISION_SUMMARY if summary else ReasoningTier.NONE
    tier = ReasoningTier.STRUCTURED_RATIONALE if rationale else tier
    tier = ReasoningTier.RAW_TRACE if trace else tier
    return Reasoning(tier=tier, trace=trace, rationale=rationale or Rationale(), summary=summary)


def thought(
    owner: Owner,
    conversation_id: str = "chat-1",
    *,
    did: str = "Planted.",
    came: str = "They grow.",
    fields: dict[str, Any] | None = None,
    **told: Any,
) -> TurnRecord:
    """A record of something done for a reason; `told` is the reasoning's, `fields` are those of the draft."""
    slots = Slots(
        observation=Observation(text="The bed is empty."),
        reasoning=reasoning(**told) if told else None,
        action=Action(text=did),
        outcome=Outcome(status="succeeded", text=came),
    )
    return put_record(owner, conversation_id, slots=slots, **(fields or {})).record
