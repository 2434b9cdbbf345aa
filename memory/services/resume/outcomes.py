"""The last outcome of a packet: of the latest record, else of the latest work episode, else what was said last.

An error that was reported after the latest record has the last word. What is said counts by its form: a status is told
only where the sentence bears one, and what the other side contradicted afterwards did not end that way.
"""

import re
from collections.abc import Sequence

from memory.extraction.survivors import has_negation
from memory.extraction.work_notes import is_instruction, leans_on_former, status_of
from memory.models import TurnSlot
from memory.retrieval.resume import EpisodeOfWork, Remembered, SaidTurn, SlotOfTurn
from memory.services.prompt_context.fence import one_line
from memory.services.resume.notes import LONGEST_ANTECEDENT, sentences_of
from memory.services.resume.pieces import EPOCH, GIVEN, Piece, Section, content_words, short_text, specifics_of

SPEAKERS = frozenset({"user", "assistant"})
"""Who reports: what tools print is no outcome yet."""
LAST_TURNS = 40
"""What was reported before these is no last outcome any more."""
LONGEST_OUTCOME = 300
OUTCOME_WEIGHT = 11.0
SHARED_WORDS = 2
"""Of a report and what contradicts it, at least; or one thing that both name."""

_CONTRADICTS = re.compile(r"\b(?:still|again|wrong|broken|incorrect|untrue|actually)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:what|who|whose|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|shall|should|have|has)"
    r"(?:'s|'re)?\b",
    re.IGNORECASE,
)
"""Many questions end without a question mark."""


def last_outcome(
    slots: Sequence[SlotOfTurn], episodes: Sequence[EpisodeOfWork], turns: Sequence[SaidTurn]
) -> list[Piece]:
    """One piece, or none where nothing came of anything."""
    recorded: list[tuple[SlotOfTurn | EpisodeOfWork, str]] = [
        *((slot, slot.text) for slot in slots if slot.slot == TurnSlot.Slot.OUTCOME),
        *((each, each.data["outcome"]) for each in episodes if isinstance(each.data.get("outcome"), str)),
    ]
    latest = max(recorded, key=lambda each: (each[0].event_time, each[0].number), default=None)
    said = last_said(turns)
    if latest is not None:
        failed_since = said is not None and said[2] == "failed" and said[0].event_time > latest[0].event_time
        if not failed_since:
            return [outcome_piece(*latest, latest[0].status)]
    return [outcome_piece(*said)] if said is not None else []


def last_said(turns: Sequence[SaidTurn]) -> tuple[SaidTurn, str, str] | None:
    """The turn, the sentence that reports, and how that ended."""
    later: list[tuple[SaidTurn, str]] = []
    for turn in reversed([turn for turn in turns[-LAST_TURNS:] if turn.role in SPEAKERS]):
        sentences = sentences_of(turn.text)
        for place in reversed(range(len(sentences))):
            told = with_subject(sentences, place)
            status = reported(sentences[place], turn.role)
            if status and told and not any(contradicts(each, text, turn, told) for each, text in later):
                return turn, told, status
        later += [(turn, sentence) for sentence in sentences]
    return None


def reported(sentence: str, role: str) -> str:
    """The status that a sentence bears in that mouth: what users ask for, or to do, is no report."""
    asks = role == "user" and (_ASKS.match(sentence) is not None or is_instruction(sentence))
    return "" if asks else status_of(sentence)


def with_subject(sentences: Sequence[str], place: int) -> str:
    """The sentence; behind the one before it where it leans on that, and nothing where there is none."""
    sentence = sentences[place]
    if not leans_on_former(sentence):
        return sentence
    before = sentences[place - 1] if place else ""
    return f"{before} {sentence}" if 0 < len(before) <= LONGEST_ANTECEDENT else ""


def contradicts(later: SaidTurn, text: str, turn: SaidTurn, told: str) -> bool:
    """Whether the other side says that it is not so, of the same thing."""
    if later.role == turn.role or later.conversation_id != turn.conversation_id:
        return False
    if not (_CONTRADICTS.search(text) or has_negation(text) or status_of(text) == "failed"):
        return False
    shared = len(content_words(text) & content_words(told))
    return shared >= SHARED_WORDS or bool(specifics_of(text) & specifics_of(told))


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
