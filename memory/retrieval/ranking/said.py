"""What a turn is like, read off its text in one look: whether it tells something, and of what sort that is.

Rules for English: in other languages they find little, and say nothing.
"""

import hashlib
import re
from dataclasses import dataclass

from memory.retrieval.rewriters.words import words

LONGEST_SAID = 600
"""Characters that are looked at."""
MOST = 2
"""Times and numbers that count."""
MOST_KEPT = 20_000
"""Texts whose reading a process remembers."""

TRANSCRIPT = re.compile(r"([^\W\d_][\w'’. -]{0,40}):\s")
"""Who speaks, where that stands before what is said."""

_SHARED = re.compile(r"\[[^\][]{1,1000}\]\s*\Z")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
# looked up word by word: patterns of so many alternatives took most of the time
_TIME_WORDS = words(
    "yesterday today tonight tomorrow ago last next week weekend month year years day days since morning evening night "
    "recently soon monday tuesday wednesday thursday friday saturday sunday january february march april june july "
    "august september october november december"
)
_DATE = re.compile(r"(?:19|20)\d\d|\d+(?:st|nd|rd|th)")
_NUMBER_WORDS = words("one two three four five six seven eight nine ten twice couple several dozen")
_HAPPENED = re.compile(
    r"\b(?:I|we|We)(?:['’]ve)?(?: just| recently| finally| also| even)? (?:\w{1,30}ed|went|got|had|was|were|made|took"
    r"|saw|did|found|came|bought|gave|met|won|wrote|read|been|started)\b"
)
_PLACES = re.compile(r"\b(?:in|at|to|from|near|around) (?:the |a |my |our )?[A-Z][a-z]")
_REACTION = re.compile(
    r"(?:wow|thanks|thank you|that['’]s|that sounds|sounds|cool|awesome|great|nice|congrats|congratulations|yeah|yep"
    r"|yes|definitely|totally|absolutely|a+w+|oh|glad|bye|take care|sure|i['’]m glad|so glad|i agree|right|exactly)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """`asks` is the share of its words that are in questions, `times` and `numbers` are counts up to 2.

    The rest is 0 or 1: whether the speaker tells what happened to them, names a place, begins with a reaction to what
    was said before.
    """

    asks: float
    times: float
    numbers: float
    happened: float
    places: float
    reacts: float


NOTHING_SAID = Said(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of what is no turn."""


_read: dict[bytes, Said] = {}
"""By digest, so that no text outlives its erasure here."""


def read_said(text: str) -> Said:
    """Of the text without who speaks and what is shared beside it (`[a photo of …]`)."""
    beginning = text[:LONGEST_SAID]
    digest = hashlib.blake2b(beginning.encode(errors="surrogatepass"), digest_size=16).digest()
    known = _read.get(digest)
    if known is None:
        if len(_read) >= MOST_KEPT:
            _read.clear()
        known = _read[digest] = read_beginning(beginning)
    return known


def read_beginning(said: str) -> Said:
    if match := TRANSCRIPT.match(said):
        said = said[match.end() :]
    said = _SHARED.sub("", said).strip()
    read = _WORD.findall(said.lower())
    return Said(
        share_asked(said),
        float(min(sum(map(is_time, read)), MOST)),
        float(min(sum(map(is_number, read)), MOST)),
        float(_HAPPENED.search(said) is not None),
        float(_PLACES.search(said) is not None),
        float(_REACTION.match(said) is not None),
    )


def is_time(word: str) -> bool:
    return word in _TIME_WORDS or (word[0].isdecimal() and _DATE.fullmatch(word) is not None)


def is_number(word: str) -> bool:
    return word.isdecimal() or word in _NUMBER_WORDS


def share_asked(said: str) -> float:
    if "?" not in said:
        return 0.0
    sentences = [(len(each.split()), each.endswith("?")) for each in _SENTENCE_ENDS.split(said)]
    return sum(count for count, is_question in sentences if is_question) / max(sum(count for count, _ in sentences), 1)
