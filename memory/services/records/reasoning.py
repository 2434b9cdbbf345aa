"""The reasoning of turns (E3): what is kept and shown of it, and the account's policy for that.

An account keeps reasoning up to a tier, and raw traces sealed and up to a size. What it does not keep is neither
stored nor quoted: nothing shallower is derived from a raw trace, since that would quote a piece of it. A rationale
that may not be kept leaves a line with its decisions.

A policy holds immediately, for stored reasoning as well: deeper reasoning is no longer shown, and is shown again once
the policy allows it. Raw traces that must be gone are destroyed by `destroy_traces`. Answers that are kept for repeated
requests (`IdempotentRequest`) may show reasoning under the former policy, so lowering the policy deletes them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Now

from memory.audit import record_audit
from memory.errors import Unprocessable, require_found
from memory.extraction.turn_slots import Rationale, Reasoning
from memory.models import Account, IdempotentRequest, ReasoningTrace, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import Provenance, ReasoningTier, is_deeper, shallowest
from memory.tokens import estimate_tokens

BATCH_ROWS = 500
MAX_TRACE_TOKENS = 1_000_000
"""Highest limit that a policy may set for one raw trace."""
REASON_POLICY = "policy"
REASON_BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPolicy:
    """The deepest `tier` that an account keeps and shows, and the largest raw trace that it keeps."""

    tier: ReasoningTier
    trace_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReasoning:
    """The part of a `posted` reasoning that is kept; `tier` is the deepest tier kept.

    `reason` says why less was kept: `policy`, or `budget` (the trace is longer than the account keeps). It is empty if
    everything was kept.
    """

    posted: ReasoningTier
    tier: ReasoningTier
    reason: str = ""
    trace: str = field(default="", repr=False)
    text: str = ""
    """The slot's text. Empty if there is no slot because only a trace was sent."""
    data: Mapping[str, Any]
    slot_tier: ReasoningTier
    """The tier of `text` and `data`."""
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedSlot:
    """A slot as far as the policy allows. `tier` is its deepest one, empty for a slot that is no reasoning."""

    row: TurnSlot
    text: str
    data: Mapping[str, Any]
    tier: str


def read_policy(account_id: UUID) -> ReasoningPolicy:
    """Return the account's policy. One statement."""
    tier, tokens = Account.objects.values_list("reasoning_tier", "raw_trace_tokens").get(id=account_id)
    return ReasoningPolicy(tier=ReasoningTier(tier), trace_tokens=tokens)


def keep_reasoning(reasoning: Reasoning, policy: ReasoningPolicy) -> KeptReasoning:
    """Return as much of a reasoning as the policy allows."""
    allowed = shallowest(reasoning.tier, policy.tier)
    reason = REASON_POLICY if is_deeper(reasoning.tier, policy.tier) else ""
    trace = reasoning.trace if allowed == ReasoningTier.RAW_TRACE else ""
    if trace and estimate_tokens(trace) > policy.trace_tokens:
        trace, reason = "", REASON_BUDGET
    limited = limit_reasoning(reasoning, allowed)
    tier = ReasoningTier.RAW_TRACE if trace else limited.slot_tier
    return replace(limited, reason=reason, trace=trace, tier=tier)


def limit_reasoning(reasoning: Reasoning, allowed: ReasoningTier) -> KeptReasoning:
    """Return the slot content that `allowed` permits: rationale and summary, the summary, or nothing."""
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
        text="\n".join(filter(None, [summary, rationale.format()])),
        data=data,
        slot_tier=tier,
        provenance=reasoning.provenance,
    )


def redact_slots(rows: Iterable[TurnSlot], allowed: ReasoningTier) -> list[RedactedSlot]:
    """Return slots as far as `allowed` permits, without those of which nothing is left."""
    return [slot for row in rows if (slot := redact_slot(row, allowed)) is not None]


def redact_slot(row: TurnSlot, allowed: ReasoningTier) -> RedactedSlot | None:
    """Return a slot with no reasoning deeper than `allowed`, or None if nothing is left.

    The policy may have been another one when the slot was stored. A withheld rationale leaves its summary, as one that
    may not be kept does.
    """
    if row.slot != TurnSlot.Slot.REASONING or not is_deeper(row.tier, allowed):
        return RedactedSlot(row=row, text=row.text, data=row.data, tier=row.tier)
    kept = limit_reasoning(parse_stored_reasoning(row), allowed)
    return RedactedSlot(row=row, text=kept.text, data=kept.data, tier=kept.slot_tier.value) if kept.text else None


def parse_stored_reasoning(row: TurnSlot) -> Reasoning:
    """Return the reasoning in a slot's data; a text that was shortened or corrected later says no more than that."""
    return Reasoning(
        tier=ReasoningTier(row.tier),
        rationale=Rationale.of_json(row.data.get("rationale", {})),
        summary=row.data.get("summary", ""),
    )


