"""Targets of a replay: the request, and what there is of a goal, a record, a work episode or a decision.

Each is returned in layers, the most valuable first: later layers fill the room that is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory.errors import NotFound
from memory.extraction.terms import content_words
from memory.models import CompressionLevel, Kind, TurnRecord, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Posture, Query, Scope
from memory.retrieval.replay import (
    read_replay_episodes,
    read_replay_records,
    read_slots_of_records,
    records_before,
    records_merged_into,
    records_of_reasonings,
    visible_episodes,
    visible_records,
)
from memory.services.conversations.lifecycle import find_conversation
from memory.services.goals.store import find_goal
from memory.services.recall.recall import RecallRequest, recall
from memory.services.records.reasoning import parse_stored_reasoning, redact_slot
from memory.services.replay.candidates import (
    RecordWithSlots,
    ReplayCandidate,
    Slot,
    episode_candidates,
    slot_candidates,
)

DEEP_POSTURES = frozenset({Posture.RECOVERY, Posture.AUDIT})
"""Postures that justify reading what was merged and raw traces: something broke, or somebody must answer for it."""
DEFAULT_TOKENS = 800
MAX_DECISION_HITS = 30
"""Recalled memories in which a decision is searched."""
MIN_WORD_SHARE = 0.25
"""Share of the question's content words in a hit that matches it by words."""
MIN_SIMILARITY = 0.5
"""Cosine similarity of a hit that matches the question by meaning."""
NOTHING_SAYS_IT = "nothing_says_it"
"""Value in `degraded`: reasoning was recalled, and none of it matches the question."""
DEEPER_TIER = "deeper_tier_available"
"""Value in `degraded`: the answer is in a rationale, which a request for that tier would return."""

OUTCOME, REASONING, ACTION, OBSERVATION = (
    slot.value for slot in (Slot.OUTCOME, Slot.REASONING, Slot.ACTION, Slot.OBSERVATION)
)

WorkSource = RecordWithSlots | WorkEpisode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A request to replay one of a goal, a record, a work episode, and a decision in words.

    A decision is searched everywhere, or in `conversation_id` and the conversations that it continues. `tier` is the
    deepest reasoning to return. `has_scope` is True if the client may be shown raw traces.
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
class TargetQuery:
    """A request with the deepest tier that the account allows now (`policy`), and that of the answer (`limit`)."""

    request: ReplayRequest
    limit: ReasoningTier
    policy: ReasoningTier

    @property
    def expands_merged(self) -> bool:
        """True if merged turns are returned too, where there is room."""
        return self.request.posture in DEEP_POSTURES


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLayer:
    """Candidates, best first, and the turns whose rationales and traces are candidates after them."""

    candidates: Sequence[ReplayCandidate]
    turns: Sequence[RecordWithSlots] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetMaterial:
    """Layers of candidates, best first. `target_id` is None if nothing says the decision."""

    target_id: UUID | None
    layers: Sequence[CandidateLayer] = ()
    degraded: Sequence[str] = ()


def find_target_material(owner: Owner, query: TargetQuery, *, now: datetime) -> TargetMaterial:
    """Return what there is to replay. Raises NotFound for a target that the owner cannot see."""
    request = query.request
    if request.goal_id is not None:
        return find_goal_material(owner, query, request.goal_id, now=now)
    if request.record_id is not None:
        return find_record_material(owner, query, request.record_id)
    if request.episode_id is not None:
        return find_episode_material(owner, query, request.episode_id)
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
    candidates: list[ReplayCandidate] = []
    for each in sort_newest_first([*episodes, *fresh]):
        if isinstance(each, WorkEpisode):
            candidates += episode_candidates(
                each, limit=query.limit, reason="stands for turns of the goal that were merged"
            )
            continue
        state = OUTCOME if OUTCOME in each.slots else ACTION
        reason = "what came of an earlier turn of the goal" if candidates else "where the goal stands: its latest turn"
        candidates += source_candidates(each, (state,), query, reason=reason)
        candidates += source_candidates(each, (REASONING,), query, reason="why the turn went this way")
    layers = [CandidateLayer(candidates=candidates, turns=turns), expanded_layer(merged, query)]
    return TargetMaterial(target_id=goal_id, layers=layers)


