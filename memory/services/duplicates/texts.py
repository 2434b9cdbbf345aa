"""Comparing texts: two that mean nearly the same may still differ in "5" and "6", or "is" and "is not".

Two texts are equivalent if they have the same words in the same order, apart from

- fillers, which one of them may leave out, and numbers in (English) words or digits;
- synonyms of a short list, each of which can replace the other in any sentence (`SYNONYMS`);
- an English -s (a job runs, the jobs run), if the text is recognizably English and no article precedes it.

Any other word makes a difference: a name in lower case, a negation by an ending, one of a pair of opposites. Never
exchanged nor left out are capitalized words, also at the beginning of a sentence; words in quotation marks; paths,
addresses, codes, signs and pictures: everything that is not letters alone. Where names cannot be recognized (a writer
who uses no capitals, a script without any) only fillers may differ; in long texts, whose vectors know their beginnings
only, nothing.

Names in lower case amid a text with capitals that are in the list of synonyms, or end in -s, are looked up among the
account's entities: `differing_words` returns the words to look up. A missed duplicate costs a line in a list; a wrong
merge costs a memory.

Equivalent texts have the same hash (`normalized_text_hash`), which leaves out what they may differ in, and more. It is
stored in the column `wording` next to the text, and finds the texts that are then compared. A change of these rules
needs a migration that empties the column: the job `deduplicate` fills it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise, zip_longest

from memory.extraction.survivors import facts_in
from memory.kinds import kinds_where, spec_of
from memory.retrieval.selectors import (
    MAX_NORMALIZED_CHARACTERS,
    QUESTION_MARKS,
    is_special_number,
    normalize_text,
    normalized_words,
)


def parse_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# words that equivalent texts may differ in, in lower case: a missing one keeps two equivalent texts apart, a wrong one
# merges two different ones
FILLERS = parse_words("a an the is are be am that which it its also just really very quite please so then")
"""Words that may be added or left out without changing what a text says; each can replace any other."""

UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINALS = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")
ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

NUMBERS = (
    {word: str(number) for number, word in enumerate((*UNITS, *TEENS))}
    | {word: str(10 * ten) for ten, word in enumerate(TENS, 2)}
    | {f"{word}-{unit}": str(10 * ten + of) for ten, word in enumerate(TENS, 2) for of, unit in enumerate(UNITS[:10])}
    | dict(zip(ORDINAL_WORDS, ORDINALS, strict=True))
)
"""English numbers in words, as digits: `three` and `3` are one number."""

UNCONTRACTED = {
    **dict.fromkeys(("cannot", "cant"), ("can", "not")),
    **{f"{verb}nt": (verb, "not") for verb in ("do", "does", "did", "is", "are", "was", "were", "has", "have", "had")},
    **{f"{verb}nt": (verb, "not") for verb in ("would", "could", "should", "must", "need")},
    "wont": ("will", "not"),
    "wo": ("will",),
    "ca": ("can",),
    "sha": ("shall",),
}
"""Rests of contractions, and contractions written without their apostrophe."""

TIMES = {
    ("every", "hour"): "hourly",
    ("every", "day"): "daily",
    ("every", "night"): "nightly",
    ("every", "week"): "weekly",
    ("every", "month"): "monthly",
    ("every", "year"): "yearly",
}
"""Two words, and one word that says the same."""

INTERCHANGEABLE = (
    # what is done, in each form
    "begin start",
    "begins starts",
    "began started",
    "buy purchase",
    "buys purchases",
    "bought purchased",
    "choose select",
    "chooses selects",
    "chose selected",
    "help assist",
    "helps assists",
    "helped assisted",
    "live reside",
    "lives resides",
    "lived resided",
    "need require",
    "needs requires",
    "needed required",
    # what there is
    "apartment flat",
    "bicycle bike",
    "car automobile",
    "cars automobiles",
    "configuration config",
    "documentation docs",
    "film movie",
    "films movies",
    "information info",
    "lawyer attorney",
    "mother mom mum",
    "father dad",
    "phone telephone",
    "photo photograph",
    "photos photographs",
    "plane airplane aeroplane",
    "refrigerator fridge",
    "repository repo",
    "repositories repos",
    "sofa couch",
    "television tv",
    "truck lorry",
    # how it is
    "beneath underneath",
    "big large",
    "bigger larger",
    "biggest largest",
    "almost nearly",
    "annually yearly",
    "approximately roughly",
    "entire whole",
    "ill sick",
    "often frequently",
    "ok okay",
    "perhaps maybe",
    "quickly rapidly",
    # how it is spelt
    "behaviour behavior",
    "cancelled canceled",
    "centre center",
    "colour color",
    "favourite favorite",
    "grey gray",
    "neighbour neighbor",
    "organisation organization",
)
SYNONYMS = {word: line for line in INTERCHANGEABLE for word in line.split()}
"""The line of synonyms of each word: they can replace each other in every sentence."""

ENGLISH = parse_words("the is and with this that")
"""Most English texts contain one of these words; no text does in a language where -s marks another person."""

DETERMINERS = parse_words("a an the this that its one my your his her our their")
"""Words that precede a noun in singular or plural: the server is not the servers."""

OWN_PLURALS = parse_words(
    "arm brain custom day good hour manner mean minute month new paper second short spirit time water week year"
)
"""Words that mean something else, or another amount, with an -s."""

MAX_COMPARED_CHARACTERS = 1_000
"""Longer texts are compared as a whole: embedders read about so many characters."""

TOKEN = re.compile(r"\S+")
FIRST_PERSON = re.compile(r"\W*I(?:['’]\w+)?\W*")
SENTENCE_ENDS = re.compile(r"[.!?:;…]\W*$")
QUOTES = "`\"“«'"
SIBILANT_ENDINGS = ("s", "x", "z", "ch", "sh")
VOWELS = "aeiou"
MIN_STEM_CHARACTERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """A text as it is compared. `fixed` are those of its `words` that the other text must have unchanged.

    `capitals` are words with a capital, `names` those not at the beginning of a sentence, `acronyms` those of capitals
    only.
    """

    words: Sequence[str]
    fixed: frozenset[str]
    capitals: frozenset[str]
    names: frozenset[str]
    acronyms: frozenset[str]
    special_numbers: str
    is_question: bool
    has_capitals: bool
    is_english: bool


def differing_words(one: str, other: str) -> frozenset[str] | None:
    """Return the words, except fillers, that only one text has, or None for texts that are not equivalent.

    The texts are equivalent only if none of these words is a name.
    """
    if one == other:
        return frozenset()
    if max(len(one), len(other)) > MAX_COMPARED_CHARACTERS:
        return frozenset() if normalize_text(one) == normalize_text(other) else None
    first, second = parse_text(one), parse_text(other)
    fillers = FILLERS - (first.names | second.names)
    if not words_match(first, second, fillers):
        return None
    different = frozenset((set(first.words) ^ set(second.words)) - fillers)
    if (first.is_question, first.special_numbers) != (second.is_question, second.special_numbers):
        return None
    if different & (first.fixed | second.fixed):
        return None
    if first.has_capitals and second.has_capitals:
        names_agree = first.names <= second.capitals and second.names <= first.capitals
    else:
        names_agree = not different and first.acronyms <= second.capitals and second.acronyms <= first.capitals
    return different if names_agree else None


@lru_cache(maxsize=4_096)
def parse_text(text: str) -> ParsedText:
    words = tuple(join_time_phrases(tuple(comparison_words(text))))
    tokens = list(find_capitalized(text))
    capitals = {word for word, is_first in tokens if not (is_first and word in FILLERS)}
    names = {word for word, is_first in tokens if not is_first}
    return ParsedText(
        words=words,
        fixed=frozenset({*find_fixed_words(text, words), *capitals}),
        capitals=frozenset(capitals),
        names=frozenset(names),
        acronyms=frozenset(find_acronyms(text)),
        special_numbers="".join(filter(is_special_number, text)),
        is_question=any(mark in text for mark in QUESTION_MARKS),
        has_capitals=bool(tokens),
        is_english=not ENGLISH.isdisjoint(words),
    )


def comparison_words(text: str) -> Iterator[str]:
    """Yield the words of a text without what writers differ in: case, punctuation, contractions, numbers in words."""
    for word in normalized_words(text):
        bare = word.removesuffix("'s") or word
        for part in UNCONTRACTED.get(bare, (bare,)):
            yield NUMBERS.get(part, part)


def join_time_phrases(words: Sequence[str]) -> Iterator[str]:
    """Replace "every day" by "daily", and similar phrases."""
    is_joined = False
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        phrase = TIMES.get((word, after))
        if not is_joined:
            yield phrase or word
        is_joined = phrase is not None and not is_joined


def find_capitalized(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words with a capital, and whether they begin a sentence. "I" is left out."""
    before = ""
    for token in TOKEN.finditer(text):
        is_first = (
            not before
            or SENTENCE_ENDS.search(before) is not None
            or "\n" in text[max(0, token.start() - 2) : token.start()]
        )
        before = token[0] if any(map(str.isalnum, token[0])) else f"{before}{token[0]}" if before else ""
        has_capital = any(sign.isupper() or sign.istitle() for sign in token[0])
        if has_capital and not FIRST_PERSON.fullmatch(token[0]):
            yield from ((word, is_first) for word in comparison_words(token[0]))


