"""What was said, as pieces of a packet: sentences of turns, what each of them weighs, and in which section it stands.

Records and episodes say what they are (`resume_records`, `resume_episodes`); of turns, and where nothing else was
recorded, the form of a sentence does (`extraction.work_notes`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from uuid import UUID

from memory.extraction.work_notes import (
    NoteKind,
    bare_sentence,
    is_instruction,
    kind_of,
    leans_on_former,
    work_sentences,
)
from memory.retrieval.candidates import Candidate
from memory.retrieval.resume import Remembered, SaidTurn
from memory.services.prompt_context.fence import one_line
from memory.services.resume.exchanges import Exchange, exchanges
from memory.services.resume.pieces import (
    NOTES,
    Piece,
    Place,
    Section,
    content_words,
    names_in,
    short_text,
    specifics_of,
)

MOST_SENTENCES = 24
"""Of one text: the first half of these, and the last half."""
FEWEST_SENTENCES, MOST_OF_ALL = 4, 2_000
"""Of all turns together, where they are many and long: of each so many at least."""
FRESH_TURNS = 4
"""The exchange that was broken off: its sentences weigh more."""

BASE: Mapping[NoteKind | None, float] = {
    NoteKind.DECISION: 2.2,
    NoteKind.CORRECTION: 2.4,
    NoteKind.REJECTION: 2.1,
    NoteKind.CONSTRAINT: 2.3,
    NoteKind.BLOCKER: 2.0,
    NoteKind.ERROR: 1.5,
    NoteKind.RESULT: 1.5,
    NoteKind.NEXT_STEP: 1.0,
    NoteKind.QUESTION_OPEN: 0.3,
    None: 0.6,
}
STRUCTURED = 1.2
"""What a slot or an episode says is so weighs so much more: it was written to be kept."""
A_SPECIFIC, MOST_FOR_SPECIFICS = 0.3, 1.2
A_NAME, MOST_FOR_NAMES = 0.2, 0.4
FOR_RELEVANCE = 1.0
FOR_ASKED = 4.0
"""As the former, of what answers a question that somebody asked: by its score, not by its rank."""
BESIDE_THE_QUESTION = 0.4
"""What a sentence has of that without a word of the question."""
FOR_GOALS = 0.8
FOR_FRESHNESS = 0.8
FOR_RECENCY = 0.5
FOR_LATE: Mapping[NoteKind | None, float] = {NoteKind.NEXT_STEP: 1.0, NoteKind.ERROR: 1.2, NoteKind.RESULT: 0.6}
"""Of the last of the lineage: what steps, errors and results of long ago came to is told by what came after them."""
FOR_ANSWERS = {"": 1.0, "user": 0.4}
"""By who asked: what the agent asks, the user decides."""
FOR_INSTRUCTIONS = -0.5
"""What somebody is told to do may be done since, the sooner the longer ago that was."""
OF_CLOSED_GOAL = -0.8
OF_A_PATTERN = -2.0
"""What says again, with other numbers, what later ones say."""
FEWEST_WORDS = 3
"""Content words of a plain sentence that names nothing, one less in other notes: fewer say nothing by themselves."""
BY_USER = 0.4
BY_TOOL = -0.6

DECIDED = frozenset({NoteKind.DECISION, NoteKind.REJECTION, NoteKind.CORRECTION})
OPEN = frozenset({NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.QUESTION_OPEN})
SPEAKERS = {
    "user": "user: ",
    "tool": "tool: ",
    "function": "tool: ",
    "system": "system: ",
    "developer": "developer: ",
}
"""Whose words are told as such; all else is the agent's own."""

LABELS = {NoteKind.REJECTION: "rejected: ", NoteKind.BLOCKER: "blocked by: ", NoteKind.CORRECTION: "corrected: "}

LONGEST_ANTECEDENT = 200

