"""Secrets that a text gives, such as passwords and codes of doors, by the words that name them.

"My Netflix password is …" gives the secret of the words "netflix" and "password". Requests to forget a secret find the
turns that gave it by these words: no fact is learned from them.
"""

import re

from memory.extraction.rules.nouns import CODE, CREDENTIAL, gives_secret
from memory.providers.sentences import split_sentences

_NAMED = re.compile(
    rf"(?<![\w'-])(?P<before>(?:[\w'-]++ ){{0,4}})(?P<kind>(?:{CREDENTIAL}|{CODE})(?![\w-]))"
    r"(?: (?:for|of|on|at|in|(?:to|for|of|on|at|in) (?:my|our|the|your)) "
    r"(?P<after>(?:(?!is\b|was\b|are\b)[\w'-]++(?: |$)){1,3}))?",
    re.IGNORECASE,
)
_PHRASE_BEGINS = re.compile(
    r".*\b(?:my|our|the|your|an?|is|was|to|and|so|but|that|set|use|changed|new|old|current|as) ", re.IGNORECASE
)
_SAME = dict.fromkeys(
    ("passwords", "passcode", "passcodes", "passphrase", "passphrases", "passwd", "pwd", "pw"), "password"
)
_NO_WORDS = frozenset(["my", "our", "the", "your", "for", "to", "of", "on", "at", "in", "code", "codes"])


def read_secret_words(topic: str) -> frozenset[str]:
    """Return the words that name a secret ("Netflix password"); empty if the topic is none."""
    match = _NAMED.search(topic)
    # "Secret Santa" is none
    return _words_of(match) if match and match.end() == len(topic) else frozenset()


def find_given_secrets(text: str) -> set[frozenset[str]]:
    """Return the words of each secret that a text gives."""
    given = filter(gives_secret, split_sentences(text.replace("’", "'")))
    return {_words_of(match) for sentence in given for match in _NAMED.finditer(sentence)}


def choose_secrets(wanted: frozenset[str], given: set[frozenset[str]]) -> set[frozenset[str]]:
    """Return those of the given secrets that are wanted: one of these words or, if there is only one, with more words.

    "My sister's password" is not "my password".
    """
    if wanted in given:
        return {wanted}
    others = {words for words in given if wanted <= words and not any("'" in word for word in words - wanted)}
    return others if len(others) == 1 else set()


def _words_of(match: re.Match[str]) -> frozenset[str]:
    before = _PHRASE_BEGINS.sub("", match["before"])
    words = f"{before} {match['kind']} {match['after'] or ''}".lower().replace("wi fi", "wifi").split()
    plain = (_SAME.get(word, word) for word in (word.replace("-", "") for word in words))
    return frozenset(word.rstrip("s") if "'" not in word else word for word in plain if word not in _NO_WORDS)
