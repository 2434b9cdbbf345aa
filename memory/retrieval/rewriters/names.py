"""Phrases in quotes, names, and what may be one: the words by which a question says exactly whom and what it means."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memory.providers.sentences import UNSPACED
from memory.retrieval.plans import Moment
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.words import INSIDE_NAMES, LONGEST_READ, NAMELESS, OPENERS, merge, split_words

MOST_PHRASES = 8
LONGEST_PHRASE = 200
"""Characters."""
MOST_NAMES = 20
MOST_MENTIONS = 60
LONGEST_MENTION = 4
"""Words."""
LONGEST_NAME = 6
"""Words."""

_QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("»", "«"), ("‹", "›"), ("‘", "’"))
_PHRASE = re.compile(
    # no quotation mark inside: the quantifier ends at the next one, and time stays linear
    "|".join(rf"(?<!\w){opens}([^{opens}{closes}\n]{{1,{LONGEST_PHRASE}}}){closes}(?!\w)" for opens, closes in _QUOTES)
    # scripts without spaces have words right beside them
    + rf"|「([^「」\n]{{1,{LONGEST_PHRASE}}})」"
)
# letters of scripts without spaces make no words by themselves
_WORD = re.compile(rf"\.?(?![{UNSPACED}_])\w(?:[^\W{UNSPACED}]|['’.&/-](?=[^\W_{UNSPACED}]))*[+#]{{0,2}}")
_POSSESSIVES = ("'s", "’s")
# looked for from the end, and not by a pattern: gaps may be long
_ENDS_OF_SENTENCES = (".", "!", "?", ":", ";", "…", "\n")
_BEFORE_WORDS = "\"'“”„«»‘([ \t\r\u00a0\u202f\u3000"
_CLOCK = re.compile(r"\d+(?:[.:]\d+)?[AP]M", re.IGNORECASE)
_AUXILIARIES = "do|does|did|has|have|had|is|are|was|were|will|would|can|could|may|might|should"
_NAME = r"[^\W\d_][\w'’-]{0,30}"
# of names that end in s a mark alone will do; after others it closes a quotation
_OF_IT = r"(?:['’`]s|(?<=s)['’`])"
_AFTER_NAMES = re.compile(rf"{_OF_IT}?(?![\w+#]|-\w)")
_IN_WORDS = re.compile(r"\w")
_NAMES_BEFORE = rf"{_NAME}(?: {_NAME}){{0,2}}(?:,? and|,) "
_DOES = re.compile(rf"(?<!\w)(?i:{_AUXILIARIES}) (?:both )?(?:{_NAMES_BEFORE}){{0,4}}\Z")
REACH = 200
"""Characters before a name in which others stand that do the same."""
_LEFT_OUT = "\0"
_LISTED = re.compile(rf"(?:,\s?|\bboth )?{_LEFT_OUT}(?:(?:, and |, | and ){_LEFT_OUT})*")
"""Names that were left out, and what joins them."""


class Word(NamedTuple):
    """A word of the question, without a possessive, and as it is `written`.

    `is_first`: of its sentence. `is_next`: a word is before it, and nothing but a space between them.
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
        """Whether its capital may be the sentence's alone."""
        return self.is_first and self.text.lower() in OPENERS

    @property
    def is_surely_capital(self) -> bool:
        """Whether no sentence would have given it its capitals: NASA, iPhone, O'Neill, C++, Ana's."""
        inner = any(map(str.isupper, self.text[1:]))
        return self.has_capital and (inner or self.is_possessive or not self.text.isalpha())


def find_names(query: Query, _moment: Moment) -> Query:
    """With the phrases, names and mentions of the text; the same query where there is none."""
    text = query.text[:LONGEST_READ]
    read = list(words_of(text))
    phrases = merge(query.phrases, phrases_of(text), most=MOST_PHRASES)
    names = merge(query.names, names_of(read), most=MOST_NAMES)
    mentions = merge(query.mentions, mentions_of(read), most=MOST_MENTIONS)
    if not (phrases or names or mentions):
        return query
    subjects = merge(query.subjects, subjects_of(text, names), most=MOST_NAMES)
    gist = leave_out(text, subjects) if subjects else query.gist
    return replace(query, phrases=phrases, names=names, mentions=mentions, subjects=subjects, gist=gist)


