"""Comparing texts: two that mean nearly the same may still differ in "5" and "6", or "is" and "is not".

Two texts are equivalent if they have the same words in the same order, apart from

- fillers, which one of them may leave out, and numbers in (English) words or digits;
- synonyms of a short list, each of which can replace the other in any sentence (`words`);
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
from uuid import UUID

from django.db import connection

from memory.extraction.survivors import facts_in
from memory.kinds import kinds_where, spec_of
from memory.retrieval.selectors import (
    MAX_NORMALIZED_CHARACTERS,
    QUESTION_MARKS,
    is_special_number,
    normalize_text,
    normalized_words,
)
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
    if different & (first.fixed | second.fixed) or not names_agree(first, second, different):
        return None
    return different


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
    ours, theirs = (pair_without_fillers(fillers, each.words) for each in (one, other))
    knows_endings = one.is_english and other.is_english
    return len(ours) == len(theirs) and all(
        here == there
        or are_synonyms(here, there)
        or (knows_endings and DETERMINERS.isdisjoint((before, before_there)) and differ_by_s_ending(here, there))
        for (before, here), (before_there, there) in zip(ours, theirs, strict=True)
    )


def pair_without_fillers(fillers: Collection[str], words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the words that are no fillers, each after the word that precedes it in the text."""
    return [(before, word) for before, word in pairwise(("", *words)) if word not in fillers]


def are_synonyms(one: str, other: str) -> bool:
    return one in SYNONYMS and SYNONYMS[one] == SYNONYMS.get(other)


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


def names_agree(one: ParsedText, other: ParsedText, different: Collection[str]) -> bool:
    if not (one.has_capitals and other.has_capitals):
        return not different and one.acronyms <= other.capitals and other.acronyms <= one.capitals
    return one.names <= other.capitals and other.names <= one.capitals


S_ENDING_LETTERS = "esiy"
"""Letters that an English -s adds or replaces."""

SELECT_UNHASHED = """
SELECT id, kind, text FROM memories
WHERE wording IS NULL AND kind = ANY (%s) AND (%s::uuid IS NULL OR account_id = %s) LIMIT %s"""

# skips rows whose text changed in the meantime
UPDATE_HASHES = """
UPDATE memories SET wording = hashed.wording
FROM unnest(%s::uuid[], %s::text[], %s::bigint[]) AS hashed (id, text, wording)
WHERE memories.id = hashed.id AND memories.text = hashed.text"""


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


def store_missing_hashes(size: int, *, account_id: UUID | None) -> int:
    """Store the hashes of up to `size` memories that have none. Returns how many had none."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_UNHASHED, [sorted(deduplicated_kinds()), account_id, account_id, size])
        rows = cursor.fetchall()
        if rows:
            ids, kinds, texts = zip(*rows, strict=True)
            hashes = list(map(normalized_text_hash, kinds, texts))
            cursor.execute(UPDATE_HASHES, [list(ids), list(texts), hashes])
        return len(rows)
