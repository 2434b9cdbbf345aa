"""Terms by which texts are compared: content words, specific terms (numbers, identifiers, paths) and names."""

import re
from collections import Counter
from collections.abc import Sequence

from memory.providers.sentences import tokenize

STEM_LETTERS = 6
MIN_WORD_LETTERS = 3
"""Shorter words say too little to tell two texts apart."""
# function words of English sentences
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
# Specific terms have a digit, a sign inside, or capitals where words have none. They are searched in one bounded word
# after the other: a pattern that searches for the digit itself takes quadratic time in a long text
_QUOTED = re.compile(r"`([^`]{1,80})`")
_UNBROKEN = re.compile(r"[^\s,;()\[\]{}\"“”]+")
_DIGIT = re.compile(r"\d")
_SIGNED = re.compile(r"\b\w+(?:[_/\\@:#.-]\w+)+|\b[A-Z]{2,}\b|\b[a-z]+[A-Z]\w*")
MAX_SPECIFIC_CHARACTERS = 200
"""Characters of a specific term that are compared."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][a-zà-öø-ÿ]+")
_CAPITAL = re.compile(r"\b[^\W\d_a-zß-öø-ÿ][^\W\d_]+")
_AROUND = ".,;:!?…\"'`“”‘’()[]{}<>"


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that say something, and all numbers.

    >>> sorted(content_words("The pumps are pumping at 3 bar"))
    ['3', 'bar', 'pump', 'pumps']
    """
    words = {word for word in tokenize(text) if word.isdecimal() or len(word) >= MIN_WORD_LETTERS}
    return frozenset(stem_word(word) for word in words - STOP_WORDS)


def stem_word(word: str) -> str:
    for ending in ("ing", "ed", "es"):
        if word.endswith(ending) and len(word) > len(ending) + MIN_WORD_LETTERS:
            return word.removesuffix(ending)[:STEM_LETTERS]
    return word[:STEM_LETTERS]


def specific_terms(text: str) -> frozenset[str]:
    """Return the specific terms of a text in lower case: numbers, identifiers, paths, versions, sums, codes."""
    quoted = _QUOTED.findall(text)
    words = (match.group()[:MAX_SPECIFIC_CHARACTERS] for match in _UNBROKEN.finditer(_QUOTED.sub(" ", text)))
    found = [*quoted, *(each for word in words for each in ([word] if _DIGIT.search(word) else _SIGNED.findall(word)))]
    return frozenset(bare for each in found if (bare := each.strip(_AROUND).casefold()))


def repeated_terms(texts: Sequence[str]) -> frozenset[str]:
    """Return the specific terms that more than one of the texts names."""
    counts = Counter(each for text in texts for each in specific_terms(text))
    return frozenset(each for each, count in counts.items() if count > 1)


def capitalized_names(text: str) -> frozenset[str]:
    """Return the words with a capital where no sentence begins."""
    return frozenset(match.group() for match in _NAME.finditer(text))


def capitalized_stems(text: str) -> frozenset[str]:
    """Return the stems of the words with a capital that say something, including those that begin a sentence.

    >>> sorted(capitalized_stems("The copy goes to Berta"))
    ['berta']
    """
    words = {word.casefold() for word in _CAPITAL.findall(text) if len(word) >= MIN_WORD_LETTERS}
    inside = {name.casefold() for name in capitalized_names(text)}
    return frozenset(stem_word(word) for word in (words | inside) - STOP_WORDS)


def comparison_terms(text: str) -> frozenset[str]:
    """Return the content words, specific terms and names of a text."""
    return (
        content_words(text)
        | specific_terms(text)
        | {name.casefold()[:STEM_LETTERS] for name in capitalized_names(f"x {text}")}
    )