def find_acronyms(text: str) -> Iterator[str]:
    """Yield words of capitals only, unless the whole text is in capitals. "I'M" is left out."""
    if text.isupper():
        return
    for token in TOKEN.findall(text):
        if token.isupper() and sum(map(str.isalpha, token)) > 1 and not FIRST_PERSON.fullmatch(token):
            yield from comparison_words(token)


def find_fixed_words(text: str, words: Sequence[str]) -> Iterator[str]:
    """Yield words that are not lower-case letters alone, and quoted words."""
    yield from (word for word in words if not all(map(str.islower, word)))
    for fact in facts_in(text):
        if fact[0] in QUOTES:
            yield from comparison_words(fact)


def words_match(one: ParsedText, other: ParsedText, fillers: Collection[str]) -> bool:
    """Return True if the words of both, except fillers, are equal or may replace each other, in their order."""
    # the words that are no fillers, each after the word that precedes it in the text
    ours, theirs = (
        [(before, word) for before, word in pairwise(("", *each.words)) if word not in fillers] for each in (one, other)
    )
    knows_endings = one.is_english and other.is_english
    return len(ours) == len(theirs) and all(
        here == there
        or (here in SYNONYMS and SYNONYMS[here] == SYNONYMS.get(there))
        or (knows_endings and DETERMINERS.isdisjoint((before, before_there)) and differ_by_s_ending(here, there))
        for (before, here), (before_there, there) in zip(ours, theirs, strict=True)
    )


