"""The words and signs of a statement that a comparison reads: names, numbers, things, phrases of change."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.grounding import STEM_LETTERS
from memory.extraction.phrase_searches import make_search
from memory.extraction.terms import capitalized_names

_CHANGE_PHRASES = (
    # now
    (
        r"\b(?:now|nowadays|these days|by now|meanwhile|(?:from|as of|starting) (?:now|today|tomorrow|here|this \w+)"
        r"|effective|for good)\b"
    ),
    # no longer
    r"\b(?:any ?(?:more|longer)|no longer|never again|no more)\b",
    # something took the place of something else
    (
        r"\b(?:mov(?:ed|ing|e)|switch(?:ed|ing)?|chang(?:ed|es?|ing)|replac(?:ed|es?|ing)|swap(?:ped|ping)?"
        r"|renam(?:ed?|ing)|migrat(?:ed|ing)|converted|updat(?:ed?|ing)|(?:went|gone|took|takes?|taken) over"
        r"|(?:turn(?:ed)?|switched) (?:\w+ ){0,4}(?:down|up|off|on)|upgraded|downgraded|transferred|shift(?:ed)?"
        r"|in favou?r of|rather|instead)\b"
    ),
    # another time
    r"\b(?:postponed|push(?:ed)?|rescheduled|brought forward|delayed|slipped|extended|prolonged|put (?:off|back))\b",
    # an end
    (
        r"\b(?:quit|left|leaving|leaves|sold|stopped|gave (?:up|in)|given up|broke up|split up|divorced|retired|fired"
        r"|cancell?ed|dropped?|scrapped|deleted|removed?|closed|ditched|called (?:\w+ ){0,4}off|decommissioned"
        r"|(?:went|gone) (?:right )?off|is (?:dead|gone|out|off|done)|finished|cut|threw|thrown|got rid|ended"
        r"|expired|ran out|lost)\b|\bis over(?: [a-z]|[.,;:!?)]|$)"
    ),
    # a correction
    (
        r"\b(?:actually|correct(?:ed|ion)?|wrong|mistaken?|mixed up|misread|mis-?typed|typo|nonsense|meant|scratch that"
        r"|misspoke|strike|no wait|sorry|turn(?:s|ed) out|for real|is right|should be|ought to be)\b|, not \w+|\bnot \d"
    ),
    # another amount
    (
        r"\b(?:raised?|lower(?:ed)?|increased|decreased|reduced|bumped|(?:went|goes|go|came|come) (?:up|down)"
        r"|(?:up|down) to|another|one more|grew|doubled|halved)\b"
    ),
    # something new
    (
        r"\b(?:new|newly|just (?:got|started|began|bought|adopted|moved)|started|adopted|finally|recently|latest"
        r"|at last|since (?:yesterday|last|this|the|\w+day|\d)|again|last night|hired|promoted|joined)\b"
    ),
)
# for texts in lower case, here and below
_has_change = make_search("|".join(_CHANGE_PHRASES))
_is_plan = make_search(
    r"\b(?:plan(?:ning|s)?|want(?:s|ed)? to|would(?:n't)? (?:like|love)|i'd (?:like|love)|wish|dream|some ?day|one day"
    r"|maybe|might|hop(?:e|ing)|next year|if i|thinking (?:of|about)|considering|goal)\b"
)
_is_over = make_search(r"\bused to\b|\bwas\b|\bwere\b")
_is_negated = make_search(r"\b(?:not|no|never|none|nothing|without|dont|cant|wont|doesnt|didnt)\b|n't")
_DIGITS = r"\d[\d.,:]*"
_NUMBER_WORD = (
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    r"|sixty|hundred)\b"
)
NUMBER = re.compile(f"{_DIGITS}|{_NUMBER_WORD}", re.IGNORECASE)
_NUMBER_IN_DIGITS = re.compile(_DIGITS)
_has_number_word = make_search(f"(?i){_NUMBER_WORD}")
_CAPITALS = r"[A-Z](?<=\b[A-Z])(?<![.!?:] [A-Z])(?<!^[A-Z])[a-zA-Z'-]+"
"""A word with a capital letter that no sentence begins with. The letter is looked for first, which is faster."""
_JOINED_NAME = r"\b[A-Za-z]+[-_./][\w.-]+"
_NAME, _CAPITALIZED_NAME = re.compile(f"{_CAPITALS}|{_JOINED_NAME}"), re.compile(_CAPITALS)
_has_joined_name = make_search(_JOINED_NAME)
_CAPITALIZED = re.compile(r"[A-Z](?<=\b[A-Z])[a-zA-Z-]{2,}")
"""A name, or the first word of a sentence: that both statements have one says more the rarer it is."""
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+|,\s+(?:so|and|but|because|since)\s+|\s+-\s+")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+|\s+-\s+")
_JOINED = re.compile(r",?\s+(?:and|but|so)\s+")
_CLAUSE = re.compile(r"(?<=[.!?;:,])\s+|\n+|\s+-\s+|,?\s+(?:and|but|so)\s+")
_CALENDAR = frozenset((*WEEKDAYS, *(month.lower() for month in MONTHS)))
_THING = re.compile(r"\b(?:my|our|the|his|her|their)\s+(\w+)", re.IGNORECASE)
_QUALIFIED = re.compile(
    r"\b(?:my|our|the|his|her|their|your)\s+(?!(?:new|old|current|former|previous|first|second|last|next|other|same)\b)"
    r"(\w+)\s+(\w+)"
)
"""A noun and the word that tells it from others of its kind: "the staging database"."""
_WORD = re.compile(r"[a-z0-9][a-z0-9'-]+", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"\w+")
_WORDS_OF_PLACES = re.compile(r"\w(?:[\w'.:/-]*\w)?")
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """the a an and or but so to of in on at for with from by is are was were be been am do does did have has had
    i you he she it we they me him her us them my your his its our their this that these those not no yes what
    which who when where how why if then than as will would can could should may might just also too very
    really all any some there here up out about into over one get got go going
