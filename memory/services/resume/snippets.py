"""Snippets: the sentences of turns, how much each weighs, and the section of the packet it belongs to.

Records and episodes say what a snippet is (`records`); of turns, the form of the sentence does
(`extraction.work_notes`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from uuid import UUID

from memory.extraction.exchanges import DIALOGUE_ROLES, Exchange, match_answer, split_answer_sentences
from memory.extraction.terms import capitalized_names, content_words, specific_terms
from memory.extraction.work_notes import (
    NoteKind,
    depends_on_previous,
    is_departure,
    is_errand,
    is_instruction,
    is_still_open,
    kind_of,
    strip_opener,
    work_sentences,
)
from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.resume import ResumedMemory, ResumedTurn
from memory.services.prompt_context.quoting import PLAIN_NAME, format_label
from memory.services.resume.given import gives
from memory.services.resume.items import NOTES, PacketItem, PacketSection, Position, memory_fields, short_line
from memory.services.resume.settle import settles

MAX_SENTENCES = 24
"""Sentences of one text: the first half of these, and the last half."""
MIN_TURN_SENTENCES, MAX_TOTAL_SENTENCES = 4, 2_000
"""The least sentences of each turn, and the limit of all turns together, if these are many and long."""
FRESH_TURNS = 4
"""The last turns, whose exchange was broken off: their sentences weigh more."""

BASE_WEIGHTS: Mapping[NoteKind | None, float] = {
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
RECORDED_WEIGHT = 1.2
"""Added for what a slot or an episode records as such: it was written to be kept."""
SPECIFIC_WEIGHT, MAX_SPECIFICS_WEIGHT = 0.3, 1.2
NAME_WEIGHT, MAX_NAMES_WEIGHT = 0.2, 0.4
RELEVANCE_WEIGHT = 1.0
QUERY_RELEVANCE_WEIGHT = 4.0
"""Replaces RELEVANCE_WEIGHT for a query of the client's, whose relevance goes by score and not by rank."""
OFF_QUERY_SHARE = 0.4
"""Share of QUERY_RELEVANCE_WEIGHT for a sentence without a word of the query."""
GOAL_WEIGHT = 0.8
FRESH_WEIGHT = 0.8
RECENCY_WEIGHT = 0.5
LATE_WEIGHTS: Mapping[NoteKind | None, float] = {NoteKind.NEXT_STEP: 1.0, NoteKind.ERROR: 1.2, NoteKind.RESULT: 0.6}
"""Added in full to the latest only: later texts say what came of earlier steps, errors and results."""
ANSWER_WEIGHTS = {"": 1.0, "user": 0.4}
"""Weight of an answer by the role that asked: what the agent asks, the user decides."""
INSTRUCTION_WEIGHT = -0.5
"""Weight of an instruction, which may have been followed by now: the longer ago, the more likely."""
CLOSED_GOAL_WEIGHT = -0.8
REPEAT_WEIGHT = -2.0
"""Weight of a snippet that later ones repeat with other numbers."""
LAST_REQUEST_WEIGHT = 2.0
"""Added for what the user asked for last, which may not be done yet."""
MIN_CONTENT_WORDS = 3
"""Content words of a plain sentence that names nothing specific; one less in other notes."""
USER_WEIGHT = 0.4
TOOL_WEIGHT = -0.6

OPEN_NOTES = frozenset({NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.QUESTION_OPEN})
SPEAKER_LABELS = {role: f"{role}: " for role in ("user", "tool", "system", "developer")} | {"function": "tool: "}
"""Roles whose words are labelled; all others are the agent's."""

NOTE_LABELS = {NoteKind.REJECTION: "rejected: ", NoteKind.BLOCKER: "blocked by: ", NoteKind.CORRECTION: "corrected: "}

MAX_ANTECEDENT_CHARACTERS = 200
MAX_PATTERN_REPEATS = 3
MIN_PATTERN_WORDS = 3

