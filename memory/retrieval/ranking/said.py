"""What a turn is like, read off its text in one look: whether it tells something, and of what sort that is.

Rules for English: in other languages they find little, and say nothing.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

LONGEST_SAID = 2_000
"""Characters that are looked at."""
MOST = 2
"""Times and numbers that count."""

TRANSCRIPT = re.compile(r"([^\W\d_][\w'’. -]{0,40}):\s")
"""Who speaks, where that stands before what is said."""

_SHARED = re.compile(r"\[[^\][]{1,1000}\]\s*\Z")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_TIMES = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|week|weekend|month|years?|days?|since|morning|evening|night"
    r"|recently|soon|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september"
    r"|october|november|december|(?:19|20)\d\d|\d+(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twice|couple|several|dozen)\b", re.IGNORECASE
)
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


def read_said(text: str) -> Said:
    """Of the text without who speaks and what is shared beside it (`[a photo of …]`)."""
    return read_beginning(text[:LONGEST_SAID])


@lru_cache(maxsize=4_096)
def read_beginning(said: str) -> Said:
    """What is kept of a long text is no more than what is looked at."""
    if match := TRANSCRIPT.match(said):
        said = said[match.end() :]
    said = _SHARED.sub("", said).strip()
    return Said(
        share_asked(said),
        float(min(len(_TIMES.findall(said)), MOST)),
        float(min(len(_NUMBERS.findall(said)), MOST)),
        float(_HAPPENED.search(said) is not None),
        float(_PLACES.search(said) is not None),
        float(_REACTION.match(said) is not None),
    )


def share_asked(said: str) -> float:
    if "?" not in said:
        return 0.0
    sentences = [(len(each.split()), each.endswith("?")) for each in _SENTENCE_ENDS.split(said)]
    return sum(count for count, is_question in sentences if is_question) / max(sum(count for count, _ in sentences), 1)
