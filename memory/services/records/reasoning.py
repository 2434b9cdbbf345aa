"""What is kept of a turn's reasoning (E3): no deeper tier than the account allows, raw traces sealed.

What an account does not keep is neither stored nor quoted: nothing shallower is made out of a raw trace, since whatever
quotes it would be a piece of it. A rationale that may not be kept leaves its decisions in a line.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Now

from memory.audit import record
from memory.errors import NotFound, Unprocessable
from memory.extraction.turn_slots import Rationale, Reasoning
from memory.models import Account, IdempotentRequest, ReasoningTrace, TurnRecord, TurnSlot
from memory.owner import Owner
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


BATCH_ROWS = 500
MOST_TRACE_TOKENS = 1_000_000
"""What a policy may allow of one raw trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """An account's policy before and after."""

    was: ReasoningPolicy
    policy: ReasoningPolicy

    @property
    def is_change(self) -> bool:
        return self.was != self.policy

    @property
    def is_lower(self) -> bool:
        """Whether less is told from now on."""
        return is_deeper(self.was.tier, self.policy.tier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Raw traces that an account keeps, or a batch of them that is gone."""

    rows: int
    tokens: int


def set_policy(owner: Owner, *, tier: str | None = None, trace_tokens: int | None = None) -> PolicyChange:
    """Change what is given of the account's policy. Raises NotFound, Unprocessable for a policy that there is not."""
    check_policy(tier=tier, trace_tokens=trace_tokens)
    with transaction.atomic():
        account = Account.objects.select_for_update(no_key=True).filter(id=owner.account_id).first()
        if account is None:
            raise NotFound("no such account")
        was = policy_of(account)
        account.reasoning_tier = tier or account.reasoning_tier
        account.raw_trace_tokens = account.raw_trace_tokens if trace_tokens is None else trace_tokens
        change = PolicyChange(was=was, policy=policy_of(account))
        if change.is_change:
            account.save(update_fields=["reasoning_tier", "raw_trace_tokens"])
            record_change(owner, change)
        if change.is_lower:
            forget_answers(owner)
    return change


def check_policy(*, tier: str | None = None, trace_tokens: int | None = None) -> None:
    """Raises Unprocessable."""
    if tier is not None and tier not in {each.value for each in ReasoningTier}:
        raise Unprocessable(f"there is no such tier: there are {', '.join(ReasoningTier)}")
    if trace_tokens is not None and not 0 <= trace_tokens <= MOST_TRACE_TOKENS:
        raise Unprocessable(f"a raw trace that is kept has 0 to {MOST_TRACE_TOKENS} tokens")


def policy_of(account: Account) -> ReasoningPolicy:
    return ReasoningPolicy(tier=ReasoningTier(account.reasoning_tier), trace_tokens=account.raw_trace_tokens)


def record_change(owner: Owner, change: PolicyChange) -> None:
    told: dict[str, Any] = {
        name: {"tier": policy.tier.value, "trace_tokens": policy.trace_tokens}
        for name, policy in (("was", change.was), ("policy", change.policy))
    }
    record(owner, operation="update", memory_type="account", affected_ids=[owner.account_id], metadata=told)


def forget_answers(owner: Owner) -> None:
    """Of the account, whatever was read: a kept answer does not say which request it is to.

    Those of what was made (201), and refusals, tell no reasoning, and stay. A change that was answered with 200, and is
    sent again within the same hours, is made again.
    """
    gone, _ = IdempotentRequest.objects.filter(account_id=owner.account_id, status=HTTPStatus.OK).delete()
    if gone:
        record(owner, operation="delete", memory_type="kept_answer", result_count=gone)


def count_traces(owner: Owner) -> Traces:
    """What raw traces the account keeps. One statement."""
    rows = ReasoningTrace.objects.filter(account_id=owner.account_id)
    return Traces(**rows.aggregate(rows=Count("id"), tokens=Sum("tokens", default=0)))


def forget_traces(owner: Owner, *, size: int = BATCH_ROWS) -> Iterator[Traces]:
    """Destroy every raw trace that the account keeps, a batch a transaction; their records say what is left of them.

    What is recorded at the same moment may come behind the last batch: lower the policy first.
    """
    while (gone := forget_batch(owner, size=size)).rows:
        yield gone


def forget_batch(owner: Owner, *, size: int) -> Traces:
    with transaction.atomic():
        traces = ReasoningTrace.objects.filter(account_id=owner.account_id).order_by("record_id")
        # without the trace: what none of the keys opens goes, too
        locked = list(traces.select_for_update().values_list("id", "record_id", "tokens")[:size])
        if locked:
            ReasoningTrace.objects.filter(id__in=[trace_id for trace_id, _, _ in locked]).delete()
            record_ids = [record_id for _, record_id, _ in locked]
            lower_records(owner, record_ids)
            record(owner, operation="delete", memory_type="reasoning_trace", affected_ids=record_ids)
    return Traces(rows=len(locked), tokens=sum(tokens for _, _, tokens in locked))


def lower_records(owner: Owner, record_ids: list[UUID]) -> None:
    """To the tier that their slots tell."""
    slots: Any = TurnSlot.objects
    told = slots.filter(record_id=OuterRef("id"), slot=TurnSlot.Slot.REASONING).order_by("-level").values("tier")[:1]
    tier = Coalesce(Subquery(told), Value(ReasoningTier.NONE.value))
    rows = TurnRecord.objects.filter(account_id=owner.account_id, id__in=record_ids)
    rows.update(reasoning_tier=tier, version=F("version") + 1, updated_at=Now())
