"""Whether two texts that mean nearly the same say the same: no measure of likeness tells 5 from 6, or is from is not.

Two say the same if they have the same words in the same order, but for

- fillers, which one may leave out, and numbers in (English) words or digits;
- synonyms of a short list, each of which may stand for the other in any sentence (`duplicate_words`);
- an English -s (a job runs, the jobs run), where the text is seen to be English and no article goes before.

So any other word tells two apart: a name in small letters, a negation by an ending, one of a pair of opposites. Never
exchanged, nor left out, are words with a capital, at the beginning of a sentence as well; words in quotation marks;
paths, addresses, codes, signs and pictures: whatever is not letters alone. Where nobody can see what a name is (a
writer who uses no capitals, a script without any) only fillers may differ; in long texts, whose vectors know their
beginnings only, nothing.

Names that are in the list of synonyms, or end in -s, in small letters amid a text with capitals, are looked up in the
account's own: `differing_words` says which words to ask for. What is kept apart without need costs a line in a list;
what is merged without being the same, a memory.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise, zip_longest
from uuid import UUID

from django.db import connection

from memory.extraction.survivors import facts_in
from memory.models.memory import WORDED
from memory.retrieval.selectors.duplicates import LONGEST, QUESTION_MARKS, essence, is_figure, words_of
from memory.services.duplicates.words import (
    DETERMINERS,
    ENGLISH,
    FILLERS,
    NUMBERS,
    OWN_PLURALS,
    SYNONYMS,
    TIMES,
    UNCONTRACTED,
)

MAX_COMPARED_CHARACTERS = 1_000
"""Characters: embedders read about so much."""

TOKEN = re.compile(r"\S+")
THEMSELVES = re.compile(r"\W*I(?:['’]\w+)?\W*")
SENTENCE_ENDS = re.compile(r"[.!?:;…]\W*$")
QUOTES = "`\"“«'"
HISSING = ("s", "x", "z", "ch", "sh")
VOWELS = "aeiou"
SHORTEST_STEM = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text as it is compared. `telling` are those of its `words` that the other has to have as they are.

    `capitals` are words with one, `names` those that do not begin a sentence, `acronyms` those with nothing else.
    """

    words: Sequence[str]
    telling: frozenset[str]
    capitals: frozenset[str]
    names: frozenset[str]
    acronyms: frozenset[str]
    figures: str
    is_question: bool
    hides_names: bool
    is_english: bool


def says_the_same(one: str, other: str) -> bool:
    return differing_words(one, other) is not None


def differing_words(one: str, other: str) -> frozenset[str] | None:
    """The words, but fillers, that only one of the two has: none of them may be a name. None: they do not say the
    same."""
    if one == other:
        return frozenset()
    if max(len(one), len(other)) > MAX_COMPARED_CHARACTERS:
        return frozenset() if essence(one) == essence(other) else None
    first, second = read(one), read(other)
    fillers = FILLERS - (first.names | second.names)
    if not match(first, second, fillers):
        return None
    different = frozenset((set(first.words) ^ set(second.words)) - fillers)
    if (first.is_question, first.figures) != (second.is_question, second.figures):
        return None
    if different & (first.telling | second.telling) or not agree_on_names(first, second, different):
        return None
    return different


@lru_cache(maxsize=4_096)
def read(text: str) -> Reading:
    words = tuple(with_times(tuple(words_in(text))))
    tokens = list(capitalized(text))
    capitals = {word for word, is_first in tokens if not (is_first and word in FILLERS)}
    names = {word for word, is_first in tokens if not is_first}
    return Reading(
        words=words,
        telling=frozenset({*telling_words(text, words), *capitals}),
        capitals=frozenset(capitals),
        names=frozenset(names),
        acronyms=frozenset(acronyms(text)),
        figures="".join(filter(is_figure, text)),
        is_question=any(mark in text for mark in QUESTION_MARKS),
        hides_names=not tokens,
        is_english=not ENGLISH.isdisjoint(words),
    )


def words_in(text: str) -> Iterator[str]:
    """Without what writers differ in: case, punctuation, contractions, numbers in words."""
    for word in words_of(text):
        bare = word.removesuffix("'s") or word
        for part in UNCONTRACTED.get(bare, (bare,)):
            yield NUMBERS.get(part, part)


def with_times(words: Sequence[str]) -> Iterator[str]:
    """`daily` for `every day`, and its like."""
    taken = False
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        phrase = TIMES.get((word, after))
        if not taken:
            yield phrase or word
        taken = phrase is not None and not taken


