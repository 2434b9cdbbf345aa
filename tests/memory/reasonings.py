"""Structured turns with a reasoning, for tests of what is stored and returned of it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from memory.extraction.turn_slots import Action, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, CompressionLevel, Goal, Kind, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier
from memory.services.memories.store import store_memories
from tests.memory.episodes import NOTHING, NOW
from tests.memory.records import add_record

RATIONALE = Rationale(
    decisions=[Point(what="plant the roses", why="it is spring")], rejected=[Point(what="wait", why="it may freeze")]
)


def allow(owner: Owner, tier: str, *, trace_tokens: int = 1_000) -> None:
    """Let the account keep and show reasoning of this tier."""
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=tier, raw_trace_tokens=trace_tokens)


def reasoning(*, trace: str = "", rationale: Rationale | None = None, summary: str = "") -> Reasoning:
    """Return reasoning of the deepest tier that is given."""
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
    **reasoning_fields: Any,
) -> TurnRecord:
    """A record of something done for a reason; `reasoning_fields` are passed to `reasoning`, `fields` to the draft."""
    slots = Slots(
        observation=Observation(text="The bed is empty."),
        reasoning=reasoning(**reasoning_fields) if reasoning_fields else None,
        action=Action(text=did),
        outcome=Outcome(status="succeeded", text=came),
    )
    return add_record(owner, conversation_id, slots=slots, **(fields or {})).record


def merge(owner: Owner, goal: Goal, record_ids: Sequence[UUID]) -> WorkEpisode:
    """The turns merged into one work episode, as compression does it: their slots archived, their level the episode's.

    It has the deepest reasoning tier of the turns.
    """
    records = list(TurnRecord.objects.filter(id__in=record_ids).order_by("number"))
    slots = TurnSlot.objects
    tiers = slots.filter(record__in=records, slot="reasoning").values_list("tier", flat=True)
    tier = max(map(ReasoningTier, tiers), key=lambda each: DEPTHS[each], default=ReasoningTier.NONE)
    decisions = ["plant the roses"] if tier != ReasoningTier.NONE else []
    rejected = ["wait (because it may freeze)"] if tier == ReasoningTier.STRUCTURED_RATIONALE else []
    lines = [*(f"Decided: {each}" for each in decisions), *(f"Rejected: {each}" for each in rejected)]
    episode = WorkEpisode(
        kind=Kind.WORK_EPISODE,
        text="\n".join([f"Goal: {goal.text}", *lines, "Outcome: it grows"]),
        tier=tier.value,
        data={"goal": goal.text, "decisions": decisions, "rejected": rejected, "outcome": "it grows"},
        conversation_id=records[0].conversation_id,
        log=records[0].log,
        for_goal=goal,
        first_number=records[0].number,
        last_number=records[-1].number,
        event_time=records[-1].event_time,
    )
    store_memories(owner, [episode], embedded=NOTHING, own={}, now=NOW)
    slots.filter(record__in=records).update(archived=True)
    TurnRecord.objects.filter(id__in=record_ids).update(level=CompressionLevel.MERGED, episode=episode)
    return episode