WHY: Mapping[NoteKind | None, str] = {
    NoteKind.DECISION: "a decision",
    NoteKind.CORRECTION: "corrects what was said before",
    NoteKind.REJECTION: "a rejected option",
    NoteKind.CONSTRAINT: "a rule to keep to",
    NoteKind.BLOCKER: "in the way",
    NoteKind.ERROR: "an error",
    NoteKind.RESULT: "a result",
    NoteKind.NEXT_STEP: "a next step",
    NoteKind.QUESTION_OPEN: "a question without an answer",
}
IS_RECORDED = "recorded as such"
IS_FRESH = "of the last exchange"
IS_RELEVANT = "recalled for the question"
IS_OF_GOALS = "about an open goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearing:
    """What makes a sentence matter now: the words of open goals, and how well recall ranked each memory (0 to 1)."""

    goal_words: frozenset[str] = frozenset()
    closed_words: frozenset[str] = frozenset()
    """Of goals that are closed, which no open one has."""
    repeated: frozenset[str] = frozenset()
    """What more than one text names."""
    relevance: Mapping[UUID, float] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    """The words of the question; none where nobody asked one."""
    scores: Mapping[UUID, float] = field(default_factory=dict)
    why: Mapping[UUID, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Said:
    """A sentence with what is known of where it stands. `recency` is 1 for the last of the lineage, 0 for the first."""

    of: Remembered | Candidate
    text: str
    note: NoteKind | None
    place: Place
    recency: float = 0.0
    by: str = ""
    label: str = ""
    is_recorded: bool = False
    is_fresh: bool = False
    is_answer: bool = False
    is_instruction: bool = False
    is_of_closed: bool = False
    is_repeat: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether it was recorded as open: it is until that is changed, however long ago that was."""
        return self.is_recorded and self.note in OPEN

    @cached_property
    def words(self) -> frozenset[str]:
        return content_words(self.text)


def weigh(said: Said, bearing: Bearing) -> float:
    """How much it matters to who goes on with the work."""
    words = said.words
    if not words:
        return 0.0
    shared = len(words & bearing.goal_words) / len(words)
    told_of = specifics_of(said.text)
    # a number that stands nowhere else, in a sentence that says nothing else, is a row of a table
    counted = told_of if said.note or shared else told_of & bearing.repeated
    bears = bool(said.note or counted)
    recency = 1.0 if said.is_pending else said.recency
    return sum(
        (
            BASE[said.note],
            STRUCTURED if said.is_recorded else 0.0,
            FOR_ANSWERS[said.by] if said.is_answer else 0.0,
            FOR_INSTRUCTIONS * (2 - said.recency) if said.is_instruction else 0.0,
            min(A_SPECIFIC * len(counted), MOST_FOR_SPECIFICS),
            min(A_NAME * len(names_in(said.text)), MOST_FOR_NAMES),
            for_relevance(said, bearing),
            FOR_GOALS * shared,
            OF_CLOSED_GOAL if said.is_of_closed or len(words & bearing.closed_words) > len(words) * shared else 0.0,
            FOR_FRESHNESS if said.is_fresh and bears else 0.0,
            FOR_RECENCY * recency,
            for_speaker(said),
            FOR_LATE.get(said.note, 0.0) * recency**2,
            OF_A_PATTERN if said.is_repeat else 0.0,
        )
    )


def for_relevance(said: Said, bearing: Bearing) -> float:
    """How well it answers; of a long text each sentence by itself."""
    relevance = bearing.relevance.get(said.of.id, 0.0)
    if not bearing.asked:
        return FOR_RELEVANCE * relevance
    shared = min(1.0, 2 * len(said.words & bearing.asked) / len(bearing.asked))
    return FOR_ASKED * relevance * (BESIDE_THE_QUESTION + (1 - BESIDE_THE_QUESTION) * shared)


def for_speaker(said: Said) -> float:
    """What users say counts more, and twice as much where it is a rule; what tools print counts less."""
    if said.by == "user":
        return BY_USER * (2 if said.note == NoteKind.CONSTRAINT else 1)
    return BY_TOOL if said.by else 0.0


def piece_of(said: Said, bearing: Bearing) -> Piece:
    return Piece(
        section=section_of(said),
        says=said.note.value if said.note else "said",
        text=short_text(one_line(said.text)),
        label=SPEAKERS.get(said.by, "") + said.label,
        weight=weigh(said, bearing),
        place=said.place,
        id=said.of.id,
        kind=said.of.kind,
        channel=said.of.channel,
        conversation_id=said.of.conversation_id,
        event_time=said.of.event_time,
        score=bearing.scores.get(said.of.id, 0.0),
        reasons=tell_reasons(said, bearing),
        facts={"source": said.of.kind.value},
        is_recorded=said.is_recorded,
        is_apart=said.is_pending,
        by=said.by,
    )


def section_of(said: Said) -> Section:
    if said.note == NoteKind.CONSTRAINT:
        return Section.CONSTRAINTS
    is_open = said.note in OPEN and (said.is_recorded or said.is_fresh or said.note == NoteKind.BLOCKER)
    return Section.OPEN_ENDS if is_open else Section.EVIDENCE


def tell_reasons(said: Said, bearing: Bearing) -> list[str]:
    reasons = [
        WHY.get(said.note, ""),
        IS_RECORDED if said.is_recorded else "",
        IS_FRESH if said.is_fresh else "",
        *bearing.why.get(said.of.id, ()),
        IS_RELEVANT if said.of.id in bearing.relevance else "",
        IS_OF_GOALS if said.words & bearing.goal_words else "",
    ]
    return list(dict.fromkeys(filter(None, reasons)))


def notes_of_turns(turns: Sequence[SaidTurn]) -> Iterator[Said]:
    """The sentences of the turns, short answers with what they answer; no question that somebody answered."""
    last_by = {turn.role: place for place, turn in enumerate(turns)}
    paired = list(exchanges(turns))
    told_with = {(place, bare_sentence(pair.answer)) for place, _, pair in paired}
    told_with |= {(before, pair.answered) for _, before, pair in paired}
    yield from notes_of_exchanges(turns, paired)
    for place, turn in enumerate(turns):
        is_answered = any(at > place for role, at in last_by.items() if role != turn.role)
        sentences = sentences_of(turn.text, most=min(MOST_SENTENCES, max(FEWEST_SENTENCES, MOST_OF_ALL // len(turns))))
        for number, (before, sentence) in enumerate(pairwise(["", *sentences])):
            note = note_by(turn.role, sentence)
            if (place, sentence) in told_with or says_nothing(sentence, note):
                continue
            if note == NoteKind.QUESTION_OPEN and is_answered:
                continue
            said = said_in(turns, place, sentence, note, number=number)
            yield replace(said, text=with_antecedent(sentence, before, note))


def notes_of_exchanges(turns: Sequence[SaidTurn], paired: Sequence[tuple[int, int, Exchange]]) -> Iterator[Said]:
    for place, before, pair in paired:
        told = f"{pair.asked} {turns[place].role}: {pair.answer}"
        said = said_in(turns, place, told, pair.note, number=-1)
        yield replace(said, by=turns[before].role if turns[before].role == "user" else "", is_answer=True)


def said_in(turns: Sequence[SaidTurn], place: int, text: str, note: NoteKind | None, *, number: int) -> Said:
    turn = turns[place]
    return Said(
        of=turn,
        text=text,
        note=note,
        place=(NOTES, turn.event_time, turn.index, number),
        recency=(place + 1) / len(turns),
        by=turn.role if turn.role != "assistant" else "",
        is_fresh=place >= len(turns) - FRESH_TURNS,
        is_instruction=turn.role == "user" and kind_of(text) != note and note == NoteKind.DECISION,
    )


def with_antecedent(sentence: str, before: str, note: NoteKind | None) -> str:
    """A note that begins with a pronoun, with the sentence before it, which says what that stands for."""
    needs = note is not None and leans_on_former(sentence)
    return f"{before} {sentence}" if needs and before and len(before) <= LONGEST_ANTECEDENT else sentence


def note_by(role: str, sentence: str) -> NoteKind | None:
    """What a sentence is in that mouth: tools state results and errors, users may tell what to do."""
    note = kind_of(sentence)
    if role in ("tool", "function"):
        return note if note in (NoteKind.RESULT, NoteKind.ERROR) else None
    is_told = role == "user" and note in (None, NoteKind.RESULT, NoteKind.NEXT_STEP) and is_instruction(sentence)
    return NoteKind.DECISION if is_told else note


def says_nothing(sentence: str, note: NoteKind | None) -> bool:
    fewest = FEWEST_WORDS if note in (None, NoteKind.NEXT_STEP) else FEWEST_WORDS - 1
    return len(content_words(sentence)) < fewest and not specifics_of(sentence)


def sentences_of(text: str, *, most: int = MOST_SENTENCES) -> list[str]:
    found = work_sentences(text)
    return found if len(found) <= most else [*found[: most // 2], *found[-(most // 2) :]]
