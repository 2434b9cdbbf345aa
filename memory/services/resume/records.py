"""What was recorded, and what was recalled besides, as pieces of a packet: points of rationales, sentences of slots."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from memory.extraction.turn_slots import Point, Rationale
from memory.extraction.work_notes import NoteKind, kind_of
from memory.models import Kind, TurnSlot
from memory.providers.sentences import is_question
from memory.reasoning import ReasoningTier
from memory.retrieval.candidates import Candidate
from memory.retrieval.resume import SlotOfTurn
from memory.services.records.reasoning import within_policy
from memory.services.resume.notes import LABELS, OPEN, SPEAKERS, Said, note_by, says_nothing, sentences_of
from memory.services.resume.pieces import NOTES


def notes_of_slots(
    slots: Sequence[SlotOfTurn], allowed: ReasoningTier, *, open_goals: Collection[UUID]
) -> Iterator[Said]:
    """What records say: points of rationales, and the sentences of the other slots."""
    for said in read_slots_apart(slots, allowed):
        goal_id = said.of.goal_id if isinstance(said.of, SlotOfTurn) else None
        yield replace(said, is_of_closed=goal_id is not None and goal_id not in open_goals)


def read_slots_apart(slots: Sequence[SlotOfTurn], allowed: ReasoningTier) -> Iterator[Said]:
    for place, slot in enumerate(slots):
        recency = (place + 1) / len(slots)
        where = (NOTES, slot.recorded_at, slot.number)
        if slot.slot == TurnSlot.Slot.REASONING:
            yield from notes_of_reasoning(slot, allowed, recency=recency)
            continue
        is_outcome = slot.slot == TurnSlot.Slot.OUTCOME
        for number, sentence in enumerate(sentences_of(slot.text)):
            note = kind_of(sentence)
            if says_nothing(sentence, note) and not is_outcome:
                continue
            if is_outcome:
                note = outcome_note(slot, note)
            yield Said(
                of=slot,
                text=sentence,
                note=None if note == NoteKind.QUESTION_OPEN else note,
                place=(*where, number),
                recency=recency,
                is_recorded=is_outcome,
            )


def outcome_note(slot: SlotOfTurn, note: NoteKind | None) -> NoteKind:
    """What an outcome says by its status, where its words say nothing more telling."""
    if note in (NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.CORRECTION, NoteKind.CONSTRAINT):
        return note
    by_status = {"failed": NoteKind.ERROR, "open": NoteKind.NEXT_STEP}
    return by_status.get(slot.status, NoteKind.RESULT)


POINTS = {"decisions": NoteKind.DECISION, "rejected": NoteKind.REJECTION, "blockers": NoteKind.BLOCKER}


def notes_of_reasoning(slot: SlotOfTurn, allowed: ReasoningTier, *, recency: float) -> Iterator[Said]:
    """Decisions, rejected options and blockers, as far as the account tells them."""
    row = TurnSlot(slot=slot.slot, tier=slot.tier, text=slot.text, data=slot.data)
    told = within_policy(row, allowed)
    if told is None:
        return
    rationale = Rationale.of_json(told.data.get("rationale", {}))
    points = [(POINTS[name], point) for name in POINTS for point in getattr(rationale, name)]
    if not points:
        summary = told.data.get("summary", "") or told.text
        points = [(NoteKind.DECISION, Point(what=sentence)) for sentence in sentences_of(summary)]
    for number, (note, point) in enumerate(points):
        yield Said(
            of=slot,
            text=point.tell(),
            note=note,
            place=(NOTES, slot.recorded_at, slot.number, number),
            recency=recency,
            label=LABELS.get(note, ""),
            is_recorded=True,
        )


TOLD_AS = {"Decided": NoteKind.DECISION, "Rejected": NoteKind.REJECTION, "Blocked by": NoteKind.BLOCKER}
"""What stands before a point in the text of a reasoning (`Rationale.tell`)."""
TOLD_ELSEWHERE = frozenset({Kind.GOAL, Kind.STRATEGY, Kind.ARTIFACT, Kind.ENTITY})
WHOLE = frozenset({Kind.FACT, Kind.CONTEXT_ENTRY, Kind.LEARNING})
"""Kinds that are told whole; of others the sentences."""


def notes_of_recalled(results: Sequence[Candidate], read: Collection[UUID], allowed: ReasoningTier) -> Iterator[Said]:
    """What the recall brought besides what was read already."""
    tells_all = allowed in (ReasoningTier.STRUCTURED_RATIONALE, ReasoningTier.RAW_TRACE)
    for result in results:
        if result.id in read or result.kind in TOLD_ELSEWHERE:
            continue
        if result.kind == Kind.TURN_SLOT:
            yield from notes_of_recalled_slot(result) if tells_all else ()
            continue
        sentences = [result.text] if result.kind in WHOLE else sentences_of(result.text)
        for number, sentence in enumerate(sentences):
            note = note_by(result.role, sentence)
            if note != NoteKind.QUESTION_OPEN and not is_question(sentence) and not says_nothing(sentence, note):
                yield Said(
                    of=result,
                    text=sentence,
                    note=NoteKind.RESULT if note in OPEN else note,
                    place=(NOTES, result.event_time, result.index or 0, number),
                    by=result.role if result.role in SPEAKERS else "",
                )


def notes_of_recalled_slot(result: Candidate) -> Iterator[Said]:
    """As of a slot that was read: its points are what they were recorded as."""
    is_outcome = result.slot == TurnSlot.Slot.OUTCOME
    for number, sentence in enumerate(sentences_of(result.text)):
        label, _, rest = sentence.partition(": ")
        point = TOLD_AS.get(label) if result.slot == TurnSlot.Slot.REASONING else None
        note = point or kind_of(sentence) or (NoteKind.RESULT if is_outcome else None)
        if note == NoteKind.QUESTION_OPEN or (says_nothing(sentence, note) and not is_outcome):
            continue
        yield Said(
            of=result,
            text=rest if point else sentence,
            note=note,
            place=(NOTES, result.event_time, 0, number),
            label=LABELS.get(note, "") if note and point else "",
            is_recorded=is_outcome or point is not None,
        )