def differ_by_s_ending(one: str, other: str) -> bool:
    """Return True if one word is the other with an English -s.

    Other endings change the time (-ed) or make other words (-ing). A filler in this place is a name.
    """
    shorter, longer = sorted((one, other), key=len)
    is_excluded = len(shorter) < MIN_STEM_CHARACTERS or shorter in OWN_PLURALS or not FILLERS.isdisjoint((one, other))
    return not is_excluded and longer == add_s_ending(shorter)


def add_s_ending(word: str) -> str:
    if word.endswith(SIBILANT_ENDINGS):
        return f"{word}es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}s"


S_ENDING_LETTERS = "esiy"
"""Letters that an English -s adds or replaces."""


def deduplicated_kinds() -> frozenset[str]:
    """Return the kinds whose near-duplicates are merged: the column `wording` of their rows holds a hash."""
    return frozenset(map(str, kinds_where(lambda spec: spec.merging)))


def normalized_text_hash(kind: str, text: str) -> int | None:
    """Return a signed 64-bit hash that equivalent texts share, or None for a kind that is not deduplicated."""
    if spec_of(kind).merging is None:
        return None
    # texts of this length are equal only character by character
    words = (
        [text]
        if len(text) > MAX_NORMALIZED_CHARACTERS
        else [root_of(word) for word in join_time_phrases(tuple(comparison_words(text)))]
    )
    digest = blake2b("\0".join(word for word in words if word).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def root_of(word: str) -> str:
    """Return what a word shares with those that may replace it; empty for one that may be left out."""
    return "" if word in FILLERS else SYNONYM_ROOTS.get(strip_s_ending(word), strip_s_ending(word))


def strip_s_ending(word: str) -> str:
    return word.rstrip(S_ENDING_LETTERS) or word[0]


def build_synonym_roots() -> Mapping[str, str]:
    """Return one root for the stems of all synonyms in a line, and of lines that have a stem in common."""
    known: dict[str, str] = {}
    for word, line in SYNONYMS.items():
        one, other = known.setdefault(strip_s_ending(word), line), known.setdefault(line, line)
        known |= {each: other for each, root in known.items() if root == one}
    return known


SYNONYM_ROOTS = build_synonym_roots()
