"""What a packet that resumes work is made of: pieces, each a line, with what it weighs and why it is there.

How much a piece weighs says who comes first when there is no room for all: goals and what came last before what was
said, decisions and rules before results, what names things before what does not.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

from memory.extraction.survivors import has_negation
from memory.models import Kind
from memory.providers.sentences import tokenize

LONGEST_PIECE = 500
"""Characters of a piece's text."""
CUT = " …"
STEM_LETTERS = 6
SHORTEST_WORD = 3
"""Letters: shorter words say too little to tell two pieces apart."""

# what English sentences are held together by
STOP_WORDS = frozenset(
    (
        *("the", "and", "for", "but", "not", "with", "that", "this", "these", "those", "there", "then", "than", "are"),
        *("was", "were", "has", "have", "had", "will", "would", "can", "could", "should", "may", "might", "must"),
        *("you", "your", "our", "their", "they", "them", "she", "her", "his", "him", "its", "it's", "who", "what"),
        *("when", "where", "which", "why", "how", "from", "into", "onto", "over", "about", "also", "just", "now"),
        *("all", "any", "some", "each", "let", "let's", "get", "got", "going", "okay", "yes", "did", "does", "done"),
        *("i'll", "we'll", "i'm", "we're", "that's", "don't", "didn't", "can't", "won't", "isn't", "i've", "we've"),
        *("been", "being", "one", "out", "too", "very", "well", "still", "because", "only", "here", "more", "most"),
        "please",
    )
)
# what has a digit, a sign inside, or capitals where words have none: numbers, ids, paths, versions, sums, codes. Looked
# for in one bounded word after the other: a pattern that looks for the digit itself takes the square of a long text
_QUOTED = re.compile(r"`([^`]{1,80})`")
_UNBROKEN = re.compile(r"[^\s,;()\[\]{}\"“”]+")
_DIGIT = re.compile(r"\d")
_SIGNED = re.compile(r"\b\w+(?:[_/\\@:#.-]\w+)+|\b[A-Z]{2,}\b|\b[a-z]+[A-Z]\w*")
LONGEST_NAMED = 200
"""Characters of a word that names something; of a longer one the first are compared."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][a-zà-öø-ÿ]+")
_CAPITAL = re.compile(r"\b[^\W\d_a-zß-öø-ÿ][^\W\d_]+")
_AROUND = ".,;:!?…\"'`“”‘’()[]{}<>"


Place = tuple[int, datetime, int, int]
"""Where a piece stands in its section: among which sort (GIVEN, KNOWN, NOTES), of what time, and two numbers."""
GIVEN, KNOWN, NOTES = range(3)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Section(StrEnum):
    """The parts of a packet, in their order."""

    GOALS = "goals"
    LAST_OUTCOME = "last_outcome"
    OPEN_ENDS = "open_ends"
    CONSTRAINTS = "constraints"
    EVIDENCE = "evidence"
    ARTIFACTS = "artifacts"
    STRATEGIES = "strategies"
    REPLAY = "replay"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One line of a packet. `says` is what it is to the work, `facts` what the JSON tells of it besides the text.

    `label` stands before the text where that alone would not be understood. Pieces of a section stand in the order of
    `place`.
    """

    section: Section
    says: str
    text: str
    weight: float
    place: Place
    label: str = ""
    id: UUID | None = None
    kind: Kind | None = None
    channel: str = ""
    conversation_id: str = ""
    event_time: datetime | None = None
    score: float = 0.0
    reasons: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_first: bool = False
    """Whether it goes in before all that is not."""
    below: UUID | None = None
    """The piece without which it is not told."""
    is_apart: bool = False
    """Whether it is told although something told says the same, if not in the same words."""
    is_recorded: bool = False
    by: str = ""
    """Who says it, where that is not the agent: a role."""

    @property
    def item_key(self) -> str:
        """Its memory's name in the injection ledger; empty for what is no memory."""
        return f"{self.kind.value}:{self.id}" if self.kind else ""

    @cached_property
    def words(self) -> frozenset[str]:
        return content_words(self.text)

    @cached_property
    def tokens(self) -> frozenset[str]:
        return tokens_of(self.text)

    @cached_property
    def specifics(self) -> frozenset[str]:
        return specifics_of(self.text)

    @cached_property
    def named(self) -> frozenset[str]:
        return capitalised(self.text)

    @cached_property
    def is_negated(self) -> bool:
        return has_negation(self.text)

    @cached_property
    def plain_text(self) -> str:
        """Its words without what stands between them, a blank before and after each."""
        return f" {' '.join(tokenize(self.text))} "


def content_words(text: str) -> frozenset[str]:
    """What texts are compared by: beginnings of words that say something, and all numbers.

    >>> sorted(content_words("The pumps are pumping at 3 bar"))
    ['3', 'bar', 'pump', 'pumps']
    """
    words = {word for word in tokenize(text) if word.isdecimal() or len(word) >= SHORTEST_WORD}
    return frozenset(stem_of(word) for word in words - STOP_WORDS)


def stem_of(word: str) -> str:
    for ending in ("ing", "ed", "es"):
        if word.endswith(ending) and len(word) > len(ending) + SHORTEST_WORD:
            return word.removesuffix(ending)[:STEM_LETTERS]
    return word[:STEM_LETTERS]


def specifics_of(text: str) -> frozenset[str]:
    """What a text names that nothing else stands for: numbers, identifiers, paths, versions, sums, codes."""
    quoted = _QUOTED.findall(text)
    words = (match.group()[:LONGEST_NAMED] for match in _UNBROKEN.finditer(_QUOTED.sub(" ", text)))
    found = [*quoted, *(each for word in words for each in ([word] if _DIGIT.search(word) else _SIGNED.findall(word)))]
    return frozenset(bare for each in found if (bare := each.strip(_AROUND).casefold()))


def repeated_specifics(texts: Sequence[str]) -> frozenset[str]:
    """What more than one of the texts names."""
    counts = Counter(each for text in texts for each in specifics_of(text))
    return frozenset(each for each, count in counts.items() if count > 1)


def names_in(text: str) -> frozenset[str]:
    """Words with a capital where no sentence begins."""
    return frozenset(match.group() for match in _NAME.finditer(text))


def capitalised(text: str) -> frozenset[str]:
    """Beginnings of the words with a capital that say something, those that begin a sentence among them.

    >>> sorted(capitalised("The copy goes to Berta"))
    ['berta']
    """
    words = {word.casefold() for word in _CAPITAL.findall(text) if len(word) >= SHORTEST_WORD}
    inside = {name.casefold() for name in names_in(text)}
    return frozenset(stem_of(word) for word in (words | inside) - STOP_WORDS)


def tokens_of(text: str) -> frozenset[str]:
    """Content words, and what is named."""
    return content_words(text) | specifics_of(text) | {name.casefold()[:STEM_LETTERS] for name in names_in(f"x {text}")}


def short_text(text: str, longest: int = LONGEST_PIECE) -> str:
    """At most so many characters, cut at the end of a word where there is one."""
    if len(text) <= longest:
        return text
    head = text[: longest - len(CUT)]
    return (head.rpartition(" ")[0] or head) + CUT
