"""What was answered, with what it answers: "No." says nothing, and the proposal before it says the opposite.

A short answer is told together with the question, or with the proposal that it judges, as one piece.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.extraction.work_notes import (
    LONGEST_SENTENCE,
    NoteKind,
    bare_sentence,
    is_instruction,
    kind_of,
    work_sentences,
)
from memory.providers.sentences import is_question, split_sentences
from memory.retrieval.resume import SaidTurn
from memory.services.resume.pieces import content_words, names_in, specifics_of

FEWEST_WORDS = 3
"""Content words of question and answer together, where they name nothing: "Coffee? Always." says nothing."""
FEW_WORDS = 4
"""Content words of a verdict, at most: what says more stands by itself."""
SHORT_ANSWER = 9
"""Content words of an answer of the agent that is told with its question, at most: a longer one says what it is about.
What a user answers decides, however long."""
LONGEST_ASKED = 220
SPEAKERS = frozenset({"user", "assistant"})

_ASSENT = re.compile(
    r"(?:yes|yeah|yep|yup|sure|ok(?:ay)?|agreed?|fine|exactly|correct|right|deal|approved|"
    r"please do|absolutely|of course|definitely|do (?:that|it|so)|go (?:ahead|for it|on)|(?:i )?like (?:it|that)|"
    r"sounds|works|makes sense|that works|let's (?:do|go)|why not|"
    r"(?:good|great|nice|perfect|fine|excellent) (?:idea|plan|choice|by me|with me|for me|enough))\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:(?:ok(?:ay)?|well|hmm?|then|so|oh)[,.]? )*(?:no|nope|nah|not|never|don'?t|do not|scratch|skip|forget|leave it|"
    r"rather not|better not|drop|stop|too|out of|absolutely not)\b",
    re.IGNORECASE,
)
# neither assent nor decision: praise, thanks, and how people part
_PLEASANTRY = re.compile(
    r"(?:(?:ok(?:ay)?|alright|well|and|no|oh),? )*(?:thanks|thank you|cheers|bye|goodbye|"
    r"good (?:night|morning|evening)|"
    r"see you|enjoy|welcome|you're welcome|have a (?:good|nice|great)|(?:be )?back (?:later|soon|tomorrow)|"
    r"talk (?:to you )?(?:later|soon|tomorrow)|later|(?:great|good|nice) (?:find|job|work|catch|one)|well done|"
    r"no (?:worries|problem))\b",
    re.IGNORECASE,
)
_PARTING = re.compile(
    r"\b(?:anything|something|what|who) else\b|\bhow (?:are|is it going|was your)\b|\bcan i (?:help|do)\b",
    re.IGNORECASE,
)
"""Asked to open or to close a talk: an answer says nothing of the work, or stands by itself."""
_OFFER = re.compile(
    r"\b(?:i'd|i would|we'd|i'll|i will|i(?:'m| am) going to|i can|i could|we could|we can|we should|shall (?:i|we)|"
    r"(?:should|may|can) (?:i|we)|let's|i (?:suggest|propose|recommend)|my (?:plan|take|suggestion|proposal)|"
    r"how about|what about|do you want)\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(r"\b(?:could|would|should|(?:an|another|one) (?:option|idea))\b", re.IGNORECASE)

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
        sentences = answering_sentences(turn.text)
        if last is not None and is_reply(turns[last[0]], turn) and (found := pair(last[1], sentences, turn.role)):
            yield place, last[0], found
        last = (place, sentences)


def answering_sentences(text: str) -> list[str]:
    """As `work_sentences`, but an answer that is nothing but an opener ("Yes.", "Sure, ...") is told with it."""
    sentences = work_sentences(text)
    first = next(iter(split_sentences(text[:LONGEST_SENTENCE])), "")
    is_verdict = len(content_words(first)) <= FEW_WORDS and says_yes_or_no(first)
    has_more = bool(bare_sentence(first))
    if not is_verdict or (not has_more and sentences and verdict_of(sentences[0])):
        return sentences
    return [" ".join(first.split()), *(sentences[1:] if has_more else sentences)]


def is_reply(before: SaidTurn, turn: SaidTurn) -> bool:
    return before.role != turn.role and before.conversation_id == turn.conversation_id


def pair(before: Sequence[str], sentences: Sequence[str], role: str) -> Exchange | None:
    """None where the answer stands by itself, or answers nothing."""
    answer = next(iter(sentences), "")
    size = len(content_words(answer))
    asked = next((each for each in reversed(before[-3:]) if is_question(each)), "")
    verdict = verdict_of(answer) if role == "user" else None
    if _PLEASANTRY.match(answer) and size <= FEW_WORDS:
        return None
    if asked and (size or says_yes_or_no(answer)) and (size <= SHORT_ANSWER or role == "user"):
        told = with_subject(asked, before)
        told = told if says_something(f"{told} {answer}") and not _PARTING.search(asked) else ""
    elif verdict is not None and size <= FEW_WORDS:
        asked = told = judged(before)
    else:
        return None
    if not content_words(told):
        return None
    note = verdict or kind_of(answer) or (NoteKind.RESULT if _WHY.search(told) else None)
    return Exchange(asked=told[:LONGEST_ASKED], answer=answer, note=note, answered=asked)


def says_something(told: str) -> bool:
    return len(content_words(told)) >= FEWEST_WORDS or bool(specifics_of(told) or names_in(told))


def says_yes_or_no(answer: str) -> bool:
    return _REFUSAL.match(answer) is not None or _ASSENT.match(answer) is not None


def verdict_of(answer: str) -> NoteKind | None:
    if _PLEASANTRY.match(answer) or is_question(answer):
        return None
    if _REFUSAL.match(answer):
        return NoteKind.REJECTION
    return NoteKind.DECISION if _ASSENT.match(answer) or is_instruction(answer) else None


def with_subject(asked: str, before: Sequence[str]) -> str:
    """The question; with the sentence before it where it says little ("Shall I?")."""
    place = list(before).index(asked)
    is_bare = len(content_words(asked)) < 3 and place > 0
    return f"{before[place - 1]} {asked}" if is_bare else asked


def judged(before: Sequence[str]) -> str:
    """What was proposed: the offer that names most, else such a sentence that says what could be; empty where none is.

    Of offers alike the last. What merely stands beside an offer is not judged, however much it names.
    """
    for form in (_OFFER, _PROPOSAL):
        proposals = [each for each in before if form.search(each)]
        if proposals:
            return max(reversed(proposals), key=lambda each: len(specifics_of(each)))
    return ""
