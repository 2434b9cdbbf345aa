"""Names: quoted phrases, names and possible names in a question, and its subjects."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memory.providers.sentences import UNSPACED
from memory.retrieval.plans import RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.words import (
    INSIDE_NAMES,
    MAX_READ_CHARACTERS,
    NAMELESS,
    OPENERS,
    merge_unique,
    split_words,
)

MAX_PHRASES = 8
MAX_PHRASE_CHARACTERS = 200
MAX_NAMES = 20
MAX_MENTIONS = 60
MAX_MENTION_WORDS = 4
MAX_NAME_WORDS = 6

_QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("»", "«"), ("‹", "›"), ("‘", "’"))
_PHRASE = re.compile(
    # no quotation mark inside, so that the quantifier ends at the next one and the time stays linear
    "|".join(
        rf"(?<!\w){opens}([^{opens}{closes}\n]{{1,{MAX_PHRASE_CHARACTERS}}}){closes}(?!\w)" for opens, closes in _QUOTES
    )
    # in scripts without spaces words touch the quotation marks
    + rf"|「([^「」\n]{{1,{MAX_PHRASE_CHARACTERS}}})」"
)
# letters of scripts without spaces do not form words by themselves
_WORD = re.compile(rf"\.?(?![{UNSPACED}_])\w(?:[^\W{UNSPACED}]|['’.&/-](?=[^\W_{UNSPACED}]))*[+#]{{0,2}}")
_POSSESSIVES = ("'s", "’s")
# compared with the end of a gap, not by a pattern, since gaps may be long
_ENDS_OF_SENTENCES = (".", "!", "?", ":", ";", "…", "\n")
_BEFORE_WORDS = "\"'“”„«»‘([ \t\r\u00a0\u202f\u3000"
_CLOCK = re.compile(r"\d+(?:[.:]\d+)?[AP]M", re.IGNORECASE)
_AUXILIARIES = "do|does|did|has|have|had|is|are|was|were|will|would|can|could|may|might|should"
_NAME = r"[^\W\d_][\w'’-]{0,30}"
# after a name that ends in s an apostrophe alone is a possessive; after others it closes a quotation
_OF_IT = r"(?:['’`]s|(?<=s)['’`])"
_AFTER_NAMES = re.compile(rf"{_OF_IT}?(?![\w+#]|-\w)")
_IN_WORDS = re.compile(r"\w")
_NAMES_BEFORE = rf"{_NAME}(?: {_NAME}){{0,2}}(?:,? and|,) "
_DOES = re.compile(rf"(?<!\w)(?i:{_AUXILIARIES}) (?:both )?(?:{_NAMES_BEFORE}){{0,4}}\Z")
SUBJECT_REACH_CHARACTERS = 200
"""Characters before a name that may hold an auxiliary and other names that share it."""
_REMOVED = "\0"
_LISTED = re.compile(rf"(?:,\s?|\bboth )?{_REMOVED}(?:(?:, and |, | and ){_REMOVED})*")
"""Placeholders of removed names, and what joins them."""


class QuestionWord(NamedTuple):
    """A word of the question: `text` without its possessive, and as `written`.

    `is_first` is True for the first word of a sentence, `is_next` if only a space separates it from the word before.
    """

    text: str
    written: str
    is_first: bool
    is_next: bool
    is_nameless: bool
    has_capital: bool

    @property
    def is_possessive(self) -> bool:
        return self.text != self.written

    @property
    def is_opener(self) -> bool:
        """Return True if the word may have its capital only because it begins a sentence."""
        return self.is_first and self.text.lower() in OPENERS

    @property
    def is_surely_capital(self) -> bool:
        """Return True if its capitals have another reason than the sentence: NASA, iPhone, O'Neill, C++, Ana's."""
        inner = any(map(str.isupper, self.text[1:]))
        return self.has_capital and (inner or self.is_possessive or not self.text.isalpha())


def find_names(query: Query, _context: RecallContext) -> Query:
    """Add the phrases, names, mentions and subjects of the text. Return the same query if there are none."""
    text = query.text[:MAX_READ_CHARACTERS]
    words = list(split_question(text))
    phrases = merge_unique(query.phrases, find_phrases(text), limit=MAX_PHRASES)
    names = merge_unique(query.names, find_capitalized_names(words), limit=MAX_NAMES)
    mentions = merge_unique(query.mentions, find_mentions(words), limit=MAX_MENTIONS)
    if not (phrases or names or mentions):
        return query
    subjects = merge_unique(query.subjects, find_subjects(text, names), limit=MAX_NAMES)
    gist = remove_names(text, subjects) if subjects else query.gist
    return replace(query, phrases=phrases, names=names, mentions=mentions, subjects=subjects, gist=gist)


def find_subjects(text: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that do something ("did Ana", "did Ben, Eva and Ana") or have it ("Ana's")."""
    for name in names:
        if any(
            has_it or _DOES.search(text[max(0, at - SUBJECT_REACH_CHARACTERS) : at])
            for at, _, has_it in find_occurrences(name, text)
        ):
            yield name


