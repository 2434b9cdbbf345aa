"""Replay (E8): the smallest slice of what was done that answers, from summaries first, within a budget.

What is told of a reasoning is never deeper than what is stored, what the account allows now, and what was asked for.
Deep is what tells raw traces: asked for by name, in the postures recovery and audit, by who has the scope for it; each
time it is in the audit log, before anything is unsealed. To read what was merged or archived is not deep.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.audit import record as record_audit
from memory.errors import Forbidden, Unprocessable
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper, shallowest
from memory.retrieval.queries import LONGEST_QUERY, Posture
from memory.retrieval.replay import sealed_traces, trace_sizes
from memory.services.audit.log import record_read
from memory.services.memories.reinforce import reinforce
from memory.services.records.reasoning import read_policy
from memory.services.replay.candidates import Offer, Piece, Told, offer_rationale, offer_trace, take
from memory.services.replay.targets import Found, Wanted, find_target
from memory.tokens import estimate_tokens
from memory_project.encryption import SealBroken, unseal
from memory_project.tracing import traced

DEEP_POSTURES = frozenset({Posture.RECOVERY, Posture.AUDIT})
"""What justifies to go behind what stands for the past: something broke, or somebody has to answer for it."""
DEFAULT_TOKENS = 800
FEWEST_TOKENS = 50
MOST_TOKENS = 20_000
UNREADABLE = "raw_trace_unreadable"
"""In `degraded`: none of the keys opens a trace that would have been told."""

RATIONALE_REASON = "what was decided, rejected and in the way: asked for"
TRACE_REASON = "the provider's own trace: asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What to replay: one of a goal, a record, a work episode, and a decision in words (in one conversation and those
    that it continues, where that is named).

    `tier` is the deepest that is wanted. `has_scope`: whether who asks may be told raw traces.
    """

    goal_id: UUID | None = None
    record_id: UUID | None = None
    episode_id: UUID | None = None
    decision: str = ""
    conversation_id: str = ""
    tier: ReasoningTier = ReasoningTier.DECISION_SUMMARY
    posture: Posture = Posture.RESUME
    max_tokens: int = DEFAULT_TOKENS
    has_scope: bool = False

    @property
    def is_deep(self) -> bool:
        return self.tier == ReasoningTier.RAW_TRACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What is told, in order of time. `target_id` is the memory that says the decision, else what was asked for.

    `allowed` is the deepest tier that there could be in it: what the account allows now, and posture and scope open.
    """

    request: ReplayRequest
    target_id: UUID | None
    allowed: ReasoningTier
    pieces: Sequence[Piece]
    left_out: int
    degraded: Sequence[str]

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)

    @property
    def tier(self) -> ReasoningTier:
        """The deepest that is told."""
        tiers = [ReasoningTier(piece.tier) for piece in self.pieces if piece.tier]
        return max(tiers, key=lambda tier: DEPTHS[tier], default=ReasoningTier.NONE)


@traced("replay", told=lambda told: {"pieces": len(told.pieces)})
def replay(owner: Owner, request: ReplayRequest, *, now: datetime) -> Slice:
    """The smallest slice of the past that answers, within `max_tokens`.

    Six statements at most, three more where it is deep, and those of a recall for a decision; however much was done.
    Raises Unprocessable for what is no request, and for raw traces in a posture that does not justify them; Forbidden
    for those without the scope; NotFound for what the owner cannot see.
    """
    check_request(request)
    check_deep(request)
    policy = read_policy(owner.account_id).tier
    limit = shallowest(request.tier, policy)
    found = find_target(owner, wanted_of(request, limit=limit, policy=policy), now=now)
    told = take(list_offers(found, limit), max_tokens=request.max_tokens)
    degraded = {*found.degraded, *([f"{request.tier}_not_allowed"] if is_deeper(request.tier, policy) else [])}
    if request.is_deep:
        told, is_unreadable = tell_traces(owner, request, told)
        degraded |= {UNREADABLE} if is_unreadable else set()
    return Slice(
        request=request,
        target_id=found.target_id,
        allowed=shallowest(policy, opened_to(request)),
        pieces=[offer.piece for offer in told.offers],
        left_out=told.left_out,
        degraded=sorted(degraded),
    )


def check_request(request: ReplayRequest) -> None:
    """Raises Unprocessable."""
    named = [request.goal_id, request.record_id, request.episode_id, request.decision.strip() or None]
    wrong = ""
    if sum(each is not None for each in named) != 1:
        wrong = "a replay is of one thing: goal_id, record_id, episode_id, or a decision"
    elif request.conversation_id and not request.decision:
        wrong = "conversation_id says where a decision is looked for: name one"
    elif len(request.decision) > LONGEST_QUERY:
        wrong = f"a decision has at most {LONGEST_QUERY} characters"
    elif not FEWEST_TOKENS <= request.max_tokens <= MOST_TOKENS:
        wrong = f"max_tokens is from {FEWEST_TOKENS} to {MOST_TOKENS}"
    if wrong:
        raise Unprocessable(wrong)


def check_deep(request: ReplayRequest) -> None:
    """Raises Unprocessable, Forbidden."""
    if not request.is_deep:
        return
    if request.posture not in DEEP_POSTURES:
        raise Unprocessable("raw traces are told in the postures recovery and audit alone")
    if not request.has_scope:
        raise Forbidden("raw traces are told with the scope deep_replay alone")


def opened_to(request: ReplayRequest) -> ReasoningTier:
    """The deepest tier that posture and scope justify."""
    is_open = request.has_scope and request.posture in DEEP_POSTURES
    return ReasoningTier.RAW_TRACE if is_open else ReasoningTier.STRUCTURED_RATIONALE


def wanted_of(request: ReplayRequest, *, limit: ReasoningTier, policy: ReasoningTier) -> Wanted:
    return Wanted(
        goal_id=request.goal_id,
        record_id=request.record_id,
        episode_id=request.episode_id,
        decision=request.decision,
        conversation_id=request.conversation_id,
        posture=request.posture,
        limit=limit,
        policy=policy,
        longest=request.max_tokens,
        expands=request.posture in DEEP_POSTURES,
    )


def list_offers(found: Found, limit: ReasoningTier) -> Iterator[Offer]:
    """Layer by layer, in each summaries before rationales before traces."""
    sizes = sizes_of(found, limit)
    for layer in found.layers:
        yield from layer.offers
        if not is_deeper(ReasoningTier.STRUCTURED_RATIONALE, limit):
            for unit in layer.units:
                yield from offer_rationale(unit, limit=limit, reason=RATIONALE_REASON)
        for unit in layer.units:
            if unit.record.id in sizes:
                yield offer_trace(unit, *sizes[unit.record.id], reason=TRACE_REASON)


def sizes_of(found: Found, limit: ReasoningTier) -> dict[UUID, tuple[int, str]]:
    """Tokens and provenance of the traces that may be told; one statement, where there may be any."""
    units = [unit for layer in found.layers for unit in layer.units]
    kept = [unit.record for unit in units if unit.record.reasoning_tier == ReasoningTier.RAW_TRACE]
    return trace_sizes(kept) if kept and limit == ReasoningTier.RAW_TRACE else {}


def tell_traces(owner: Owner, request: ReplayRequest, told: Told) -> tuple[Told, bool]:
    """Unseal the traces that are told, once the audit log says so; and whether one of them could not be."""
    record_ids = [offer.key[0] for offer in told.offers if offer.piece.tier == ReasoningTier.RAW_TRACE]
    with transaction.atomic():
        record_deep(owner, request, record_ids)
        sealed = sealed_traces(record_ids) if record_ids else {}
    offers, is_unreadable = [], False
    for offer in told.offers:
        if offer.piece.tier != ReasoningTier.RAW_TRACE:
            offers.append(offer)
        elif (opened := open_trace(offer, sealed)) is not None:
            offers.append(opened)
        else:
            is_unreadable = True
    return replace(told, offers=offers), is_unreadable


def open_trace(offer: Offer, sealed: dict[UUID, bytes]) -> Offer | None:
    """None where none of the keys opens it, where it is gone or hidden by now, and where it is longer than was said."""
    try:
        text = str(json.loads(unseal(sealed[offer.key[0]])))
    except (KeyError, SealBroken):
        return None
    if estimate_tokens(text) > offer.piece.tokens:
        return None
    return replace(offer, piece=replace(offer.piece, text=text, tokens=estimate_tokens(text)))


def record_deep(owner: Owner, request: ReplayRequest, record_ids: Sequence[UUID]) -> None:
    """Which traces were told, in which posture; none of their words, and none of the question's."""
    record_audit(
        owner,
        operation="deep_replay",
        memory_type="reasoning_trace",
        affected_ids=record_ids,
        result_count=len(record_ids),
        config_snapshot={"posture": request.posture.value, "target": target_of(request)},
        conversation_id=request.conversation_id,
        session_id=request.conversation_id,
    )


def target_of(request: ReplayRequest) -> str:
    """What was asked for, by name and id; of a decision no words."""
    ids = {"goal": request.goal_id, "record": request.record_id, "episode": request.episode_id}
    return next((f"{name}:{each}" for name, each in ids.items() if each is not None), "decision")


def conclude_replay(owner: Owner, told: Slice, *, now: datetime) -> None:
    """Count the reads of what was told; one that is not deep is in the audit log where that keeps reads."""
    ids = [piece.memory_id for piece in told.pieces if piece.memory_id is not None]
    reinforce(owner, ids, now=now)
    if told.request.is_deep:
        return
    record_read(
        owner,
        memory_type="turn_record",
        affected_ids=ids,
        query_text=told.request.decision,
        result_count=len(ids),
        conversation_id=told.request.conversation_id,
        session_id=told.request.conversation_id,
    )
