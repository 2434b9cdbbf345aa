"""Candidates of a replay (E8): the request, what may be read of slots, episodes and traces, and what of that fits.

Each candidate says why it is there. A rationale replaces its summary, which it contains. Candidates come in layers, the
most valuable first: later layers fill the room that is left.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory.extraction.terms import content_words
from memory.instructions import flags_of_texts
from memory.models import CompressionLevel, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.reasoning import Provenance, ReasoningTier, is_deeper, shallowest
from memory.retrieval.queries import Posture
from memory.retrieval.replay import read_replay_episodes, read_slots_of_records, visible_episodes
from memory.services.records.reasoning import parse_stored_reasoning, redact_slot
from memory.services.work_episodes.read import redacted_view
from memory.tokens import estimate_tokens

Slot = TurnSlot.Slot
TURN_SLOT, WORK_EPISODE, REASONING_TRACE = "turn_slot", "work_episode", "reasoning_trace"
REPLAY_ITEM_KINDS = (TURN_SLOT, WORK_EPISODE, REASONING_TRACE)
SLOT_ORDER = {slot: order for order, slot in enumerate(Slot.values)}
NONE = ReasoningTier.NONE
TimelineKey = tuple[datetime, str, int, float]
"""Order in which items are shown: time, conversation, number of the record, and order of the slot."""
CandidateKey = tuple[UUID, str]
DEEP_POSTURES = frozenset({Posture.RECOVERY, Posture.AUDIT})
"""Postures that justify reading what was merged and raw traces: something broke, or somebody must answer for it."""
DEFAULT_TOKENS = 800
OUTCOME, REASONING, ACTION, OBSERVATION = (
    slot.value for slot in (Slot.OUTCOME, Slot.REASONING, Slot.ACTION, Slot.OBSERVATION)
)


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
    """A request with the deepest tier that the account allows now."""

    request: ReplayRequest
    policy: ReasoningTier

    @property
    def limit(self) -> ReasoningTier:
        """The deepest tier of the answer."""
        return shallowest(self.request.tier, self.policy)

    @property
    def expands_merged(self) -> bool:
        """True if merged turns are returned too, where there is room."""
        return self.request.posture in DEEP_POSTURES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayItem:
    """One text of a replay, and why it is there; a candidate until it is selected.

    `memory_id` is None for a raw trace, which is no memory and has no text until it is selected. `tier` is the deepest
    reasoning in the text; empty for none. Of two candidates with the same `key`, the one of the deeper tier replaces
    the other.
    """

    key: CandidateKey
    order: TimelineKey
    kind: str
    record_id: UUID | None = None
    episode_id: UUID | None = None
    memory_id: UUID | None = None
    slot: str = ""
    level: int
    tier: str = ""
    provenance: str = ""
    text: str = field(repr=False)
    tokens: int
    reason: str
    event_time: datetime

    @property
    def flags(self) -> list[str]:
        """Warnings for readers: INSTRUCTION_FLAG or nothing."""
        return flags_of_texts(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWithSlots:
    """A structured turn with those of its slots that may be read."""

    record: TurnRecord
    slots: Mapping[str, TurnSlot]

    def order_of(self, slot_order: float) -> TimelineKey:
        return (self.record.event_time, self.record.conversation_id, self.record.number, slot_order)


WorkSource = RecordWithSlots | WorkEpisode


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLayer:
    """Candidates, best first, and the turns whose rationales and traces are candidates after them."""

    candidates: Sequence[ReplayItem]
    turns: Sequence[RecordWithSlots] = ()


def slot_candidates(turn: RecordWithSlots, slot: str, *, limit: ReasoningTier, reason: str) -> Iterator[ReplayItem]:
    """Return the candidate for a slot, if it may be read, with no reasoning deeper than `limit`."""
    row = turn.slots.get(slot)
    redacted = redact_slot(row, limit) if row else None
    if row is None or redacted is None:
        return
    yield ReplayItem(
        key=(turn.record.id, row.slot),
        order=turn.order_of(SLOT_ORDER[row.slot]),
        kind=TURN_SLOT,
        record_id=turn.record.id,
        memory_id=row.id,
        slot=row.slot,
        level=row.level,
        tier=redacted.tier,
        provenance=row.provenance,
        text=redacted.text,
        # a text that was too long to be read is empty
        tokens=estimate_tokens(redacted.text) if redacted.text else row.token_count,
        reason=reason,
        event_time=row.event_time,
    )


def episode_candidates(row: WorkEpisode, *, limit: ReasoningTier, reason: str) -> Iterator[ReplayItem]:
    """Return the candidate for a work episode, if it may be read, ordered after the last of its turns."""
    view = redacted_view(row, limit)
    if not view.text and (row.text or is_deeper(row.tier, limit)):
        return
    yield ReplayItem(
        key=(row.id, ""),
        order=(row.event_time, row.conversation_id, row.last_number, len(SLOT_ORDER)),
        kind=WORK_EPISODE,
        episode_id=row.id,
        memory_id=row.id,
        level=row.level,
        tier="" if view.tier == NONE else view.tier.value,
        provenance="" if view.tier == NONE else Provenance.RUNTIME_PROJECTION.value,
        text=view.text,
        # a text that was too long to be read is empty
        tokens=estimate_tokens(view.text) if view.text else row.token_count,
        reason=reason,
        event_time=row.event_time,
    )


def trace_candidate(turn: RecordWithSlots, tokens: int, provenance: str, *, reason: str) -> ReplayItem:
    """Return the candidate for a raw trace, ordered after the reasoning. Its text is unsealed once it is selected."""
    return ReplayItem(
        key=(turn.record.id, REASONING_TRACE),
        order=turn.order_of(SLOT_ORDER[Slot.REASONING.value] + 0.5),
        kind=REASONING_TRACE,
        record_id=turn.record.id,
        slot=Slot.REASONING.value,
        level=turn.record.level,
        tier=ReasoningTier.RAW_TRACE.value,
        provenance=provenance,
        text="",
        tokens=tokens,
        reason=reason,
        event_time=turn.record.event_time,
    )


def expanded_layer(merged: Sequence[RecordWithSlots], query: TargetQuery) -> CandidateLayer:
    """Return the layer of merged turns, outcomes and reasoning first; empty if the posture does not justify it."""
    turns = merged if query.expands_merged else ()
    reason = "behind a work episode: as it was before it was merged"
    candidates = source_candidates(turns, (OUTCOME, REASONING), query, reason=reason)
    candidates += source_candidates(turns, (ACTION, OBSERVATION), query, reason=reason)
    return CandidateLayer(candidates=candidates)


def source_candidates(
    sources: Iterable[WorkSource], slots: Sequence[str], query: TargetQuery, *, reason: str
) -> list[ReplayItem]:
    """Return the candidates for these slots of turns, of reasoning its summary, and for episodes."""
    summary, found = shallowest(query.limit, ReasoningTier.DECISION_SUMMARY), list[ReplayItem]()
    for source in sources:
        if isinstance(source, WorkEpisode):
            found += episode_candidates(source, limit=query.limit, reason=reason)
            continue
        for slot in slots:
            found += slot_candidates(source, slot, limit=summary, reason=reason)
    return found


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


def select_within_budget(candidates: Iterable[ReplayItem], *, max_tokens: int) -> tuple[list[ReplayItem], int]:
    """Return as many candidates as fit, in the order of time, and how many had no room.

    The first ones are taken first; one that is too long makes way for those after it.
    """
    selected: dict[CandidateKey, ReplayItem] = {}
    lacking: set[tuple[CandidateKey, str]] = set()
    room = max_tokens
    for item in candidates:
        former = selected.get(item.key)
        if former is not None and not is_deeper(item.tier or NONE, former.tier or NONE):
            continue
        freed = 0 if former is None else former.tokens
        if item.tokens <= room + freed:
            selected[item.key] = item
            room += freed - item.tokens
        else:
            lacking.add((item.key, item.tier))
    return sorted(selected.values(), key=lambda item: item.order), len(lacking)
