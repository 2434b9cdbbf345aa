"""Candidates of a replay (E8): what may be read of slots, episodes and traces, and the choice of what fits.

Each says why it is there. A rationale replaces its summary, which it contains.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory.models import TurnRecord, TurnSlot, WorkEpisode
from memory.reasoning import Provenance, ReasoningTier, is_deeper, shallowest
from memory.services.records.reasoning import RedactedSlot, redact_slot
from memory.services.work_episodes.read import redact_episode
from memory.tokens import estimate_tokens

Slot = TurnSlot.Slot
TURN_SLOT, WORK_EPISODE, REASONING_TRACE = "turn_slot", "work_episode", "reasoning_trace"
REPLAY_ITEM_KINDS = (TURN_SLOT, WORK_EPISODE, REASONING_TRACE)

SLOT_ORDER = {slot: order for order, slot in enumerate(Slot.values)}
NONE = ReasoningTier.NONE
TimelineKey = tuple[datetime, str, int, float]
"""Order in which items are told: time, conversation, number of the record, and order of the slot."""
CandidateKey = tuple[UUID, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayItem:
    """One text of a replay, and why it is there.

    `memory_id` is None for a raw trace, which is no memory. `tier` is the deepest reasoning in the text; empty for
    none.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCandidate:
    """An item that may be selected. Of two with the same `key`, the one of the deeper tier replaces the other.

    A raw trace has no text until it is selected.
    """

    item: ReplayItem
    key: CandidateKey
    order: TimelineKey


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedCandidates:
    """The selected candidates in the order of time, and how many had no room."""

    candidates: Sequence[ReplayCandidate]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWithSlots:
    """A structured turn with those of its slots that may be read."""

    record: TurnRecord
    slots: Mapping[str, TurnSlot]

    def order_of(self, slot_order: float) -> TimelineKey:
        return (self.record.event_time, self.record.conversation_id, self.record.number, slot_order)


def slot_candidates(
    turn: RecordWithSlots, slot: str, *, limit: ReasoningTier, reason: str
) -> Iterator[ReplayCandidate]:
    """Return the candidate for a slot, if it may be read; for reasoning, its summary."""
    row = turn.slots.get(slot)
    redacted = row and redact_slot(row, shallowest(limit, ReasoningTier.DECISION_SUMMARY))
    if row and redacted:
        yield redacted_slot_candidate(turn, row, redacted, reason=reason)


def rationale_candidates(turn: RecordWithSlots, *, limit: ReasoningTier, reason: str) -> Iterator[ReplayCandidate]:
    """Return the candidate for the rationale, which replaces the summary, if it may be read."""
    row = turn.slots.get(Slot.REASONING.value)
    redacted = row and redact_slot(row, shallowest(limit, ReasoningTier.STRUCTURED_RATIONALE))
    if row and redacted and redacted.tier == ReasoningTier.STRUCTURED_RATIONALE:
        yield redacted_slot_candidate(turn, row, redacted, reason=reason)


def redacted_slot_candidate(
    turn: RecordWithSlots, row: TurnSlot, redacted: RedactedSlot, *, reason: str
) -> ReplayCandidate:
    item = ReplayItem(
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
    return ReplayCandidate(item=item, key=(turn.record.id, row.slot), order=turn.order_of(SLOT_ORDER[row.slot]))


def episode_candidates(row: WorkEpisode, *, limit: ReasoningTier, reason: str) -> Iterator[ReplayCandidate]:
    """Return the candidate for a work episode, if it may be read, ordered after the last of its turns."""
    redacted = redact_episode(row, limit)
    if redacted is None and (row.text or is_deeper(row.tier, limit)):
        return
    # a text that was too long to be read is empty
    text, tier = ("", NONE) if redacted is None else (redacted.text, redacted.tier)
    item = ReplayItem(
        kind=WORK_EPISODE,
        episode_id=row.id,
        memory_id=row.id,
        level=row.level,
        tier="" if tier == NONE else tier.value,
        provenance="" if tier == NONE else Provenance.RUNTIME_PROJECTION.value,
        text=text,
        tokens=estimate_tokens(text) if text else row.token_count,
        reason=reason,
        event_time=row.event_time,
    )
    order = (row.event_time, row.conversation_id, row.last_number, len(SLOT_ORDER))
    yield ReplayCandidate(item=item, key=(row.id, ""), order=order)


def trace_candidate(turn: RecordWithSlots, tokens: int, provenance: str, *, reason: str) -> ReplayCandidate:
    """Return the candidate for a raw trace, ordered after the reasoning. Its text is unsealed once it is selected."""
    item = ReplayItem(
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
    order = turn.order_of(SLOT_ORDER[Slot.REASONING.value] + 0.5)
    return ReplayCandidate(item=item, key=(turn.record.id, REASONING_TRACE), order=order)


def select_within_budget(candidates: Iterable[ReplayCandidate], *, max_tokens: int) -> SelectedCandidates:
    """Return as many candidates as fit, the first ones first; one that is too long makes way for those after it."""
    selected: dict[CandidateKey, ReplayCandidate] = {}
    lacking: set[tuple[CandidateKey, str]] = set()
    room = max_tokens
    for candidate in candidates:
        item, former = candidate.item, selected.get(candidate.key)
        if former is not None and not is_deeper(item.tier or NONE, former.item.tier or NONE):
            continue
        freed = 0 if former is None else former.item.tokens
        if item.tokens <= room + freed:
            selected[candidate.key] = candidate
            room += freed - item.tokens
        else:
            lacking.add((candidate.key, item.tier))
    in_time = sorted(selected.values(), key=lambda candidate: candidate.order)
    return SelectedCandidates(candidates=in_time, left_out=len(lacking))
