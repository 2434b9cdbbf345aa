"""Templates: what is left of a text without its numbers, dates, quoted values and names.

Near-duplicates that differ in nothing else share a template. Anybody can store any number of them, so their number says
nothing for them (`floods`).
"""

import re
from functools import lru_cache

MAX_TEMPLATE_CHARACTERS = 2_000
"""Longer texts have no template: only equal ones are duplicates."""
MIN_TEMPLATE_WORDS = 3
"""With fewer words left, texts have nothing in common but their form."""
MIN_UNSPACED_CHARACTERS = 6
"""The same limit for scripts that put no blanks between words."""

_MARKS = ".,;:!?()[]{}<>/\\|=+*#@&%$€£~^_…'’-–—"
_SPACES = str.maketrans(dict.fromkeys(_MARKS + "。，、！？；：（）", " "))
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|“[^”]{1,200}”|«[^»]{1,200}»|`[^`]{1,200}`|「[^」]{1,200}」")
_QUOTES = frozenset('"“«`「')
_NUMBERS = re.compile(r"[\d一二三四五六七八九十百千万]+")
_DATE_WORDS = (
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday today tomorrow yesterday am pm"
)
_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty "
    "ninety hundred thousand million first second third"
)
_VALUE_WORDS = frozenset([*_DATE_WORDS.split(), *_NUMBER_WORDS.split()])
"""Dates and numbers that have neither digits nor, in every text, capitals."""


@lru_cache(maxsize=8_192)
def template_of(text: str) -> tuple[str, ...] | None:
    """Return the constant words of a text, in their order; None if the text is too long, or hardly any are left.

    A word with a capital letter is a name unless it begins the text. Case and punctuation do not count.

    >>> template_of("Yesterday I ran 5 km with Ana, at “the lake”.")
    ('yesterday', 'ran', 'km', 'with', 'at')
    """
    if len(text) > MAX_TEMPLATE_CHARACTERS:
        return None
    if not _QUOTES.isdisjoint(text):
        text = _QUOTED.sub(" ", text)
    kept = _constant_words(text)
    if len(kept) < MIN_TEMPLATE_WORDS:
        # capitals all over tell no names
        kept = _constant_words(text.lower())
    if len(kept) >= MIN_TEMPLATE_WORDS:
        return tuple(kept)
    return None if text.isascii() else _unspaced_template(text)


def _constant_words(text: str) -> list[str]:
    """Return the words without digits and, but for the first one, without capitals."""
    first, *others = text.split() or [""]
    opening = _constant_word(first.lower() if first.strip(_MARKS).istitle() else first)
    return list(filter(None, (opening, *map(_constant_word, others))))


@lru_cache(maxsize=8_192)
def _constant_word(word: str) -> str:
    """Return the word without the marks around it, or an empty text if it has digits or capitals, or is a value."""
    bare = word if word.isalpha() else word.strip(_MARKS)
    has_digits = not bare.isalpha() and any(map(str.isdigit, bare))
    return bare if bare.islower() and not has_digits and bare not in _VALUE_WORDS else ""


def _unspaced_template(text: str) -> tuple[str, ...] | None:
    """Return the template of a text whose letters have no case: all of it but the numbers."""
    rest = [each for each in _NUMBERS.sub(" ", text).translate(_SPACES).split() if not each.isascii()]
    has_case = any(each.lower() != each.upper() for each in rest)
    return tuple(rest) if not has_case and sum(map(len, rest)) >= MIN_UNSPACED_CHARACTERS else None
