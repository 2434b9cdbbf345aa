"""How much of its agents' reasoning an account keeps and tells (E3): setting that, and destroying raw traces.

A policy holds at once, for what is stored as well: what lies deeper is told no more, and is told again once the policy
allows it. Traces that shall be gone are to be destroyed (`forget_traces`).

Answers that are kept for who sends the same request again (`IdempotentRequest`) may tell a reasoning as the policy was
then: one that is lowered forgets them. What is sent again then is answered afresh.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Now

from memory.audit import record
from memory.errors import NotFound, Unprocessable
from memory.models import Account, IdempotentRequest, ReasoningTrace, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.records.reasoning import ReasoningPolicy

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