def capitalized(text: str) -> Iterator[tuple[str, bool]]:
    """The words with a capital, and whether they begin a sentence. `I` is none of them."""
    before = ""
    for token in TOKEN.finditer(text):
        is_first = (
            not before
            or SENTENCE_ENDS.search(before) is not None
            or "\n" in text[max(0, token.start() - 2) : token.start()]
        )
        before = token[0] if any(map(str.isalnum, token[0])) else f"{before}{token[0]}" if before else ""
        if any(map(is_capital, token[0])) and not THEMSELVES.fullmatch(token[0]):
            yield from ((word, is_first) for word in words_in(token[0]))


def is_capital(sign: str) -> bool:
    return sign.isupper() or sign.istitle()


def acronyms(text: str) -> Iterator[str]:
    """Words of capitals alone, unless all are. `I'M` is none of them."""
    if text.isupper():
        return
    for token in TOKEN.findall(text):
        if token.isupper() and sum(map(str.isalpha, token)) > 1 and not THEMSELVES.fullmatch(token):
            yield from words_in(token)


def telling_words(text: str, words: Sequence[str]) -> Iterator[str]:
    yield from (word for word in words if not all(map(str.islower, word)))
    for fact in facts_in(text):
        if fact[0] in QUOTES:
            yield from words_in(fact)


def match(one: Reading, other: Reading, fillers: Collection[str]) -> bool:
    """Whether the words of both, but fillers, are the same or may be exchanged, one by one and in their order."""
    ours, theirs = (without(fillers, each.words) for each in (one, other))
    knows_endings = one.is_english and other.is_english
    return len(ours) == len(theirs) and all(
        here == there
        or may_stand_for(here, there)
        or (knows_endings and DETERMINERS.isdisjoint((before, before_there)) and are_inflected(here, there))
        for (before, here), (before_there, there) in zip(ours, theirs, strict=True)
    )


def without(fillers: Collection[str], words: Sequence[str]) -> list[tuple[str, str]]:
    """The other words, each behind the one before it."""
    return [(before, word) for before, word in pairwise(("", *words)) if word not in fillers]


def may_stand_for(one: str, other: str) -> bool:
    return one in SYNONYMS and SYNONYMS[one] == SYNONYMS.get(other)


def are_inflected(one: str, other: str) -> bool:
    """Whether one is the other with an English -s. Other endings tell of a time (-ed), or make other words (-ing).

    A filler that stands here is a name.
    """
    shorter, longer = sorted((one, other), key=len)
    has_none = len(shorter) < SHORTEST_STEM or shorter in OWN_PLURALS or not FILLERS.isdisjoint((one, other))
    return not has_none and longer == with_s(shorter)


def with_s(word: str) -> str:
    if word.endswith(HISSING):
        return f"{word}es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}s"


def agree_on_names(one: Reading, other: Reading, different: Collection[str]) -> bool:
    if one.hides_names or other.hides_names:
        return not different and one.acronyms <= other.capitals and other.acronyms <= one.capitals
    return one.names <= other.capitals and other.names <= one.capitals


ENDING = "esiy"
"""The letters that an English -s adds, or takes the place of."""

UNWORDED = """
SELECT id, kind, text FROM memories
WHERE wording IS NULL AND kind = ANY (%s) AND (%s::uuid IS NULL OR account_id = %s) LIMIT %s"""

# not where the text has become another meanwhile
PUT = """
UPDATE memories SET wording = put.wording
FROM unnest(%s::uuid[], %s::text[], %s::bigint[]) AS put (id, text, wording)
WHERE memories.id = put.id AND memories.text = put.text"""


def wording_of(kind: str, text: str) -> int | None:
    """Signed, of 64 bits; None for a kind that is not merged."""
    if kind not in WORDED:
        return None
    # as long texts are the same only to the letter
    words = [text] if len(text) > LONGEST else [root_of(word) for word in with_times(tuple(words_in(text)))]
    digest = blake2b("\0".join(word for word in words if word).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def root_of(word: str) -> str:
    """What a word has in common with those that may stand for it; empty for one that may be left out."""
    return "" if word in FILLERS else ROOTS.get(stem(word), stem(word))


def stem(word: str) -> str:
    return word.rstrip(ENDING) or word[0]


def roots() -> Mapping[str, str]:
    """One for the stems of all synonyms of each line, and of the lines that have a stem in common."""
    known: dict[str, str] = {}
    for word, line in SYNONYMS.items():
        one, other = known.setdefault(stem(word), line), known.setdefault(line, line)
        known |= {each: other for each, root in known.items() if root == one}
    return known


ROOTS = roots()


def word_unworded(size: int, *, account_id: UUID | None) -> int:
    """Give so many of the memories a wording that have none; returns how many had none."""
    with connection.cursor() as cursor:
        cursor.execute(UNWORDED, [list(WORDED), account_id, account_id, size])
        rows = cursor.fetchall()
        if rows:
            ids, kinds, texts = zip(*rows, strict=True)
            wordings = list(map(wording_of, kinds, texts))
            cursor.execute(PUT, [list(ids), list(texts), wordings])
        return len(rows)