def visible_tier(record_tier: str, reasoning: RedactedSlot | None, allowed: ReasoningTier) -> ReasoningTier:
    """Return the deepest tier that a record's reasoning has and that may be shown."""
    if shallowest(record_tier, allowed) == ReasoningTier.RAW_TRACE:
        return ReasoningTier.RAW_TRACE
    return ReasoningTier(reasoning.tier) if reasoning is not None else ReasoningTier.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    before: ReasoningPolicy
    policy: ReasoningPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCounts:
    """Counts of raw traces that an account keeps, or of a batch that was destroyed."""

    rows: int
    tokens: int


def set_policy(owner: Owner, *, tier: str | None = None, trace_tokens: int | None = None) -> PolicyChange:
    """Change the given parts of the account's policy. Raises NotFound, and Unprocessable for an invalid policy."""
    check_policy(tier=tier, trace_tokens=trace_tokens)
    with transaction.atomic():
        rows = Account.objects.select_for_update(no_key=True).filter(id=owner.account_id)
        account = require_found(rows.first(), "account")
        before = policy_of_account(account)
        account.reasoning_tier = tier or account.reasoning_tier
        account.raw_trace_tokens = account.raw_trace_tokens if trace_tokens is None else trace_tokens
        change = PolicyChange(before=before, policy=policy_of_account(account))
        if change.before != change.policy:
            account.save(update_fields=["reasoning_tier", "raw_trace_tokens"])
            metadata = {
                name: {"tier": policy.tier.value, "trace_tokens": policy.trace_tokens}
                for name, policy in (("was", change.before), ("policy", change.policy))
            }
            record_audit(
                owner, operation="update", memory_type="account", affected_ids=[owner.account_id], metadata=metadata
            )
        if is_deeper(change.before.tier, change.policy.tier):
            delete_kept_answers(owner)
    return change


def check_policy(*, tier: str | None = None, trace_tokens: int | None = None) -> None:
    """Raise Unprocessable for an unknown tier or a limit out of range."""
    if tier is not None and tier not in {each.value for each in ReasoningTier}:
        raise Unprocessable(f"the tier must be one of: {', '.join(ReasoningTier)}")
    if trace_tokens is not None and not 0 <= trace_tokens <= MAX_TRACE_TOKENS:
        raise Unprocessable(f"the limit of a raw trace must be 0 to {MAX_TRACE_TOKENS} tokens")


def policy_of_account(account: Account) -> ReasoningPolicy:
    return ReasoningPolicy(tier=ReasoningTier(account.reasoning_tier), trace_tokens=account.raw_trace_tokens)


def delete_kept_answers(owner: Owner) -> None:
    """Delete the account's kept answers with status 200, since an answer does not say which request it belongs to.

    Answers about created rows (201) and refusals show no reasoning and stay. A change that was answered with 200 and is
    repeated within the same hours is applied again.
    """
    gone, _ = IdempotentRequest.objects.filter(account_id=owner.account_id, status=HTTPStatus.OK).delete()
    if gone:
        record_audit(owner, operation="delete", memory_type="kept_answer", result_count=gone)


def count_traces(owner: Owner) -> TraceCounts:
    """Count the raw traces that the account keeps. One statement."""
    rows = ReasoningTrace.objects.filter(account_id=owner.account_id)
    return TraceCounts(**rows.aggregate(rows=Count("id"), tokens=Sum("tokens", default=0)))


def destroy_traces(owner: Owner, *, size: int = BATCH_ROWS) -> Iterator[TraceCounts]:
    """Destroy every raw trace of the account, one batch per transaction, and lower the tiers of their records.

    Traces that are recorded meanwhile may come after the last batch: lower the policy first.
    """
    traces = ReasoningTrace.objects.filter(account_id=owner.account_id).order_by("record_id")
    while True:
        with transaction.atomic():
            # the trace is not read: one that no key decrypts is deleted as well
            locked = list(traces.select_for_update().values_list("id", "record_id", "tokens")[:size])
            if not locked:
                return
            traces.filter(id__in=[trace_id for trace_id, _, _ in locked]).delete()
            record_ids = [record_id for _, record_id, _ in locked]
            # the tier of a record becomes that of its slots
            slots = TurnSlot.objects.filter(account_id=owner.account_id, record_id=OuterRef("id"))
            deepest = slots.filter(slot=TurnSlot.Slot.REASONING).order_by("-level")
            tier = Coalesce(Subquery(deepest.values("tier")[:1]), Value(ReasoningTier.NONE.value))
            records = TurnRecord.objects.filter(account_id=owner.account_id, id__in=record_ids)
            records.update(reasoning_tier=tier, version=F("version") + 1, updated_at=Now())
            record_audit(owner, operation="delete", memory_type="reasoning_trace", affected_ids=record_ids)
        yield TraceCounts(rows=len(locked), tokens=sum(tokens for _, _, tokens in locked))