""",
    )
)
_SUBJECT_WORD = re.compile(r"[\w'-]+")
_SUBJECT_WORDS = 5
MIN_STATED = 2
"""Content words of a sentence that states something."""
_MAX_SENTENCES = 30
_LONG_CHARACTERS = 400
"""Longer texts count as being as long as this."""
_CORRECTING = re.compile(
    r"(?:(?:oh|ah|oops|hmm|hm|no|well|and|but|ok|okay)[,.!… ]+)*(?:actually|scratch that|strike that|correction"
    r"|i (?:meant|misspoke)|no,? wait|wait,? no|sorry,? (?:i meant|it'?s|that'?s)|(?:let'?s |please )?make (?:it|that)"
    r"|let me correct|my mistake|change of plans?)\b(?!.*\b(?:also|too|as well)\b)",
    re.IGNORECASE,
)
"""How people begin to correct what was said a moment ago."""


@dataclass(frozen=True, kw_only=True)
class StatementPart:
    """A sentence, or a part of one, of a longer text."""

    text: str
    content: frozenset[str]

    @cached_property
    def has_change(self) -> bool:
        """True if a phrase of change is in it. Of most parts nobody asks."""
        return _has_change(self.text.lower())


@dataclass(frozen=True, kw_only=True)
class StatementWords:
    """The words and signs of a text that features compare."""

    text: str
    content: frozenset[str]
    all: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    subject: frozenset[str]
    things: frozenset[str]
    qualified: frozenset[tuple[str, str]]
    capitalized: frozenset[str]
    length: float
    has_change: bool
    corrects: bool
    is_negated: bool
    is_question: bool
    is_plan: bool
    is_over: bool

    @cached_property
    def parts(self) -> tuple[StatementPart, ...]:
        parts = _SENTENCE_END.split(self.text)[:_MAX_SENTENCES]
        return tuple(StatementPart(text=part, content=_content_words(part)) for part in parts)

    @cached_property
    def in_order(self) -> Sequence[str]:
        """The words in lower case, with numbers, letters and names of files among them."""
        return _WORDS_OF_PLACES.findall(self.text.lower())

    @cached_property
    def distinct(self) -> frozenset[str]:
        """The words of `in_order`."""
        return frozenset(self.in_order)


@lru_cache(maxsize=4_096)
def read_words(text: str) -> StatementWords:
    words, lower = _read_all_words(text), text.lower()
    return StatementWords(
        text=text,
        content=_content_of(words),
        all=words,
        numbers=frozenset((NUMBER if _has_number_word(text) else _NUMBER_IN_DIGITS).findall(text)),
        names=frozenset(map(str.lower, (_NAME if _has_joined_name(text) else _CAPITALIZED_NAME).findall(text))),
        subject=_named_subject(text),
        things=frozenset(thing.lower() for thing in _THING.findall(text)),
        qualified=frozenset(
            (noun, qualifier)
            for qualifier, noun in _QUALIFIED.findall(lower)
            if STOP_WORDS.isdisjoint((noun, qualifier))
        ),
        capitalized=frozenset(name.lower() for name in _CAPITALIZED.findall(text)) - STOP_WORDS,
        length=math.log1p(min(len(text), _LONG_CHARACTERS)),
        has_change=_has_change(lower),
        corrects=_CORRECTING.match(text) is not None,
        is_negated=_is_negated(lower),
        is_question="?" in text,
        is_plan=_is_plan(lower),
        is_over=_is_over(lower),
    )


def _read_all_words(text: str) -> frozenset[str]:
    return frozenset(map(str.lower, _WORD.findall(text)))


def _content_of(words: frozenset[str]) -> frozenset[str]:
    return frozenset([word.rstrip("s") for word in words]) - STOP_WORDS


def _content_words(text: str) -> frozenset[str]:
    return _content_of(_read_all_words(text))


def part_about(other: StatementWords, words: StatementWords) -> StatementPart:
    """Return the sentence of a text that shares the most words with the other text, the first of several.

    People say a thing in passing: what else the message asks or tells has nothing to do with it.
    """
    return max(words.parts, key=lambda part: len(part.content & other.content))


def says_no_more(text: str, claims: Iterable[str]) -> bool:
    """Return True if each clause of a text that states something is, for the better half, in the claims.

    A remark behind a comma is a part of its clause: "I pay 540 pounds rent, bills included". A single statement says no
    more than what was learned from it, in whatever language the claims are.
    """
    sentences = _SENTENCE.split(text)[:_MAX_SENTENCES]
    stated = [clauses for clauses in map(_clauses, sentences) if clauses]
    known = frozenset(stem for claim in claims for stem in _stems(read_words(claim).content))
    clauses = [clause for each in stated for clause in each]
    is_other_language = known.isdisjoint(stem for clause in clauses for part in clause for stem in part)
    if len(stated) <= 1 and (sum(map(len, clauses)) <= 1 or is_other_language):
        return True
    return all(_is_known(clause, known) for clause in clauses)


def _is_known(parts: Sequence[frozenset[str]], known: frozenset[str]) -> bool:
    """Return True if half of each part of a clause is known, or more than half of all of it and all numbers."""
    every = frozenset().union(*parts)
    is_remark = 2 * len(every & known) > len(every) and all(stem.isalpha() for stem in every - known)
    return is_remark or all(2 * len(part & known) >= len(part) for part in parts)


def says_of_others(words: StatementWords, other: StatementWords) -> bool:
    """Return True if a clause of a text names whom the other text names, and another clause only names somebody else.

    >>> says_of_others(read_words("Ana is 6 and Leo is 3."), read_words("Ana is seven now."))
    True
    """
    names = capitalized_names(words.text)
    if not names:
        return False
    elsewhere = frozenset(_PLAIN_WORD.findall(other.text.lower()))
    is_shared = is_of_others = False
    for clause in _CLAUSE.split(words.text):
        named = {name for name in _CAPITALIZED.findall(clause) if name.lower() not in _CALENDAR}
        if any(name.lower() in elsewhere for name in named):
            is_shared = True
        elif not names.isdisjoint(named) and len({*_PLAIN_WORD.findall(clause.lower())} - STOP_WORDS) >= MIN_STATED:
            is_of_others = True
    return is_shared and is_of_others


def _clauses(sentence: str) -> list[list[frozenset[str]]]:
    """Return the clauses that state something and ask nothing, each as the stems of its parts between commas.

    A clause has two words of content at least; after "and", one does.
    """
    found = []
    for number, joined in enumerate(_JOINED.split(sentence)):
        parts = []
        for place, piece in enumerate(joined.split(", ")):
            least = 1 if number and not place else MIN_STATED
            stems = _stems(_content_words(piece))
            if len(stems) >= least and "?" not in piece:
                parts.append(stems)
        if parts:
            found.append(parts)
    return found


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:STEM_LETTERS] if word.isalpha() else word for word in words)


def _named_subject(text: str) -> frozenset[str]:
    """Return the capitalized words among the first five; they name what the statement is about."""
    first, *others = [found[0] for found in islice(_SUBJECT_WORD.finditer(text), _SUBJECT_WORDS)] or [""]
    named = {word.lower() for word in others if word[0].isupper() and word != "I" and not word.startswith("I'")}
    opens = first.lower() if first[:1].isupper() and len(first) > len("An") else ""
    return frozenset(named | ({opens} - {""} - STOP_WORDS))
