"""Exchanges: short answers with the question or proposal that they answer.

"No." says nothing by itself, and the proposal before it says the opposite: both make one note.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.extraction.terms import capitalized_names, content_words, specific_terms
from memory.extraction.work_notes import (
    MAX_SENTENCE_CHARACTERS,
    NoteKind,
    is_instruction,
    kind_of,
    strip_opener,
    work_sentences,
)
from memory.providers.sentences import is_question, split_sentences

MIN_CONTENT_WORDS = 3
"""Content words of question and answer together, if they name nothing: "Coffee? Always." says nothing."""
MAX_VERDICT_WORDS = 4
"""Content words of a verdict: a longer one stands by itself."""
MAX_ANSWER_WORDS = 9
"""Content words of an answer of the agent: a longer one says what it is about. A user's answer has no limit."""
MAX_ASKED_CHARACTERS = 220
DIALOGUE_ROLES = frozenset({"user", "assistant"})

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
# neither assent nor decision: praise, thanks and farewells
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
"""Questions that open or close a talk: an answer says nothing about the work, or stands by itself."""
_OFFER = re.compile(
    r"\b(?:i'd|i would|we'd|i'll|i will|i(?:'m| am) going to|i can|i could|we could|we can|we should|shall (?:i|we)|"
    r"(?:should|may|can) (?:i|we)|let's|i (?:suggest|propose|recommend)|my (?:plan|take|suggestion|proposal)|"
    r"how about|what about|do you want)\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(r"\b(?:could|would|should|(?:an|another|one) (?:option|idea))\b", re.IGNORECASE)

_WHY = re.compile(r"\b(?:why|how come|what(?: has|'s| is)? (?:chang|happen|caus|went|wrong|broke)\w*)\b", re.IGNORECASE)
"""Questions for a cause: the answer to one is a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An answer and what it answers: `answer` and `answered` as in the two turns, `asked` as it is to be shown."""

    asked: str
    answer: str
    note: NoteKind | None
    answered: str


def split_answer_sentences(text: str) -> list[str]:
    """Return `work_sentences`, keeping the opener of an answer that is nothing else ("Yes.", "Sure, ...")."""
    sentences = work_sentences(text)
    first = next(iter(split_sentences(text[:MAX_SENTENCE_CHARACTERS])), "")
    is_verdict = len(content_words(first)) <= MAX_VERDICT_WORDS and is_yes_or_no(first)
    has_more = bool(strip_opener(first))
    if not is_verdict or (not has_more and sentences and verdict_in_answer(sentences[0])):
        return sentences
    return [" ".join(first.split()), *(sentences[1:] if has_more else sentences)]


def match_answer(before: Sequence[str], sentences: Sequence[str], role: str) -> Exchange | None:
    """Return what the first of the sentences answers in the turn before; None if it stands by itself."""
    answer = next(iter(sentences), "")
    size = len(content_words(answer))
    answered = next((each for each in reversed(before[-3:]) if is_question(each)), "")
    verdict = verdict_in_answer(answer) if role == "user" else None
    if _PLEASANTRY.match(answer) and size <= MAX_VERDICT_WORDS:
        return None
    if answered and (size or is_yes_or_no(answer)) and (size <= MAX_ANSWER_WORDS or role == "user"):
        asked = prepend_context(answered, before)
        both = f"{asked} {answer}"
        is_informative = (
            len(content_words(both)) >= MIN_CONTENT_WORDS or specific_terms(both) or capitalized_names(both)
        )
        asked = asked if is_informative and not _PARTING.search(answered) else ""
    elif verdict is not None and size <= MAX_VERDICT_WORDS:
        asked = answered = find_proposal(before)
    else:
        return None
    if not content_words(asked):
        return None
    note = verdict or kind_of(answer) or (NoteKind.RESULT if _WHY.search(asked) else None)
    return Exchange(asked=asked[:MAX_ASKED_CHARACTERS], answer=answer, note=note, answered=answered)


def is_yes_or_no(answer: str) -> bool:
    return _REFUSAL.match(answer) is not None or _ASSENT.match(answer) is not None


def verdict_in_answer(answer: str) -> NoteKind | None:
    """Return REJECTION or DECISION for an answer that refuses or agrees; None for anything else."""
    if _PLEASANTRY.match(answer) or is_question(answer):
        return None
    if _REFUSAL.match(answer):
        return NoteKind.REJECTION
    return NoteKind.DECISION if _ASSENT.match(answer) or is_instruction(answer) else None


def prepend_context(asked: str, before: Sequence[str]) -> str:
    """Return the question, after the sentence before it if it says little by itself ("Shall I?")."""
    index = list(before).index(asked)
    is_bare = len(content_words(asked)) < 3 and index > 0
    return f"{before[index - 1]} {asked}" if is_bare else asked


def find_proposal(before: Sequence[str]) -> str:
    """Return the offer that names most, else a sentence that says what could be; empty if there is neither.

    Of equal ones, the last. A sentence next to an offer is no proposal, however much it names.
    """
    for form in (_OFFER, _PROPOSAL):
        proposals = [each for each in before if form.search(each)]
        if proposals:
            return max(reversed(proposals), key=lambda each: len(specific_terms(each)))
    return ""
