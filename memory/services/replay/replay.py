"""Replay (E8): the smallest slice of what was done that answers, summaries first, within a token budget.

Reasoning is never deeper than what is stored, what the account allows now, and what was asked for. A deep replay
returns raw traces: only if they are asked for, in the postures recovery and audit, and with the scope for it. Each one
is logged in the audit log before anything is unsealed. Reading what was merged or archived is not deep.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.audit import record_audit
from memory.errors import Forbidden, Unprocessable, require_found
from memory.extraction.terms import content_words
from memory.models import Kind, TurnRecord, WorkEpisode
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper, shallowest
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Query, Scope
from memory.retrieval.replay import (
    read_replay_records,
    records_before,
    records_merged_into,
    records_of_reasonings,
    sealed_traces,
    trace_sizes,
    visible_records,
)
from memory.services.audit import record_read
from memory.services.conversations.lifecycle import find_conversation
from memory.services.goals.store import find_goal
from memory.services.memories.decay import reinforce
from memory.services.recall.recall import RecallRequest, recall
from memory.services.records.reasoning import read_policy
from memory.services.replay.candidates import (
    ACTION,
    DEEP_POSTURES,
    OBSERVATION,
    OUTCOME,
    REASONING,
    CandidateLayer,
    RecordWithSlots,
    ReplayItem,
    ReplayRequest,
    TargetQuery,
    attach_slots,
    covers_record,
    expanded_layer,
    is_hidden_in_rationale,
    is_later_for_goal,
    read_episodes_by_id,
    read_goal_episodes,
    select_within_budget,
    slot_candidates,
    sort_newest_first,
    source_candidates,
    split_merged,
    trace_candidate,
)
from memory.tokens import estimate_tokens
from memory_project.encryption import SealBroken, unseal
from memory_project.tracing import traced

MIN_REPLAY_TOKENS = 50
MAX_REPLAY_TOKENS = 20_000
TRACE_UNREADABLE = "raw_trace_unreadable"
"""Value in `degraded`: no key opens a trace that was selected."""
MAX_DECISION_HITS = 30
"""Recalled memories in which a decision is searched."""
MIN_WORD_SHARE = 0.25
"""Share of the question's content words in a hit that matches it by words."""
MIN_SIMILARITY = 0.5
"""Cosine similarity of a hit that matches the question by meaning."""
NOTHING_SAYS_IT = "nothing_says_it"
"""Value in `degraded`: no reasoning says the decision, whether or not any was recorded."""
DEEPER_TIER = "deeper_tier_available"
"""Value in `degraded`: the answer is in a rationale, which a request for that tier would return."""


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

    def limited_to(self, ids: Collection[UUID | None]) -> "ReplaySlice":
        """Return the slice with the items of these memories alone; the others count as left out."""
        kept = [each for each in self.items if each.memory_id in ids]
        return replace(self, items=kept, left_out=self.left_out + len(self.items) - len(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetMaterial:
    """Layers of candidates, best first. `target_id` is None if nothing says the decision."""

    target_id: UUID | None
    layers: Sequence[CandidateLayer] = ()
    degraded: Sequence[str] = ()


@traced("replay", attributes=lambda replayed: {"pieces": len(replayed.items)})
def replay(owner: Owner, request: ReplayRequest, *, now: datetime) -> ReplaySlice:
    """Return the smallest slice of the past that answers the request, within `max_tokens`.

    Takes at most six statements, three more for raw traces, and those of a recall for a decision, however much was
    done. Raises Unprocessable for an invalid request and for raw traces in a posture that does not justify them;
    Forbidden for raw traces without the scope; NotFound for what the owner cannot see.
    """
    check_replay_request(request)
    policy = read_policy(owner.account_id).tier
    query = TargetQuery(request=request, policy=policy)
    material = find_target_material(owner, query, now=now)
    selected, left_out = select_within_budget(list_candidates(material, query.limit), max_tokens=request.max_tokens)
    degraded = {*material.degraded, *([f"{request.tier}_not_allowed"] if is_deeper(request.tier, policy) else [])}
    if request.is_deep:
        sealed, selected = selected, unseal_traces(owner, request, selected)
        degraded |= {TRACE_UNREADABLE} if len(selected) < len(sealed) else set()
    is_open = request.has_scope and request.posture in DEEP_POSTURES
    return ReplaySlice(
        request=request,
        target_id=material.target_id,
        allowed=policy if is_open else shallowest(policy, ReasoningTier.STRUCTURED_RATIONALE),
        items=selected,
        left_out=left_out,
        degraded=sorted(degraded),
    )


def check_replay_request(request: ReplayRequest) -> None:
    """Raise Unprocessable unless the request names one target, is within its limits and justifies raw traces.

    Raises Forbidden for raw traces without the scope for them.
    """
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
    elif request.is_deep and request.posture not in DEEP_POSTURES:
        error = "Raw traces are returned in the postures recovery and audit only."
    if error:
        raise Unprocessable(error)
    if request.is_deep and not request.has_scope:
        raise Forbidden("Raw traces are returned with the scope deep_replay only.")


def find_target_material(owner: Owner, query: TargetQuery, *, now: datetime) -> TargetMaterial:
    """Return what there is to replay. Raises NotFound for a target that the owner cannot see."""
    request = query.request
    if request.goal_id is not None:
        return find_goal_material(owner, query, request.goal_id, now=now)
    if request.record_id is not None:
        return find_record_material(owner, query, request.record_id)
    if request.episode_id is not None:
        found = read_episodes_by_id(owner, query, [request.episode_id])
        episode = require_found(found.get(request.episode_id), "work episode")
        layers = episode_layers(owner, query, episode, reason="the work episode that was asked for")
        return TargetMaterial(target_id=request.episode_id, layers=layers)
    return find_decision_material(owner, query, now=now)


def find_goal_material(owner: Owner, query: TargetQuery, goal_id: UUID, *, now: datetime) -> TargetMaterial:
    """Return the goal's work episodes, and outcome and reasoning of its turns that are not merged, the newest first.

    Then the merged turns, in the postures that justify it.
    """
    find_goal(owner, goal_id, now=now)
    episodes = read_goal_episodes(owner, query, goal_id)
    records = read_replay_records(visible_records(owner).filter(goal_id=goal_id), merged_too=query.expands_merged)
    turns = attach_slots(records, query)
    fresh, merged = split_merged(turns)
    candidates: list[ReplayItem] = []
    for each in sort_newest_first([*episodes, *fresh]):
        if isinstance(each, WorkEpisode):
            candidates += source_candidates([each], (), query, reason="stands for turns of the goal that were merged")
            continue
        state = OUTCOME if OUTCOME in each.slots else ACTION
        reason = "what came of an earlier turn of the goal" if candidates else "where the goal stands: its latest turn"
        candidates += source_candidates([each], (state,), query, reason=reason)
        candidates += source_candidates([each], (REASONING,), query, reason="why the turn went this way")
    layers = [CandidateLayer(candidates=candidates, turns=turns), expanded_layer(merged, query)]
    return TargetMaterial(target_id=goal_id, layers=layers)


def find_record_material(owner: Owner, query: TargetQuery, record_id: UUID) -> TargetMaterial:
    """Return the turn or the episode it was merged into; then the turns of its goal before it."""
    record = require_found(visible_records(owner).filter(id=record_id).first(), "turn record")
    records, episodes = [record], []
    if record.goal_id is not None:
        earlier = visible_records(owner).filter(records_before(record), goal_id=record.goal_id)
        records += read_replay_records(earlier, merged_too=query.expands_merged)
        episodes = read_goal_episodes(owner, query, record.goal_id)
    target, *former = attach_slots(records, query)
    covering = [row for row in episodes if covers_record(row, record)]
    reason = "stands for the turn that was asked for, which was merged"
    candidates = source_candidates(covering, (), query, reason=reason)
    if not covering or query.expands_merged:
        slots = (OUTCOME, REASONING, ACTION, OBSERVATION)
        candidates += source_candidates([target], slots, query, reason="of the turn that was asked for")
    fresh, merged = split_merged(former)
    before = [row for row in episodes if row.event_time <= record.event_time and not covers_record(row, record)]
    chain, reason = sort_newest_first([*before, *fresh]), "in the chain of the goal's turns that led there"
    led_there = source_candidates(chain, (ACTION, OUTCOME, REASONING), query, reason=reason)
    layers = [
        CandidateLayer(candidates=candidates, turns=[target]),
        CandidateLayer(candidates=led_there, turns=former),
        expanded_layer(merged, query),
    ]
    return TargetMaterial(target_id=record_id, layers=layers)


def episode_layers(owner: Owner, query: TargetQuery, episode: WorkEpisode, *, reason: str) -> list[CandidateLayer]:
    """Return the episode, at any level; then the turns that were merged into it."""
    records: list[TurnRecord] = []
    if query.expands_merged:
        records = read_replay_records(visible_records(owner).filter(records_merged_into(episode)), merged_too=True)
    merged = attach_slots(records, query)
    candidates = source_candidates([episode], (), query, reason=reason)
    return [CandidateLayer(candidates=candidates, turns=merged), expanded_layer(merged, query)]


def find_decision_material(owner: Owner, query: TargetQuery, *, now: datetime) -> TargetMaterial:
    """Return the reasoning or episode that says it best, its action and outcome; then later decisions for its goal.

    Nothing if no hit matches the question. Raises NotFound for a conversation in which the agent takes no part.
    """
    hits, degraded = recall_decision(owner, query, now=now)
    ids = [hit.id for hit in hits]
    record_ids = records_of_reasonings(owner, ids) if ids else {}
    reasoned = [hit for hit in hits if hit.kind == Kind.WORK_EPISODE or hit.id in record_ids]
    matching = [hit for hit in reasoned if matches_question(hit, query.request.decision)]
    if not matching:
        return TargetMaterial(target_id=None, degraded=[*degraded, NOTHING_SAYS_IT])
    turns: dict[UUID, RecordWithSlots] = {}
    if record_ids:
        records = read_replay_records(visible_records(owner).filter(id__in=list(record_ids.values())), merged_too=False)
        turns = {each.record.id: each for each in attach_slots(records, query)}
    episodes = read_episodes_by_id(owner, query, [hit.id for hit in matching if hit.kind == Kind.WORK_EPISODE])
    sources = [turns.get(record_ids[hit.id]) if hit.id in record_ids else episodes.get(hit.id) for hit in matching]
    found = [(hit, each) for hit, each in zip(matching, sources, strict=True) if each is not None]
    if not found:
        return TargetMaterial(target_id=None, degraded=[*degraded, NOTHING_SAYS_IT])
    hit, best = found[0]
    reason = "; ".join(["says what was decided", *hit.reasons])
    if isinstance(best, WorkEpisode):
        layers = episode_layers(owner, query, best, reason=reason)
    else:
        candidates = source_candidates([best], (REASONING,), query, reason=reason)
        candidates += source_candidates([best], (ACTION, OUTCOME), query, reason="of the turn in which it was decided")
        layers = [CandidateLayer(candidates=candidates, turns=[best])]
    # newest first: the last word counts
    later = sort_newest_first(each for _, each in found[1:] if is_later_for_goal(each, best))
    candidates = source_candidates(later, (REASONING, OUTCOME), query, reason="decided later for the same goal")
    decided_in = [each for each in later if isinstance(each, RecordWithSlots)]
    layers.append(CandidateLayer(candidates=candidates, turns=decided_in))
    if is_hidden_in_rationale(best, query):
        degraded = [*degraded, DEEPER_TIER]
    return TargetMaterial(target_id=hit.id, layers=layers, degraded=degraded)


def recall_decision(owner: Owner, query: TargetQuery, *, now: datetime) -> tuple[Sequence[Candidate], Sequence[str]]:
    """Return slots and work episodes recalled for the decision, best first, and the recall's `degraded`."""
    request = query.request
    scopes: Sequence[Scope] = ()
    if request.conversation_id:
        find_conversation(owner, request.conversation_id)
        scopes = (Scope.SESSION, Scope.LINEAGE)
    question = Query(
        text=request.decision,
        top_k=MAX_DECISION_HITS,
        kinds=sorted({Kind.TURN_SLOT, Kind.WORK_EPISODE}),
        conversation_id=request.conversation_id,
        posture=request.posture,
        scopes=scopes,
    )
    bundle = recall(owner, RecallRequest(query=question), now=now)
    return bundle.results, bundle.degraded


def matches_question(hit: Candidate, question: str) -> bool:
    """Return True if the hit says any of what is asked; a recall always returns something."""
    if hit.similarity is not None and hit.similarity >= MIN_SIMILARITY:
        return True
    asked = content_words(question)
    if not asked:
        return hit.content > 0
    return len(asked & content_words(hit.text)) >= max(1, MIN_WORD_SHARE * len(asked))


def list_candidates(material: TargetMaterial, limit: ReasoningTier) -> Iterator[ReplayItem]:
    """Return the candidates layer by layer: summaries, then rationales, then raw traces.

    One statement for the sizes of raw traces, none if none of them may be read.
    """
    records = [turn.record for layer in material.layers for turn in layer.turns]
    traced_records = [record for record in records if record.reasoning_tier == limit == ReasoningTier.RAW_TRACE]
    sizes = trace_sizes(traced_records) if traced_records else {}
    rationale, reason = ReasoningTier.STRUCTURED_RATIONALE, "what was decided, rejected and in the way: asked for"
    for layer in material.layers:
        yield from layer.candidates
        for turn in layer.turns if not is_deeper(rationale, limit) else ():
            found = slot_candidates(turn, REASONING, limit=rationale, reason=reason)
            yield from (each for each in found if each.tier == rationale)
        for turn in layer.turns:
            if turn.record.id in sizes:
                yield trace_candidate(turn, *sizes[turn.record.id], reason="the provider's own trace: asked for")


def unseal_traces(owner: Owner, request: ReplayRequest, selected: Sequence[ReplayItem]) -> list[ReplayItem]:
    """Unseal the selected traces after the audit entry is written, and leave out those that could not be unsealed.

    The entry says whose traces are returned and in which posture; no word of a trace, and none of a decision.
    """
    record_ids = [each.key[0] for each in selected if each.tier == ReasoningTier.RAW_TRACE]
    targets = {"goal": request.goal_id, "record": request.record_id, "episode": request.episode_id}
    target = next((f"{name}:{each}" for name, each in targets.items() if each is not None), "decision")
    with transaction.atomic():
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
        sealed = sealed_traces(owner, record_ids) if record_ids else {}
    return [opened for each in selected if (opened := unseal_trace(each, sealed)) is not None]


def unseal_trace(candidate: ReplayItem, sealed: dict[UUID, bytes]) -> ReplayItem | None:
    """Return the candidate with its text, which only that of a trace lacks.

    Returns None if no key opens the trace, it is gone by now, or longer than its tokens.
    """
    if candidate.tier != ReasoningTier.RAW_TRACE:
        return candidate
    try:
        text = str(json.loads(unseal(sealed[candidate.key[0]])))
    except (KeyError, SealBroken):
        return None
    if estimate_tokens(text) > candidate.tokens:
        return None
    return replace(candidate, text=text, tokens=estimate_tokens(text))


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
