"""What was answered, with what it answers: "No." says nothing, and the proposal before it says the opposite.

A short answer is told together with the question, or with the proposal that it judges, as one piece.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.extraction.work_notes import NoteKind, is_instruction, kind_of, work_sentences
from memory.providers.sentences import is_question
from memory.retrieval.resume import SaidTurn
from memory.services.resume_pieces import content_words, specifics_of

FEW_WORDS = 4
"""Content words of a verdict, at most: what says more stands by itself."""
SHORT_ANSWER = 9
"""Content words of an answer of the agent that is told with its question, at most: a longer one says what it is about.
What a user answers decides, however long."""
LONGEST_ASKED = 220
SPEAKERS = frozenset({"user", "assistant"})

_ASSENT = re.compile(
    r"(?:yes|yeah|yep|yup|sure|ok(?:ay)?|agreed?|fine|good|great|perfect|nice|exactly|correct|right|deal|approved|"
    r"please do|absolutely|of course|definitely|do (?:that|it|so)|go (?:ahead|for it|on)|(?:i )?like (?:it|that)|"
    r"sounds|works|makes sense|that works|let's (?:do|go)|why not)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:(?:ok(?:ay)?|well|hmm?|then|so|oh)[,.]? )*(?:no|nope|nah|not|never|don'?t|do not|scratch|skip|forget|leave it|"
    r"rather not|better not|drop|stop|too|out of|absolutely not)\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(
    r"\b(?:i'd|i would|we'd|we could|we can|we should|could|would|should|suggest\w*|propos\w*|recommend\w*|option|idea|"
    r"shall|my (?:plan|take)|how about|what about)\b",
    re.IGNORECASE,
)

_WHY = re.compile(r"\b(?:why|how come|what(?: has|'s| is)? (?:chang|happen|caus|went|wrong|broke)\w*)\b", re.IGNORECASE)
"""Whoever answers that has found something out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An answer with what it answers: `answer` and `answered` as they stand in the two turns, `asked` as it is told."""

    asked: str
    answer: str
    note: NoteKind | None
    answered: str


def exchanges(turns: Sequence[SaidTurn]) -> Iterator[tuple[int, int, Exchange]]:
    """The places of the turn that answers and of the one that it answers, and what was said."""
    last: tuple[int, list[str]] | None = None
    for place, turn in enumerate(turns):
        if turn.role not in SPEAKERS:
            continue
        sentences = work_sentences(turn.text)
        if last is not None and is_reply(turns[last[0]], turn) and (found := pair(last[1], sentences, turn.role)):
            yield place, last[0], found
        last = (place, sentences)


def is_reply(before: SaidTurn, turn: SaidTurn) -> bool:
    return before.role != turn.role and before.conversation_id == turn.conversation_id


def pair(before: Sequence[str], sentences: Sequence[str], role: str) -> Exchange | None:
    """None where the answer stands by itself, or answers nothing."""
    answer = next(iter(sentences), "")
    size = len(content_words(answer))
    asked = next((each for each in reversed(before[-3:]) if is_question(each)), "")
    verdict = verdict_of(answer) if role == "user" else None
    if asked and (size or verdict) and (size <= SHORT_ANSWER or role == "user"):
        told = with_subject(asked, before)
    elif verdict is not None and size <= FEW_WORDS:
        asked = told = judged(before)
    else:
        return None
    if not content_words(told):
        return None
    note = verdict or kind_of(answer) or (NoteKind.RESULT if _WHY.search(told) else None)
    return Exchange(asked=told[:LONGEST_ASKED], answer=answer, note=note, answered=asked)


def verdict_of(answer: str) -> NoteKind | None:
    if _REFUSAL.match(answer):
        return NoteKind.REJECTION
    return NoteKind.DECISION if _ASSENT.match(answer) or is_instruction(answer) else None


def with_subject(asked: str, before: Sequence[str]) -> str:
    """The question; with the sentence before it where it says little ("Shall I?")."""
    place = list(before).index(asked)
    is_bare = len(content_words(asked)) < 3 and place > 0
    return f"{before[place - 1]} {asked}" if is_bare else asked


def judged(before: Sequence[str]) -> str:
    """The proposal: in the form of one, else what names most."""
    proposals = [each for each in before if _PROPOSAL.search(each)]
    return max(proposals or before, key=lambda each: len(specifics_of(each)), default="")
