"""What is kept of a turn's reasoning (E3): no deeper tier than the account allows, raw traces sealed.

What an account does not keep is neither stored nor quoted: nothing shallower is made out of a raw trace, since whatever
quotes it would be a piece of it. A rationale that may not be kept leaves its decisions in a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from memory.extraction.turn_slots import Rationale, Reasoning
from memory.models import Account
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
    trace: str = ""
    text: str = ""
    """Of the slot; empty: there is none, since nothing but a trace was told."""
    data: Mapping[str, Any]
    told_tier: ReasoningTier
    """Of text and data."""
    provenance: Provenance


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