def find_record_material(owner: Owner, query: TargetQuery, record_id: UUID) -> TargetMaterial:
    """Return the turn or the episode it was merged into; then the turns of its goal before it."""
    record = visible_records(owner).filter(id=record_id).first()
    if record is None:
        raise NotFound("no such turn record")
    records, episodes = [record], []
    if record.goal_id is not None:
        earlier = visible_records(owner).filter(records_before(record), goal_id=record.goal_id)
        records += read_replay_records(earlier, merged_too=query.expands_merged)
        episodes = read_goal_episodes(owner, query, record.goal_id)
    target, *former = attach_slots(records, query)
    covering = [row for row in episodes if covers_record(row, record)]
    candidates = [
        each
        for row in covering
        for each in episode_candidates(
            row, limit=query.limit, reason="stands for the turn that was asked for, which was merged"
        )
    ]
    if not covering or query.expands_merged:
        candidates += source_candidates(
            target, (OUTCOME, REASONING, ACTION, OBSERVATION), query, reason="of the turn that was asked for"
        )
    fresh, merged = split_merged(former)
    before = [row for row in episodes if row.event_time <= record.event_time and not covers_record(row, record)]
    chain = [
        candidate
        for each in sort_newest_first([*before, *fresh])
        for candidate in source_candidates(
            each, (ACTION, OUTCOME, REASONING), query, reason="in the chain of the goal's turns that led there"
        )
    ]
    layers = [
        CandidateLayer(candidates=candidates, turns=[target]),
        CandidateLayer(candidates=chain, turns=former),
        expanded_layer(merged, query),
    ]
    return TargetMaterial(target_id=record_id, layers=layers)


def find_episode_material(owner: Owner, query: TargetQuery, episode_id: UUID) -> TargetMaterial:
    """Return the episode, at any level; then the turns that were merged into it."""
    episode = read_episodes_by_id(owner, query, [episode_id]).get(episode_id)
    if episode is None:
        raise NotFound("no such work episode")
    layers = episode_layers(owner, query, episode, reason="the work episode that was asked for")
    return TargetMaterial(target_id=episode_id, layers=layers)


def episode_layers(owner: Owner, query: TargetQuery, episode: WorkEpisode, *, reason: str) -> list[CandidateLayer]:
    records: list[TurnRecord] = []
    if query.expands_merged:
        records = read_replay_records(visible_records(owner).filter(records_merged_into(episode)), merged_too=True)
    merged = attach_slots(records, query)
    candidates = list(episode_candidates(episode, limit=query.limit, reason=reason))
    return [CandidateLayer(candidates=candidates, turns=merged), expanded_layer(merged, query)]


def find_decision_material(owner: Owner, query: TargetQuery, *, now: datetime) -> TargetMaterial:
    """Return the reasoning or episode that says it best, its action and outcome; then later decisions for its goal.

    Nothing if no hit matches the question. Raises NotFound for a conversation in which the agent takes no part.
    """
    hits, degraded = recall_decision(owner, query, now=now)
    ids = [hit.id for hit in hits]
    record_ids = records_of_reasonings(ids) if ids else {}
    reasoned = [hit for hit in hits if hit.kind == Kind.WORK_EPISODE or hit.id in record_ids]
    matching = [hit for hit in reasoned if matches_question(hit, query.request.decision)]
    if not matching:
        return TargetMaterial(target_id=None, degraded=[*degraded, *([NOTHING_SAYS_IT] if reasoned else [])])
    turns: dict[UUID, RecordWithSlots] = {}
    if record_ids:
        records = read_replay_records(visible_records(owner).filter(id__in=list(record_ids.values())), merged_too=False)
        turns = {each.record.id: each for each in attach_slots(records, query)}
    episodes = read_episodes_by_id(owner, query, [hit.id for hit in matching if hit.kind == Kind.WORK_EPISODE])
    sources = [turns.get(record_ids[hit.id]) if hit.id in record_ids else episodes.get(hit.id) for hit in matching]
    found = [(hit, each) for hit, each in zip(matching, sources, strict=True) if each is not None]
    if not found:
        return TargetMaterial(target_id=None, degraded=degraded)
    hit, best = found[0]
    layers = decision_layers(owner, query, best, reason="; ".join(["says what was decided", *hit.reasons]))
    later = [each for _, each in found[1:] if is_later_for_goal(each, best)]
    if is_hidden_in_rationale(best, query):
        degraded = [*degraded, DEEPER_TIER]
    return TargetMaterial(target_id=hit.id, layers=[*layers, later_decisions_layer(later, query)], degraded=degraded)


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


def is_hidden_in_rationale(source: WorkSource, query: TargetQuery) -> bool:
    """Return True if a rationale that might be read answers more of the question than its summary does."""
    row = source.slots.get(REASONING) if isinstance(source, RecordWithSlots) else None
    if row is None or not is_deeper(ReasoningTier.STRUCTURED_RATIONALE, query.limit):
        return False
    if row.tier != ReasoningTier.STRUCTURED_RATIONALE or is_deeper(row.tier, query.policy):
        return False
    redacted, stored = redact_slot(row, query.limit), parse_stored_reasoning(row)
    unanswered = content_words(query.request.decision) - content_words(redacted.text if redacted else "")
    return bool(unanswered & content_words(stored.rationale.format()))