def remove_names(text: str, names: Iterable[str]) -> str:
    """Return the text without these names; empty if no content word is left, as in "What is?"."""
    for name in sorted(names, key=len, reverse=True):
        for at, end, _ in reversed(list(find_occurrences(name, text))):
            text = text[:at] + _REMOVED + text[end:]
    text = _LISTED.sub(" ", text)
    left = re.sub(r"\s+(?=[,.!?])", "", " ".join(text.split())).lstrip(",.!? ")
    return left if split_words(left) - NAMELESS else ""


def find_occurrences(name: str, text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where a name begins, where it ends including its possessive, and whether it has one.

    Compiling a pattern for each name would take longer than everything else here.
    """
    at, end = text.find(name), 0
    while at >= 0:
        after = _AFTER_NAMES.match(text, at + len(name))
        if after is not None and at >= end and not (at and _IN_WORDS.match(text[at - 1])):
            end = after.end()
            yield at, end, after.end() > after.start()
        at = text.find(name, at + 1)


def find_phrases(text: str) -> Iterator[str]:
    """Yield what is in straight or typographic quotes, guillemets or corner brackets, if they are balanced."""
    for match in _PHRASE.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        # blanks at the ends: the text between two phrases, such as `" and "`
        if inner == inner.strip() and any(map(str.isalnum, inner)):
            yield inner


def split_question(text: str) -> Iterator[QuestionWord]:
    before = 0
    for match in _WORD.finditer(text):
        written, gap = match[0], text[before : match.start()]
        bare = written[:-2] if written.endswith(_POSSESSIVES) else written
        lower = bare.lower()
        yield QuestionWord(
            text=bare,
            written=written,
            is_first=before == 0 or gap.rstrip(_BEFORE_WORDS).endswith(_ENDS_OF_SENTENCES),
            is_next=before > 0 and gap == " ",
            is_nameless=lower.replace("’", "'") in NAMELESS,
            has_capital=bare != lower and not _CLOCK.fullmatch(bare),
        )
        before = match.end()


def find_capitalized_names(words: Sequence[QuestionWord]) -> Iterator[str]:
    """Yield capitalized words and runs of them ("Bank of England") of at most six words.

    The first word of a sentence counts if its capital has another reason, or if another name word follows.
    """
    run: list[QuestionWord] = []
    for word in words:
        if run and not continues_name(run, word):
            yield from name_of_run(run)
            run = []
        if run or (word.has_capital and not word.is_nameless and not word.is_opener):
            run.append(word)
    yield from name_of_run(run)


def continues_name(run: Sequence[QuestionWord], word: QuestionWord) -> bool:
    """Return True if the word may belong to the same name: it has a capital, or is a small word such as "of"."""
    if not word.is_next or run[-1].is_possessive or len(run) >= MAX_NAME_WORDS:
        return False
    is_small = word.text in INSIDE_NAMES
    return is_small or (word.has_capital and not word.is_nameless)


def name_of_run(run: Sequence[QuestionWord]) -> Iterator[str]:
    """Yield the name without small words at its end; nothing if it is a single word with no sure capital."""
    while run and run[-1].text in INSIDE_NAMES:
        run = run[:-1]
    if not run or (len(run) == 1 and not is_name_alone(run[0])):
        return
    yield " ".join(word.text for word in run)


def is_name_alone(word: QuestionWord) -> bool:
    if word.is_first:
        return word.is_surely_capital
    return len(word.text) > 1


def find_mentions(words: Sequence[QuestionWord]) -> Iterator[str]:
    """Yield runs of one to four words that may be names, as they are written, shorter ones first."""
    # for each word the index of the first word of its run
    begins: list[int] = []
    for index, word in enumerate(words):
        begins.append(begins[-1] if word.is_next else index)
    ends = [index for index, word in enumerate(words) if not word.is_nameless]
    for length in range(1, MAX_MENTION_WORDS + 1):
        for last in ends:
            first = last - length + 1
            if first >= begins[last] and not words[first].is_nameless:
                yield " ".join([*(word.written for word in words[first:last]), words[last].text])