def subjects_of(text: str, names: Iterable[str]) -> Iterator[str]:
    """The names of who does something ("did Ana", "did Ben, Eva and Ana") or has it ("Ana's")."""
    for name in names:
        if any(has_it or _DOES.search(text[max(0, at - REACH) : at]) for at, _, has_it in places_of(name, text)):
            yield name


def leave_out(text: str, names: Iterable[str]) -> str:
    """The text without these names; nothing where that leaves no word of its own: "What is?"."""
    for name in sorted(names, key=len, reverse=True):
        for at, end, _ in reversed(list(places_of(name, text))):
            text = text[:at] + _LEFT_OUT + text[end:]
    text = _LISTED.sub(" ", text)
    left = re.sub(r"\s+(?=[,.!?])", "", " ".join(text.split())).lstrip(",.!? ")
    return left if split_words(left) - NAMELESS else ""


def places_of(name: str, text: str) -> Iterator[tuple[int, int, bool]]:
    """Where it begins, where it ends with its possessive, and whether it has one.

    By no pattern of its own, which would take longer to be made than all else here.
    """
    at, end = text.find(name), 0
    while at >= 0:
        after = _AFTER_NAMES.match(text, at + len(name))
        if after is not None and at >= end and not (at and _IN_WORDS.match(text[at - 1])):
            end = after.end()
            yield at, end, after.end() > after.start()
        at = text.find(name, at + 1)


def phrases_of(text: str) -> Iterator[str]:
    """What stands in quotes: straight, typographic, guillemets, corner brackets. An unbalanced one opens no phrase."""
    for match in _PHRASE.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        # `"and "` stands between two phrases
        if inner == inner.strip() and any(map(str.isalnum, inner)):
            yield inner


def words_of(text: str) -> Iterator[Word]:
    before = 0
    for match in _WORD.finditer(text):
        written, gap = match[0], text[before : match.start()]
        bare = written[:-2] if written.endswith(_POSSESSIVES) else written
        lower = bare.lower()
        yield Word(
            text=bare,
            written=written,
            is_first=before == 0 or gap.rstrip(_BEFORE_WORDS).endswith(_ENDS_OF_SENTENCES),
            is_next=before > 0 and gap == " ",
            is_nameless=lower.replace("’", "'") in NAMELESS,
            has_capital=bare != lower and not _CLOCK.fullmatch(bare),
        )
        before = match.end()


def names_of(read: Sequence[Word]) -> Iterator[str]:
    """Capitalized words and runs of them ("Bank of England"), at most six words each.

    The first word of a sentence is one where no sentence gave it its capital, or where another follows it.
    """
    run: list[Word] = []
    for word in read:
        if run and not continues(run, word):
            yield from name_of(run)
            run = []
        if run or (word.has_capital and not word.is_nameless and not word.is_opener):
            run.append(word)
    yield from name_of(run)


def continues(run: Sequence[Word], word: Word) -> bool:
    """Whether the word may belong to the same name: a capital after a space, or a small word between two."""
    if not word.is_next or run[-1].is_possessive or len(run) >= LONGEST_NAME:
        return False
    is_small = word.text in INSIDE_NAMES
    return is_small or (word.has_capital and not word.is_nameless)


def name_of(run: Sequence[Word]) -> Iterator[str]:
    """The name that a run is, without small words at its end; none for a first word that may be any."""
    while run and run[-1].text in INSIDE_NAMES:
        run = run[:-1]
    if not run or (len(run) == 1 and not is_name_alone(run[0])):
        return
    yield " ".join(word.text for word in run)


def is_name_alone(word: Word) -> bool:
    if word.is_first:
        return word.is_surely_capital
    return len(word.text) > 1


def mentions_of(read: Sequence[Word]) -> Iterator[str]:
    """Runs of one to four words that may be names of something known, as they are written, the shorter ones first."""
    begins: list[int] = []
    for place, word in enumerate(read):
        # of the words that hang together with this one
        begins.append(begins[-1] if word.is_next else place)
    ends = [place for place, word in enumerate(read) if not word.is_nameless]
    for length in range(1, LONGEST_MENTION + 1):
        for last in ends:
            first = last - length + 1
            if first >= begins[last] and not read[first].is_nameless:
                yield " ".join([*(word.written for word in read[first:last]), read[last].text])
