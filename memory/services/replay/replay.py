"""Replay (E8): the smallest slice of what was done that answers, summaries first, within a token budget.

Reasoning is never deeper than what is stored, what the account allows now, and what was asked for. A deep replay
returns raw traces: only if they are asked for, in the postures recovery and audit, and with the scope for it. Each one
is logged in the audit log before anything is unsealed. Reading what was merged or archived is not deep.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.audit import record_audit
from memory.errors import Forbidden, Unprocessable
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper, shallowest
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.retrieval.replay import sealed_traces, trace_sizes
from memory.services.audit import record_read
from memory.services.memories.reinforce import reinforce
from memory.services.records.reasoning import read_policy
from memory.services.replay.candidates import (
    ReplayCandidate,
    ReplayItem,
    SelectedCandidates,
    rationale_candidates,
    select_within_budget,
    trace_candidate,
)
from memory.services.replay.targets import (
    DEEP_POSTURES,
    ReplayRequest,
    TargetMaterial,
    TargetQuery,
    find_target_material,
)
from memory.tokens import estimate_tokens
from memory_project.encryption import SealBroken, unseal
from memory_project.tracing import traced

MIN_REPLAY_TOKENS = 50
MAX_REPLAY_TOKENS = 20_000
TRACE_UNREADABLE = "raw_trace_unreadable"
"""Value in `degraded`: no key opens a trace that was selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySlice:
    """The items of a replay in the order of time.

    `target_id` is the memory that says the decision, or the id of another target. `allowed` is the deepest tier that
    the account's policy, the posture and the scope allow.
    """

    request: ReplayRequest
    target_id: UUID | None
    allowed: ReasoningTier
    items: Sequence[ReplayItem]
    left_out: int
    degraded: Sequence[str]

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)

    @property
    def tier(self) -> ReasoningTier:
        """The deepest tier among the items."""
        tiers = [ReasoningTier(item.tier) for item in self.items if item.tier]
        return max(tiers, key=lambda tier: DEPTHS[tier], default=ReasoningTier.NONE)


@traced("replay", attributes=lambda replayed: {"pieces": len(replayed.items)})
def replay(owner: Owner, request: ReplayRequest, *, now: datetime) -> ReplaySlice:
    """Return the smallest slice of the past that answers the request, within `max_tokens`.

    Takes at most six statements, three more for raw traces, and those of a recall for a decision, however much was
    done. Raises Unprocessable for an invalid request and for raw traces in a posture that does not justify them;
    Forbidden for raw traces without the scope; NotFound for what the owner cannot see.
    """
    check_replay_request(request)
    check_deep_access(request)
    policy = read_policy(owner.account_id).tier
    limit = shallowest(request.tier, policy)
    material = find_target_material(owner, TargetQuery(request=request, limit=limit, policy=policy), now=now)
    selected = select_within_budget(list_candidates(material, limit), max_tokens=request.max_tokens)
    degraded = {*material.degraded, *([f"{request.tier}_not_allowed"] if is_deeper(request.tier, policy) else [])}
    if request.is_deep:
        selected, is_unreadable = unseal_traces(owner, request, selected)
        degraded |= {TRACE_UNREADABLE} if is_unreadable else set()
    is_open = request.has_scope and request.posture in DEEP_POSTURES
    return ReplaySlice(
        request=request,
        target_id=material.target_id,
        allowed=policy if is_open else shallowest(policy, ReasoningTier.STRUCTURED_RATIONALE),
        items=[candidate.item for candidate in selected.candidates],
        left_out=selected.left_out,
        degraded=sorted(degraded),
    )


def check_replay_request(request: ReplayRequest) -> None:
    """Raise Unprocessable unless the request names one target and is within its limits."""
    targets = [request.goal_id, request.record_id, request.episode_id, request.decision.strip() or None]
    error = ""
    if sum(each is not None for each in targets) != 1:
        error = "A replay has one target: send goal_id, record_id, episode_id or decision."
    elif request.conversation_id and not request.decision:
        error = "`conversation_id` limits where a decision is searched: send it with `decision` only."
    elif len(request.decision) > MAX_QUERY_CHARACTERS:
        error = f"`decision` must have at most {MAX_QUERY_CHARACTERS} characters."
    elif not MIN_REPLAY_TOKENS <= request.max_tokens <= MAX_REPLAY_TOKENS:
        error = f"`max_tokens` must be from {MIN_REPLAY_TOKENS} to {MAX_REPLAY_TOKENS}."
    if error:
        raise Unprocessable(error)


