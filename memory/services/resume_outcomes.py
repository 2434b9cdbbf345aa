"""The last outcome of a packet: of the latest record, else of the latest work episode, else what was said last."""

from collections.abc import Sequence

from memory.extraction.work_notes import NoteKind, kind_of
from memory.models import TurnSlot
from memory.retrieval.resume import EpisodeOfWork, Remembered, SaidTurn, SlotOfTurn
from memory.services.layouts import one_line
from memory.services.resume_notes import sentences_of
from memory.services.resume_pieces import EPOCH, GIVEN, Piece, Section, short_text

SPEAKERS = frozenset({"user", "assistant"})
"""Who reports: what tools print is no outcome yet."""
LAST_TURNS = 40
"""What was reported before these is no last outcome any more."""
LONGEST_OUTCOME = 300
OUTCOME_WEIGHT = 11.0
STATUS_OF = {NoteKind.RESULT: "succeeded", NoteKind.ERROR: "failed"}


def last_outcome(
    slots: Sequence[SlotOfTurn], episodes: Sequence[EpisodeOfWork], turns: Sequence[SaidTurn]
) -> list[Piece]:
    """One piece, or none where nothing came of anything."""
    recorded: list[tuple[SlotOfTurn | EpisodeOfWork, str]] = [
        *((slot, slot.text) for slot in slots if slot.slot == TurnSlot.Slot.OUTCOME),
        *((each, each.data["outcome"]) for each in episodes if isinstance(each.data.get("outcome"), str)),
    ]
    if recorded:
        latest, text = max(recorded, key=lambda each: (each[0].event_time, each[0].number))
        return [outcome_piece(latest, text, latest.status)]
    for turn in reversed(turns[-LAST_TURNS:]):
        for sentence in reversed(sentences_of(turn.text)):
            status = STATUS_OF.get(kind_of(sentence) or NoteKind.DECISION, "")
            if status and turn.role in SPEAKERS:
                return [outcome_piece(turn, sentence, status)]
    return []


def outcome_piece(of: Remembered, text: str, status: str) -> Piece:
    """`record_id` is None for what was only said; its status is how that sounds."""
    return Piece(
        section=Section.LAST_OUTCOME,
        says="outcome",
        text=short_text(one_line(text), LONGEST_OUTCOME),
        label=f"{status}: ",
        weight=OUTCOME_WEIGHT,
        place=(GIVEN, EPOCH, 0, 0),
        id=of.id,
        kind=of.kind,
        channel=of.channel,
        conversation_id=of.conversation_id,
        event_time=of.event_time,
        is_apart=True,
        facts={"record_id": of.record_id if isinstance(of, SlotOfTurn) else None, "status": status},
    )
