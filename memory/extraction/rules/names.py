"""Names of people, places, organisations and animals, which are found by the words around them.

The context says what a name stands for: "my sister Anna" a person, "works for Acme" an organisation, "lives in Porto" a
place. A name without such a context, or with contexts of different types, is no entity.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memory.dates import MONTHS
from memory.extraction.knowledge import ChunkTurn
from memory.extraction.numbers import NUMBER
from memory.extraction.rules.words import (
    ANIMAL_RELATIONS,
    CITIES,
    COMMON_CAPITALS,
    COUNTRIES,
    LANGUAGES,
    MACHINE_NAMES,
    ORGANIZATION_ENDINGS,
    PEOPLES,
    PERSON_RELATIONS,
    PLACE_ENDINGS,
    RELATION_ADJECTIVES,
)
from memory.identity import normalize_name
from memory.providers.sentences import split_sentences

MAX_CHUNK_NAMES = 200
"""Names of one chunk that are kept, more than a conversation normally has."""
MAX_PERSON_CHARACTERS = 60

# a capital of any script: what is a letter and no small Latin one; `is_name` asks it to be upper case
_WORD = r"(?:St\. )?[^\W\d_a-zß-öø-ÿ][\w'-]{1,30}"
NAME = rf"{_WORD}(?: (?:(?:de|da|do|dos|del|la|le|van|von|der|of|the) ){{0,2}}{_WORD}){{0,3}}"
PERSON = rf"{_WORD}(?: (?:(?:de|da|van|von|der) )?{_WORD}){{0,2}}"

ADJECTIVES = "|".join(RELATION_ADJECTIVES)
_PEOPLE = "|".join(sorted(PERSON_RELATIONS, key=len, reverse=True))
_ANIMALS = "|".join(sorted(ANIMAL_RELATIONS, key=len, reverse=True))
_HUMAN = (
    "said|says|told|asked|thinks|laughed|smiled|replied|suggested|recommended|invited|called|texted|emailed|married"
    "|works (?:for|at|as)|worked (?:for|at|as)|lives (?:in|with)|lived in|was born|studied|loves|likes"
    rf"|enjoys|hates|prefers|wants to|decided to|is married|got married|moved to|turned {NUMBER}\b"
)
_ENDINGS = "|".join(ORGANIZATION_ENDINGS)
_GREETING = r"(?:Hey|Hi|Hello|Thanks|Thank you|Bye|Goodbye|Congrats|Congratulations|Dear|Welcome back|Good morning)"

_PRESUMED = "presumed person"
"""Type of a name in a context of people that fits animals as well: "Biscuit turned three"."""

_CONTEXTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (type_, re.compile(pattern))
    for type_, pattern in (
        ("person", (
            rf"\b[Mm]y (?:(?:{ADJECTIVES}) )*(?:{_PEOPLE})(?:'s name is| is called| is|, named"
            rf"| named| called|,)? (?P<name>{PERSON})"
        )),
        ("person", (
            rf"^(?:[Mm]um|[Mm]om|[Dd]ad|[Gg]randma|[Gg]randpa|[Gg]ranny)(?:'s name is| is called"
            rf"| is named) (?P<name>{PERSON})"
        )),
        ("person", (
            r"\b(?:friend|sister|brother|son|daughter|colleague|neighbou?r) (?:named"
            rf"|called) (?P<name>{PERSON})"
        )),
        ("person", rf"\b(?P<name>{PERSON}), (?:who is )?my (?:(?:{ADJECTIVES}) )*(?:{_PEOPLE})[,.]"),
        (_PRESUMED, rf"^(?P<name>{PERSON}) (?:also |just |really |once |always )?(?:{_HUMAN})\b"),
        (_PRESUMED, (
            rf"(?:^|\bthat )(?P<name>{_WORD}) (?:can't|cannot|can not|doesn't|does not|won't|will not|wants|needs"
            r"|called)\b[^A-Z.;]*(?:[A-Z]\w+day\b[^A-Z.;]*)?(?:,| and| but| because| so) (?:[Ss]he|[Hh]e)(?:'s)?\b"
        )),
        ("person", rf"^(?P<name>{PERSON}) is (?:my|our) (?:(?:{ADJECTIVES}) )*(?:{_PEOPLE})\b(?!')"),
        ("person", rf"^{_GREETING},? (?P<name>{_WORD})(?=[,!.:]| and )"),
        ("person", rf"\b[Mm]y name(?: is|'s) (?P<name>{PERSON})"),
        ("person", rf"\bis married to (?P<name>{PERSON})"),
        ("animal", (
            rf"\b(?:[Mm]y|[Oo]ur|[Aa]n?|the) (?:[a-z]+ )?(?:{_ANIMALS})(?:'s name is|,? named"
            rf"|,? called|,)? (?P<name>{_WORD})"
        )),
        ("place", (
            r"\b(?:live|lives|lived|living|reside|resides|grew up|born|raised|vacation"
            rf"|holiday) in (?P<name>{NAME})"
        )),
        ("place", (
            r"\b(?:trains?|bus|ferry|tickets?|drove|sailed|move|moves|moved|moving|trip|travel|travell?ed|travel+ing"
            r"|flew|fly|flying"
            rf"|flight) to (?P<name>{NAME})"
        )),
        ("place", rf"\b(?:I am|I'm|is|are|was|were|originally|comes?|came) from (?P<name>{NAME})"),
        ("place", rf"\b(?:city|town|village|island|country|state|province|suburb) of (?P<name>{NAME})"),
        ("place", rf"\b(?P<name>{_WORD}(?: {_WORD})?), (?:{'|'.join(sorted(COUNTRIES))})\b"),
        ("place", rf"\b(?P<name>{_WORD}(?: {_WORD}){{0,2}} (?:{'|'.join(PLACE_ENDINGS)}))\b"),
        ("place", rf"\b(?P<name>{'|'.join(sorted(COUNTRIES | CITIES, key=len, reverse=True))})\b(?! [A-Z])"),
        ("organization", rf"\b(?:work|works|worked|working|job) (?:for|at) (?P<name>{NAME})"),
        ("organization", rf"\b(?P<name>{_WORD}(?: {_WORD}){{0,3}} (?:{_ENDINGS}))\b"),
        ("organization", (
            r"\b(?P<name>(?:University|Bank|Ministry|Institute"
            rf"|Museum) of (?:the )?{_WORD}(?: {_WORD}){{0,2}})"
        )),
    )
)  # fmt: skip
_FIRST_WORDS = re.compile(r"^(?:The|A|An|My|Our|At|In|To|From|With|And|But|So|Oh|Hey|Hi|Dear|Thanks) ")
_SMALL_WORDS = frozenset(["de", "da", "do", "dos", "del", "la", "le", "van", "von", "der", "of", "the"])
_NO_NAME = COMMON_CAPITALS | PEOPLES | LANGUAGES | frozenset(MONTHS)
_PERSONAL = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+){0,3}\.?")


def personal_name(turn: ChunkTurn) -> str:
    """Return the name of the person who speaks in a turn; empty for a machine, a handle, or no name."""
    name = " ".join(turn.speaker.split())
    is_plain = len(name) <= MAX_PERSON_CHARACTERS and _PERSONAL.fullmatch(name) is not None
    return name if is_plain and not name[0].islower() and name.split()[0].lower() not in MACHINE_NAMES else ""


def is_name(name: str) -> bool:
    """Return True if all words but small ones are capitalized, and none is a common word, people or language."""
    words = [word for word in name.split() if word not in _SMALL_WORDS]
    return (
        bool(words)
        and name[0].isupper()
        and len(name) <= MAX_PERSON_CHARACTERS
        and all(word[0].isupper() and word.split("'")[0] not in _NO_NAME for word in words)
    )


def bare_name(text: str) -> str:
    """Return a name without a possessive ending and without marks around it."""
    return re.sub(r"'s?$", "", text.strip(" .,-'"))


@dataclass(slots=True)
class Names:
    """The names of a chunk by their normalized forms.

    `forms` has the spelling of each name, `aliases` the full name of each short one. `torn` has names that occur in
    contexts of different types, `presumed` those of people who may turn out to be animals.
    """

    types: dict[str, str] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    torn: set[str] = field(default_factory=set)
    presumed: set[str] = field(default_factory=set)
    speakers: frozenset[str] = frozenset()

    def add(self, name: str, type_: str, *, surely: bool = False) -> None:
        """Add a name of a type. A name with two types becomes torn, unless `surely` is True."""
        key = normalize_name(name)
        if key in self.torn or key in self.aliases or len(self.types) >= MAX_CHUNK_NAMES:
            return
        if type_ == _PRESUMED:
            if self.types.get(key) == "animal":
                return
            type_ = "person"
            if key not in self.types:
                self.presumed.add(key)
        elif key in self.presumed:
            self.presumed.discard(key)
            surely = surely or type_ == "animal"
        if surely or self.types.setdefault(key, type_) == type_:
            self.types[key] = type_
            self.forms.setdefault(key, name)
        else:
            self.torn.add(key)
            del self.types[key]

    def type_of(self, name: str) -> str:
        return self.types.get(self._key(name), "")

    def is_sure(self, name: str) -> bool:
        """Return True for a name with a type that is not only presumed."""
        return bool(self.type_of(name)) and self._key(name) not in self.presumed

    def form_of(self, name: str) -> str:
        """Return the first spelling of a name; for an alias, that of its full name."""
        return self.forms.get(self._key(name), name)

    def _key(self, name: str) -> str:
        key = normalize_name(name)
        return self.aliases.get(key, key)

    def mentioned(self, text: str) -> Iterator[str]:
        """Yield the known names in a text, in their first spelling."""
        known = {**self.forms, **{alias: alias for alias in self.aliases}}
        found = {word for match in _CAPITALIZED.finditer(text) for word in _runs(match[0])}
        for key in dict.fromkeys(map(normalize_name, found)):
            if key in known and self._key(key) in self.types:
                yield self.forms[self._key(key)]


_CAPITALIZED = re.compile(NAME)
_MAX_RUN_WORDS = 6


def _runs(words: str) -> Iterator[str]:
    """Yield every run of up to six words."""
    tokens = [bare_name(token) for token in words.split()]
    for start in range(len(tokens)):
        for stop in range(start + 1, min(start + _MAX_RUN_WORDS, len(tokens)) + 1):
            yield " ".join(tokens[start:stop])


def collect_names(turns: Iterable[tuple[ChunkTurn, str]]) -> Names:
    """Return the names in turns, which are given with their prose."""
    turns = list(turns)
    speakers = frozenset(personal_name(turn) for turn, _ in turns) - {""}
    names = Names(speakers=speakers)
    for speaker in speakers:
        names.add(speaker, "person", surely=True)
    for turn, text in turns:
        for sentence in split_sentences(text):
            for name, type_ in _contexts_of_names(sentence[:1000]):
                if type_ in ("person", _PRESUMED) and (full := _short_for(name, speakers - {personal_name(turn)})):
                    names.aliases[normalize_name(name)] = normalize_name(full)
                else:
                    names.add(name, type_)
    return names


def _short_for(name: str, speakers: frozenset[str]) -> str:
    """Return the one speaker for whom this is a short name ("Greg" for "Gregory"), if any."""
    full = [each for each in speakers if each != name and len(name) > 2 and each.startswith(name)]
    return full[0] if len(full) == 1 else ""


def _contexts_of_names(sentence: str) -> Iterator[tuple[str, str]]:
    for type_, pattern in _CONTEXTS:
        for match in pattern.finditer(sentence):
            name = bare_name(_FIRST_WORDS.sub("", match["name"]))
            if is_name(name) and not _is_possessive(sentence, match):
                yield name, type_


def _is_possessive(sentence: str, match: re.Match[str]) -> bool:
    """Return True if the name is a possessive: "moved to Anna's flat" names no place."""
    return "'s" in match["name"] or sentence[match.end("name") : match.end("name") + 2] == "'s"