NOTE_REASONS: Mapping[NoteKind | None, str] = {
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
MERGED_KINDS = frozenset({Kind.EPISODE, Kind.WORK_EPISODE})
"""Kinds whose texts hold what several authors said: orders in a line say nothing of the others."""
_POLITE = re.compile(r"^(?:can|could|would|will) you (?:please )?", re.IGNORECASE)
RECORDED_REASON = "recorded as such"
FRESH_REASON = "of the last exchange"
RELEVANT_REASON = "recalled for the question"
GOAL_REASON = "about an open goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceContext:
    """The facts that the weight of a sentence depends on besides the sentence.

    `goal_words` are those of open goals, `closed_words` those that only closed goals have. `repeated` are terms that
    more than one text names. `relevance` is that of recalled memories, from 0 to 1. `query_words` are those of the
    client's query, empty without one. `own_agent` is the agent that asks.
    """

    goal_words: frozenset[str] = frozenset()
    closed_words: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    relevance: Mapping[UUID, float] = field(default_factory=dict)
    query_words: frozenset[str] = frozenset()
    scores: Mapping[UUID, float] = field(default_factory=dict)
    reasons: Mapping[UUID, Sequence[str]] = field(default_factory=dict)
    own_agent: str = ""


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A sentence and what is known about it. `recency` is 1 for the latest of the lineage, 0 for the first."""

    source: ResumedMemory | Candidate
    text: str
    note: NoteKind | None
    position: Position
    recency: float = 0.0
    speaker: str = ""
    author: str = ""
    """The name of the speaker, or the agent that said or recorded it; empty if unknown."""
    label: str = ""
    is_recorded: bool = False
    is_fresh: bool = False
    answer: str = ""
    """The answer alone, if the text is a question with its answer."""
    is_instruction: bool = False
    is_of_closed_goal: bool = False
    is_repeat: bool = False
    is_last_request: bool = False

    @property
    def is_pending(self) -> bool:
        """True if it was recorded as open: it stays open until that is changed, however long ago it was."""
        return self.is_recorded and self.note in OPEN_NOTES

    @cached_property
    def words(self) -> frozenset[str]:
        return content_words(self.text)


def weigh_snippet(snippet: Snippet, context: SentenceContext) -> float:
    """Return how much the snippet matters to an agent that continues the work."""
    words = snippet.words
    if not words:
        return 0.0
    goal_share = len(words & context.goal_words) / len(words)
    terms = specific_terms(snippet.text)
    # a number that stands nowhere else, in a sentence that says nothing else, is a row of a table
    terms = terms if snippet.note or goal_share else terms & context.repeated
    is_of_closed = snippet.is_of_closed_goal or len(words & context.closed_words) > len(words) * goal_share
    recency = 1.0 if snippet.is_pending else snippet.recency
    return sum(
        (
            BASE_WEIGHTS[snippet.note],
            RECORDED_WEIGHT if snippet.is_recorded else 0.0,
            ANSWER_WEIGHTS[snippet.speaker] if snippet.answer else 0.0,
            INSTRUCTION_WEIGHT * (2 - snippet.recency) if snippet.is_instruction else 0.0,
            min(SPECIFIC_WEIGHT * len(terms), MAX_SPECIFICS_WEIGHT),
            min(NAME_WEIGHT * len(capitalized_names(snippet.text)), MAX_NAMES_WEIGHT),
            relevance_weight(snippet, context),
            GOAL_WEIGHT * goal_share,
            CLOSED_GOAL_WEIGHT if is_of_closed else 0.0,
            FRESH_WEIGHT if snippet.is_fresh and (snippet.note or terms) else 0.0,
            RECENCY_WEIGHT * recency,
            speaker_weight(snippet),
            LATE_WEIGHTS.get(snippet.note, 0.0) * recency**2,
            REPEAT_WEIGHT if snippet.is_repeat else 0.0,
            LAST_REQUEST_WEIGHT if snippet.is_last_request else 0.0,
        )
    )


def relevance_weight(snippet: Snippet, context: SentenceContext) -> float:
    """Return how well the snippet answers the query; each sentence of a long text by itself."""
    relevance = context.relevance.get(snippet.source.id, 0.0)
    if not context.query_words:
        return RELEVANCE_WEIGHT * relevance
    shared = min(1.0, 2 * len(snippet.words & context.query_words) / len(context.query_words))
    return QUERY_RELEVANCE_WEIGHT * relevance * (OFF_QUERY_SHARE + (1 - OFF_QUERY_SHARE) * shared)


def speaker_weight(snippet: Snippet) -> float:
    """Return more for what users say, twice that for their rules, and less for what tools print."""
    if snippet.speaker == "user":
        return USER_WEIGHT * (2 if snippet.note == NoteKind.CONSTRAINT else 1)
    return TOOL_WEIGHT if snippet.speaker else 0.0


def item_from_snippet(snippet: Snippet, context: SentenceContext) -> PacketItem:
    return PacketItem(
        section=section_of_snippet(snippet),
        item_type=snippet.note.value if snippet.note else "said",
        text=short_line(snippet.text),
        label=speaker_label(snippet, own_agent=context.own_agent) + snippet.label,
        weight=weigh_snippet(snippet, context),
        position=snippet.position,
        **memory_fields(snippet.source),
        source_text="" if snippet.source.kind in MERGED_KINDS else snippet.source.text,
        score=context.scores.get(snippet.source.id, 0.0),
        reasons=reasons_for_snippet(snippet, context),
        details={"source": snippet.source.kind.value},
        is_recorded=snippet.is_recorded,
        is_distinct=snippet.is_pending,
        speaker=snippet.speaker,
        answer=snippet.answer,
    )


def speaker_label(snippet: Snippet, *, own_agent: str) -> str:
    """Return who says it, as "user ana: "; nothing for the agent that asks, and for one without a name."""
    name = format_label(snippet.author, plain=PLAIN_NAME) if snippet.author else ""
    if not snippet.speaker:
        return f"assistant {name}: " if name and snippet.author != own_agent else ""
    return f"user {name}: " if name and snippet.speaker == "user" else SPEAKER_LABELS.get(snippet.speaker, "")


def section_of_snippet(snippet: Snippet) -> PacketSection:
    if snippet.note == NoteKind.CONSTRAINT:
        return PacketSection.CONSTRAINTS
    is_open = snippet.note in OPEN_NOTES and (
        snippet.is_recorded or snippet.is_fresh or snippet.note == NoteKind.BLOCKER or is_still_open(snippet.text)
    )
    return PacketSection.OPEN_ENDS if is_open else PacketSection.EVIDENCE


def reasons_for_snippet(snippet: Snippet, context: SentenceContext) -> list[str]:
    reasons = [
        NOTE_REASONS.get(snippet.note, ""),
        RECORDED_REASON if snippet.is_recorded else "",
        FRESH_REASON if snippet.is_fresh else "",
        *context.reasons.get(snippet.source.id, ()),
        RELEVANT_REASON if snippet.source.id in context.relevance else "",
        GOAL_REASON if snippet.words & context.goal_words else "",
    ]
    return list(dict.fromkeys(filter(None, reasons)))


def snippets_of_turns(turns: Sequence[ResumedTurn]) -> Iterator[Snippet]:
    """Return the sentences of the turns, short answers with what they answer, without questions that were answered."""
    last_by_role = {turn.role: index for index, turn in enumerate(turns)}
    pairs = list(pair_turns(turns))
    paired = {(index, strip_opener(pair.answer)) for index, _, pair in pairs}
    paired |= {(asked, pair.answered) for _, asked, pair in pairs}
    for index, asked, pair in pairs:
        named = format_label(turns[index].name, plain=PLAIN_NAME) if turns[index].name else ""
        text = f"{pair.asked} {f'{turns[index].role} {named}'.rstrip()}: {pair.answer}"
        snippet = snippet_of_turn(turns, index, text, pair.note, number=-1)
        speaker = "user" if turns[asked].role == "user" else ""
        yield replace(snippet, speaker=speaker, author=author_of_turn(turns[asked]), answer=pair.answer)
    requested = find_last_request(turns)
    for index, turn in enumerate(turns):
        is_answered = any(last > index for role, last in last_by_role.items() if role != turn.role)
        max_sentences = min(MAX_SENTENCES, max(MIN_TURN_SENTENCES, MAX_TOTAL_SENTENCES // len(turns)))
        sentences = bounded_sentences(turn.text, max_sentences)
        for number, (before, sentence) in enumerate(pairwise(["", *sentences])):
            note = note_kind_by_role(turn.role, sentence)
            is_last_request = (index, sentence) == requested
            text = (note and prepend_antecedent(sentence, before)) or sentence
            judged = text if note in OPEN_NOTES else sentence
            if (index, sentence) in paired or (is_uninformative(judged, note) and not is_last_request):
                continue
            if note == NoteKind.QUESTION_OPEN and is_answered:
                if not is_last_request:
                    continue
                note, text = None, sentence
            snippet = snippet_of_turn(turns, index, sentence, note, number=number)
            yield replace(snippet, text=text, is_last_request=is_last_request)


def find_last_request(turns: Sequence[ResumedTurn]) -> tuple[int, str] | None:
    """Return the user's last request, "Fix the lexer" or "Can you fix the lexer?", and the index of its turn."""
    for index in reversed(range(len(turns))):
        for sentence in reversed(bounded_sentences(turns[index].text) if turns[index].role == "user" else ()):
            bare = _POLITE.sub("", sentence)
            if is_instruction(bare.rstrip("? ") if bare != sentence else sentence) and content_words(sentence):
                return index, sentence
    return None


def items_of_turns(turns: Sequence[ResumedTurn], context: SentenceContext) -> list[PacketItem]:
    """Return an item for each sentence of the turns."""
    return [item_from_snippet(snippet, context) for snippet in snippets_of_turns(turns)]


def pair_turns(turns: Sequence[ResumedTurn]) -> Iterator[tuple[int, int, Exchange]]:
    """Return the index of each turn that answers, the index of the turn it answers, and the exchange."""
    last: tuple[int, list[str]] | None = None
    for index, turn in enumerate(turns):
        if turn.role not in DIALOGUE_ROLES:
            continue
        sentences = split_answer_sentences(turn.text)
        before = turns[last[0]] if last else turn
        is_reply = before.role != turn.role and before.conversation_id == turn.conversation_id
        if last is not None and is_reply and (exchange := match_answer(last[1], sentences, turn.role)):
            yield index, last[0], exchange
        last = (index, sentences)


def snippet_of_turn(
    turns: Sequence[ResumedTurn], index: int, text: str, note: NoteKind | None, *, number: int
) -> Snippet:
    turn = turns[index]
    return Snippet(
        source=turn,
        text=text,
        note=note,
        position=(NOTES, turn.event_time, turn.index, number),
        recency=(index + 1) / len(turns),
        speaker=turn.role if turn.role != "assistant" else "",
        author=author_of_turn(turn),
        is_fresh=index >= len(turns) - FRESH_TURNS,
        is_instruction=turn.role == "user" and kind_of(text) != note and note == NoteKind.DECISION,
    )


def author_of_turn(turn: ResumedTurn) -> str:
    return turn.name or (turn.agent_id if turn.role == "assistant" else "")


def prepend_antecedent(sentence: str, before: str) -> str:
    """Return the sentence, after the one before it if it begins with a pronoun that stands for something in that.

    Empty if there is none before it, or a very long one.
    """
    if not depends_on_previous(sentence):
        return sentence
    return f"{before} {sentence}" if 0 < len(before) <= MAX_ANTECEDENT_CHARACTERS else ""


def note_kind_by_role(role: str, sentence: str) -> NoteKind | None:
    """Return what a sentence is when this role says it: tools state results and errors, users give instructions."""
    note = kind_of(sentence)
    if role in ("tool", "function"):
        return note if note in (NoteKind.RESULT, NoteKind.ERROR) else None
    is_user_instruction = (
        role == "user" and note in (None, NoteKind.RESULT, NoteKind.NEXT_STEP) and is_instruction(sentence)
    )
    return NoteKind.DECISION if is_user_instruction and not is_errand(sentence) else note


def is_uninformative(sentence: str, note: NoteKind | None) -> bool:
    """Return True for a departure, and for a sentence of few content words that names nothing specific.

    One word is enough for a sentence that says that something is open: "Compression is still to be done."
    """
    if is_departure(sentence):
        return True
    if note in (None, NoteKind.RESULT) and (settles(sentence) or gives(sentence)):
        return False
    if note == NoteKind.NEXT_STEP and is_still_open(sentence):
        return not content_words(sentence)
    min_words = MIN_CONTENT_WORDS if note in (None, NoteKind.NEXT_STEP) else MIN_CONTENT_WORDS - 1
    return len(content_words(sentence)) < min_words and not specific_terms(sentence)


def bounded_sentences(text: str, max_sentences: int = MAX_SENTENCES) -> list[str]:
    """Return the sentences of a text; of too many the first and the last ones."""
    sentences, half = work_sentences(text), max_sentences // 2
    return sentences if len(sentences) <= max_sentences else [*sentences[:half], *sentences[-half:]]


def mark_repeats(snippets: Sequence[Snippet]) -> Iterator[Snippet]:
    """Return the snippets, latest first; of those that differ only in numbers, all but the latest few are repeats."""
    seen: Counter[tuple[object, ...]] = Counter()
    for snippet in sorted(snippets, key=lambda each: each.position, reverse=True):
        pattern = frozenset(word for word in snippet.words if word.isalpha())
        has_numbers = MIN_PATTERN_WORDS <= len(pattern) < len(snippet.words)
        is_pattern = has_numbers and not snippet.is_pending
        key = (snippet.note, snippet.speaker, snippet.label, pattern)
        seen[key] += is_pattern
        yield replace(snippet, is_repeat=is_pattern and seen[key] > MAX_PATTERN_REPEATS)
