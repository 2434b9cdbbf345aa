"""Checks of the form of names, claims and preferences, independent of their meaning."""

import re

from memory.extraction.grounding import fold_text
from memory.models.entities import MAX_ENTITY_NAME_CHARACTERS

MAX_EXTRACTED_CLAIM_CHARACTERS = 2_000
"""Characters that a claim or a description may have."""
MAX_TOPIC_CHARACTERS = 100
MAX_PREFERENCE_CHARACTERS = 500

# line ends, control characters, characters that reverse text or are invisible, and tags
_NO_TEXT = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff\\U000e0000-\\U000e007f]|<[/!?a-zA-Z]"
)
_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_NO_NAME = re.compile(r"[<>{}|\\]|://")
_FOR_SPEAKERS = frozenset(("i", "me", "user", "the user", "assistant", "the assistant"))
_STAND_INS = _FOR_SPEAKERS | frozenset(
    (
        *("my", "myself", "you", "your", "he", "him", "his", "she", "her", "it", "its", "we", "us", "our"),
        *("they", "them", "their", "system", "the system"),
        *("someone", "somebody", "everyone", "everybody", "nobody"),
    )
)
_STANCES = frozenset(
    (
        *("likes", "like", "loves", "love", "enjoys", "enjoy", "prefers", "prefer", "wants", "want", "needs", "need"),
        *("dislikes", "dislike", "hates", "hate", "avoids", "avoid", "does", "do", "doesn't", "don't", "not", "no"),
        *("yes", "never", "always", "often", "very", "much", "favourite", "favorite", "best", "worst", "it", "them"),
    )
)


def is_text(text: str, longest: int) -> bool:
    """Return True for a text that is not blank, on one line, within the length, without control characters and tags."""
    return 0 < len(text.strip()) <= len(text) <= longest and not _NO_TEXT.search(text)


def is_name(name: str) -> bool:
    """Return True if it can be a name: it has a letter, and is no id, address or stand-in such as "they"."""
    has_letter = any(map(str.isalpha, name))
    return (
        is_text(name, MAX_ENTITY_NAME_CHARACTERS)
        and has_letter
        and not (_NO_NAME.search(name) or has_id(name))
        and fold_text(name) not in _STAND_INS
    )


def has_id(text: str) -> bool:
    """Return True if a text contains the id of a memory or another UUID."""
    return _ID.search(text) is not None


def stands_for_speaker(name: str) -> bool:
    """Return True for a word that stands for a speaker without a known name, such as "the user"."""
    return fold_text(name) in _FOR_SPEAKERS


def beyond_stance(value: str) -> list[str]:
    """Return what a preference says besides liking or disliking, as a list of one text or none.

    >>> beyond_stance("likes"), beyond_stance("prefers it cold")
    ([], ['cold'])
    """
    words = " ".join(word for word in fold_text(value).split() if word not in _STANCES)
    return [words] if words else []
