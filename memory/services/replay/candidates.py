"""What a replay may tell, piece by piece (E8): offered in the order of worth, taken into the budget, told in time.

Each offer says why it is there. A rationale that is asked for takes the place of its summary, since it tells that too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory.models import TurnRecord, TurnSlot, WorkEpisode
from memory.reasoning import Provenance, ReasoningTier, is_deeper, shallowest
from memory.services.records.reasoning import ToldSlot, within_policy
from memory.services.work_episodes.read import told_episode
from memory.tokens import estimate_tokens

Slot = TurnSlot.Slot
TURN_SLOT, WORK_EPISODE, REASONING_TRACE = "turn_slot", "work_episode", "reasoning_trace"
PIECE_KINDS = (TURN_SLOT, WORK_EPISODE, REASONING_TRACE)

PLACES = {slot: place for place, slot in enumerate(Slot.values)}
OF_REASONING = PLACES[Slot.REASONING.value]
NONE = ReasoningTier.NONE
Place = tuple[datetime, str, int, float]
"""Where a piece is told: when, in which conversation, with which number, behind which slot."""
Key = tuple[UUID, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something that is told, and why. Of a raw trace `memory_id` is None: it is no memory."""

    kind: str
    record_id: UUID | None = None
    episode_id: UUID | None = None
    memory_id: UUID | None = None
    slot: str = ""
    level: int
    tier: str = ""
    """The deepest of reasoning that it tells; empty of what tells none."""
    provenance: str = ""
    text: str = field(repr=False)
    tokens: int
    reason: str
    event_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A piece that may be told. `key` names what it tells of: one that tells more takes the place of one that tells
    less. A raw trace has no text until it is taken."""

    piece: Piece
    key: Key
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The offers that are told, in order of time, and how many had no room."""

    offers: Sequence[Offer]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A structured turn with its slots, as far as they may be read."""

    record: TurnRecord
    slots: Mapping[str, TurnSlot]

    def place(self, after: float) -> Place:
        return (self.record.event_time, self.record.conversation_id, self.record.number, after)


def offer_slot(unit: Unit, slot: str, *, limit: ReasoningTier, reason: str) -> Iterator[Offer]:
    """What may be told of a slot; of a reasoning its summary."""
    row = unit.slots.get(slot)
    if row is not None:
        told = within_policy(row, shallowest(limit, ReasoningTier.DECISION_SUMMARY))
        yield from offer_told(unit, row, told, reason=reason)


def offer_rationale(unit: Unit, *, limit: ReasoningTier, reason: str) -> Iterator[Offer]:
    """What was decided, rejected and in the way, in place of the summary; nothing where no more may be told."""
    row = unit.slots.get(Slot.REASONING.value)
    if row is not None:
        told = within_policy(row, shallowest(limit, ReasoningTier.STRUCTURED_RATIONALE))
        if told is not None and told.tier == ReasoningTier.STRUCTURED_RATIONALE:
            yield from offer_told(unit, row, told, reason=reason)


def offer_told(unit: Unit, row: TurnSlot, told: ToldSlot | None, *, reason: str) -> Iterator[Offer]:
    if told is None:
        return
    piece = Piece(
        kind=TURN_SLOT,
        record_id=unit.record.id,
        memory_id=row.id,
        slot=row.slot,
        level=row.level,
        tier=told.tier,
        provenance=row.provenance,
        text=told.text,
        # a text that was too long to be read is empty
        tokens=estimate_tokens(told.text) if told.text else row.token_count,
        reason=reason,
        event_time=row.event_time,
    )
    yield Offer(piece=piece, key=(unit.record.id, row.slot), place=unit.place(PLACES[row.slot]))


def offer_episode(row: WorkEpisode, *, limit: ReasoningTier, reason: str) -> Iterator[Offer]:
    told = told_episode(row, limit)
    if told is None and (row.text or is_deeper(row.tier, limit)):
        return
    # a text that was too long to be read is empty
    text, tier = ("", ReasoningTier.NONE) if told is None else (told.text, told.tier)
    piece = Piece(
        kind=WORK_EPISODE,
        episode_id=row.id,
        memory_id=row.id,
        level=row.level,
        tier="" if tier == ReasoningTier.NONE else tier.value,
        provenance="" if tier == ReasoningTier.NONE else Provenance.RUNTIME_PROJECTION.value,
        text=text,
        tokens=estimate_tokens(text) if text else row.token_count,
        reason=reason,
        event_time=row.event_time,
    )
    # behind the last of the turns that it stands for
    place = (row.event_time, row.conversation_id, row.last_number, len(PLACES))
    yield Offer(piece=piece, key=(row.id, ""), place=place)


def offer_trace(unit: Unit, tokens: int, provenance: str, *, reason: str) -> Offer:
    """Its text is unsealed once it is known that it is told."""
    piece = Piece(
        kind=REASONING_TRACE,
        record_id=unit.record.id,
        slot=Slot.REASONING.value,
        level=unit.record.level,
        tier=ReasoningTier.RAW_TRACE.value,
        provenance=provenance,
        text="",
        tokens=tokens,
        reason=reason,
        event_time=unit.record.event_time,
    )
    return Offer(piece=piece, key=(unit.record.id, REASONING_TRACE), place=unit.place(OF_REASONING + 0.5))


def take(offers: Iterable[Offer], *, max_tokens: int) -> Told:
    """As many as fit, the first ones first: what is too long for the room that is left makes way for what follows."""
    taken: dict[Key, Offer] = {}
    lacking: set[tuple[Key, str]] = set()
    room = max_tokens
    for offer in offers:
        was = taken.get(offer.key)
        if was is not None and not is_deeper(offer.piece.tier or NONE, was.piece.tier or NONE):
            continue
        freed = 0 if was is None else was.piece.tokens
        if offer.piece.tokens <= room + freed:
            taken[offer.key] = offer
            room += freed - offer.piece.tokens
        else:
            lacking.add((offer.key, offer.piece.tier))
    in_time = sorted(taken.values(), key=lambda offer: offer.place)
    return Told(offers=in_time, left_out=len(lacking))