def decision_layers(owner: Owner, query: TargetQuery, source: WorkSource, *, reason: str) -> list[CandidateLayer]:
    if isinstance(source, WorkEpisode):
        return episode_layers(owner, query, source, reason=reason)
    candidates = source_candidates(source, (REASONING,), query, reason=reason)
    candidates += source_candidates(source, (ACTION, OUTCOME), query, reason="of the turn in which it was decided")
    return [CandidateLayer(candidates=candidates, turns=[source])]


def later_decisions_layer(later: Sequence[WorkSource], query: TargetQuery) -> CandidateLayer:
    """Return the layer of later decisions, newest first: the last word counts."""
    candidates = [
        candidate
        for each in sort_newest_first(later)
        for candidate in source_candidates(each, (REASONING, OUTCOME), query, reason="decided later for the same goal")
    ]
    return CandidateLayer(candidates=candidates, turns=[each for each in later if isinstance(each, RecordWithSlots)])


def expanded_layer(merged: Sequence[RecordWithSlots], query: TargetQuery) -> CandidateLayer:
    """Return the layer of merged turns, outcomes and reasoning first; empty if the posture does not justify it."""
    turns = merged if query.expands_merged else ()
    candidates = [
        candidate
        for slots in ((OUTCOME, REASONING), (ACTION, OBSERVATION))
        for turn in turns
        for candidate in source_candidates(
            turn, slots, query, reason="behind a work episode: as it was before it was merged"
        )
    ]
    return CandidateLayer(candidates=candidates)


def source_candidates(
    source: WorkSource, slots: Sequence[str], query: TargetQuery, *, reason: str
) -> list[ReplayCandidate]:
    """Return the candidates for these slots of a turn, or for an episode."""
    if isinstance(source, WorkEpisode):
        return list(episode_candidates(source, limit=query.limit, reason=reason))
    return [each for slot in slots for each in slot_candidates(source, slot, limit=query.limit, reason=reason)]


def read_goal_episodes(owner: Owner, query: TargetQuery, goal_id: UUID) -> list[WorkEpisode]:
    rows = visible_episodes(owner, max_tokens=query.request.max_tokens)
    return read_replay_episodes(rows.filter(for_goal_id=goal_id, archived=False))


def read_episodes_by_id(owner: Owner, query: TargetQuery, ids: Sequence[UUID]) -> dict[UUID, WorkEpisode]:
    rows = visible_episodes(owner, max_tokens=query.request.max_tokens)
    return {row.id: row for row in read_replay_episodes(rows.filter(id__in=ids))} if ids else {}


def attach_slots(records: Sequence[TurnRecord], query: TargetQuery) -> list[RecordWithSlots]:
    """Return the records in the given order with their slots. One statement, none for no records."""
    slots = read_slots_of_records(records, max_tokens=query.request.max_tokens) if records else {}
    return [RecordWithSlots(record=each, slots=slots.get(each.id, {})) for each in records]


def split_merged(turns: Iterable[RecordWithSlots]) -> tuple[list[RecordWithSlots], list[RecordWithSlots]]:
    """Return the turns that were not merged, and those that an episode stands for."""
    fresh: list[RecordWithSlots] = []
    merged: list[RecordWithSlots] = []
    for turn in turns:
        (merged if turn.record.level >= CompressionLevel.MERGED else fresh).append(turn)
    return fresh, merged


def sort_newest_first(sources: Iterable[WorkSource]) -> list[WorkSource]:
    return sorted(sources, key=time_key, reverse=True)


def time_key(source: WorkSource) -> tuple[datetime, UUID]:
    row = source.record if isinstance(source, RecordWithSlots) else source
    return row.event_time, row.id


def is_later_for_goal(source: WorkSource, than: WorkSource) -> bool:
    """Return True if it is of the same goal, and later."""
    goal_id, other_id = (
        each.record.goal_id if isinstance(each, RecordWithSlots) else each.for_goal_id for each in (source, than)
    )
    return goal_id is not None and goal_id == other_id and time_key(source) > time_key(than)


def covers_record(episode: WorkEpisode, record: TurnRecord) -> bool:
    """Return True if the record was merged into the episode."""
    is_merged = record.level >= CompressionLevel.MERGED and episode.log_id == record.log_id
    return is_merged and episode.first_number <= record.number <= episode.last_number
