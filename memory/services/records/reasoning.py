"""What is kept of a turn's reasoning (E3): no deeper tier than the account allows, raw traces sealed.

What an account does not keep is neither stored nor quoted: nothing shallower is made out of a raw trace, since whatever
quotes it would be a piece of it. A rationale that may not be kept leaves its decisions in a line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from memory.extraction.turn_slots import Rationale, Reasoning
from memory.models import Account, TurnSlot
from memory.reasoning import Provenance, ReasoningTier, is_deeper, shallowest
from memory.tokens import estimate_tokens

POLICY = "policy"
BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPolicy:
    """What an account keeps and tells: no deeper `tier`, and no raw trace above `trace_tokens`."""

    tier: ReasoningTier
    trace_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReasoning:
    """What is kept of a reasoning: its deepest tier, and what was `posted`.

    `reason` is why less was kept: `policy`, or `budget` (a longer trace than the account keeps); empty for all of it.
    """

    posted: ReasoningTier
    tier: ReasoningTier
    reason: str = ""
    trace: str = field(default="", repr=False)
    text: str = ""
    """Of the slot; empty: there is none, since nothing but a trace was told."""
    data: Mapping[str, Any]
    told_tier: ReasoningTier
    """Of text and data."""
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSlot:
    """What may be told of a slot. `tier` is the deepest that text and data tell; empty of what is no reasoning."""

    row: TurnSlot
    text: str
    data: Mapping[str, Any]
    tier: str


def read_policy(account_id: UUID) -> ReasoningPolicy:
    """One statement."""
    tier, tokens = Account.objects.values_list("reasoning_tier", "raw_trace_tokens").get(id=account_id)
    return ReasoningPolicy(tier=ReasoningTier(tier), trace_tokens=tokens)


def keep_reasoning(reasoning: Reasoning, policy: ReasoningPolicy) -> KeptReasoning:
    """As much of it as the account allows."""
    allowed = shallowest(reasoning.tier, policy.tier)
    reason = POLICY if is_deeper(reasoning.tier, policy.tier) else ""
    trace = reasoning.trace if allowed == ReasoningTier.RAW_TRACE else ""
    if trace and estimate_tokens(trace) > policy.trace_tokens:
        trace, reason = "", BUDGET
    told = told_reasoning(reasoning, allowed)
    return replace(told, posted=reasoning.tier, reason=reason, trace=trace, tier=deepest_of(told, trace))


def deepest_of(told: KeptReasoning, trace: str) -> ReasoningTier:
    return ReasoningTier.RAW_TRACE if trace else told.told_tier


def kept_at_most(kept: KeptReasoning, tier: str) -> KeptReasoning:
    """No deeper than that: what is told again may have been kept under another policy."""
    return replace(kept, tier=ReasoningTier(tier), reason=POLICY) if is_deeper(kept.tier, tier) else kept


def told_reasoning(reasoning: Reasoning, allowed: ReasoningTier) -> KeptReasoning:
    """What the slot tells: the rationale where that is allowed, the summary, or nothing."""
    rationale, summary, tier = reasoning.rationale, reasoning.summary, ReasoningTier.NONE
    if allowed == ReasoningTier.NONE:
        rationale, summary = Rationale(), ""
    elif allowed == ReasoningTier.DECISION_SUMMARY:
        rationale, summary = Rationale(), summary or rationale.summarize()
    if summary:
        tier = ReasoningTier.DECISION_SUMMARY
    if not rationale.is_empty:
        tier = ReasoningTier.STRUCTURED_RATIONALE
    data: dict[str, Any] = {"summary": summary} if summary else {}
    data |= {} if rationale.is_empty else {"rationale": rationale.as_json()}
    return KeptReasoning(
        posted=reasoning.tier,
        tier=tier,
        text="\n".join(filter(None, [summary, rationale.tell()])),
        data=data,
        told_tier=tier,
        provenance=reasoning.provenance,
    )


def told_slots(rows: Iterable[TurnSlot], allowed: ReasoningTier) -> list[ToldSlot]:
    """What may be told of each; those of which nothing may are left out."""
    return [told for row in rows if (told := within_policy(row, allowed)) is not None]


def within_policy(row: TurnSlot, allowed: ReasoningTier) -> ToldSlot | None:
    """What may be told of a slot where no reasoning deeper than `allowed` may; None where that is nothing.

    The policy may have been another one when the slot was stored. A rationale that may not be told leaves its summary,
    as one that may not be kept does.
    """
    if row.slot != TurnSlot.Slot.REASONING or not is_deeper(row.tier, allowed):
        return ToldSlot(row=row, text=row.text, data=row.data, tier=row.tier)
    told = told_reasoning(stored_reasoning(row), allowed)
    return ToldSlot(row=row, text=told.text, data=told.data, tier=told.told_tier.value) if told.text else None


def stored_reasoning(row: TurnSlot) -> Reasoning:
    """As its data holds it: a text that was shortened or corrected since says no more than that."""
    return Reasoning(
        tier=ReasoningTier(row.tier),
        rationale=Rationale.of_json(row.data.get("rationale", {})),
        summary=row.data.get("summary", ""),
    )


def told_tier(record_tier: str, reasoning: ToldSlot | None, allowed: ReasoningTier) -> ReasoningTier:
    """The deepest tier that there is of a record's reasoning and that may be told."""
    if shallowest(record_tier, allowed) == ReasoningTier.RAW_TRACE:
        return ReasoningTier.RAW_TRACE
    return ReasoningTier(reasoning.tier) if reasoning is not None else ReasoningTier.NONE