def check_deep_access(request: ReplayRequest) -> None:
    """Raise Unprocessable or Forbidden if raw traces are requested without a posture or the scope for them."""
    if not request.is_deep:
        return
    if request.posture not in DEEP_POSTURES:
        raise Unprocessable("Raw traces are returned in the postures recovery and audit only.")
    if not request.has_scope:
        raise Forbidden("Raw traces are returned with the scope deep_replay only.")


def list_candidates(material: TargetMaterial, limit: ReasoningTier) -> Iterator[ReplayCandidate]:
    """Return the candidates layer by layer: summaries, then rationales, then raw traces."""
    sizes = readable_trace_sizes(material, limit)
    for layer in material.layers:
        yield from layer.candidates
        if not is_deeper(ReasoningTier.STRUCTURED_RATIONALE, limit):
            for turn in layer.turns:
                yield from rationale_candidates(
                    turn, limit=limit, reason="what was decided, rejected and in the way: asked for"
                )
        for turn in layer.turns:
            if turn.record.id in sizes:
                yield trace_candidate(turn, *sizes[turn.record.id], reason="the provider's own trace: asked for")


def readable_trace_sizes(material: TargetMaterial, limit: ReasoningTier) -> dict[UUID, tuple[int, str]]:
    """Return tokens and provenance by record of the traces that may be read. One statement, none if there are none."""
    turns = [turn for layer in material.layers for turn in layer.turns]
    traced_records = [turn.record for turn in turns if turn.record.reasoning_tier == ReasoningTier.RAW_TRACE]
    return trace_sizes(traced_records) if traced_records and limit == ReasoningTier.RAW_TRACE else {}


def unseal_traces(
    owner: Owner, request: ReplayRequest, selected: SelectedCandidates
) -> tuple[SelectedCandidates, bool]:
    """Unseal the selected traces after the audit entry is written; return also whether one could not be unsealed."""
    record_ids = [each.key[0] for each in selected.candidates if each.item.tier == ReasoningTier.RAW_TRACE]
    with transaction.atomic():
        audit_deep_replay(owner, request, record_ids)
        sealed = sealed_traces(record_ids) if record_ids else {}
    candidates, is_unreadable = [], False
    for candidate in selected.candidates:
        if candidate.item.tier != ReasoningTier.RAW_TRACE:
            candidates.append(candidate)
        elif (unsealed := unseal_trace(candidate, sealed)) is not None:
            candidates.append(unsealed)
        else:
            is_unreadable = True
    return replace(selected, candidates=candidates), is_unreadable


def unseal_trace(candidate: ReplayCandidate, sealed: dict[UUID, bytes]) -> ReplayCandidate | None:
    """Return the candidate with its text; None if no key opens it, it is gone by now, or longer than its tokens."""
    try:
        text = str(json.loads(unseal(sealed[candidate.key[0]])))
    except (KeyError, SealBroken):
        return None
    if estimate_tokens(text) > candidate.item.tokens:
        return None
    return replace(candidate, item=replace(candidate.item, text=text, tokens=estimate_tokens(text)))


def audit_deep_replay(owner: Owner, request: ReplayRequest, record_ids: Sequence[UUID]) -> None:
    """Log whose traces are returned and in which posture; no word of a trace, and none of a decision."""
    targets = {"goal": request.goal_id, "record": request.record_id, "episode": request.episode_id}
    target = next((f"{name}:{each}" for name, each in targets.items() if each is not None), "decision")
    record_audit(
        owner,
        operation="deep_replay",
        memory_type="reasoning_trace",
        affected_ids=record_ids,
        result_count=len(record_ids),
        config_snapshot={"posture": request.posture.value, "target": target},
        conversation_id=request.conversation_id,
        session_id=request.conversation_id,
    )


def conclude_replay(owner: Owner, replayed: ReplaySlice, *, now: datetime) -> None:
    """Count the reads, and log them where the audit level keeps reads; a deep replay was logged before."""
    ids = [item.memory_id for item in replayed.items if item.memory_id is not None]
    reinforce(owner, ids, now=now)
    if replayed.request.is_deep:
        return
    record_read(
        owner,
        memory_type="turn_record",
        affected_ids=ids,
        query_text=replayed.request.decision,
        result_count=len(ids),
        conversation_id=replayed.request.conversation_id,
        session_id=replayed.request.conversation_id,
    )
