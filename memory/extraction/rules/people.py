"""The people spoken of, for whom "he" and "she" may stand: in the same turn, or in the last one of the same speaker.

Somebody without a name whom a clause brings in ("my mum hired a cleaner") is one of them, and "she" is nobody then.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from memory.extraction.rules.inflection import AUXILIARIES, is_past_form, is_third_form, lemmas
from memory.extraction.rules.names import PERSON, is_name
from memory.extraction.rules.passages import Clause
from memory.extraction.rules.phrases import Voice
from memory.extraction.rules.subjects import Speaker, Subject, pronoun_of
from memory.extraction.rules.words import ANIMAL_RELATIONS, PERSON_RELATIONS, PROFESSIONS, words

_ANYBODY = (
    PERSON_RELATIONS
    | ANIMAL_RELATIONS
    | PROFESSIONS
    | words("man guy woman lady girl boy kid child baby person bloke cleaner nanny au-pair carer tenant lodger")
)
_SOMEBODY = re.compile(
    r"\b(?:man|guy|woman|lady|girl|boy|kid|child|baby|person|people|someone|somebody|everyone|dude|fellow|bloke|couple"
    r"|customer|client|patient|student|stranger|owner|driver|doctor|nurse|teacher|boss|friend|friends|dog|cat|puppy"
    r"|kitten|pet|mum|mom|dad|guest|host|author|actor|singer|character)\b",
    re.IGNORECASE,
)
_BROUGHT_IN = re.compile(
    r"\b(?:has|have|had|having|got|gets|getting|hired|hires|hiring|employs|employed|recruited|met|adopted|adopting|fosters"
    r"|fostered|married|dating|seeing|found|bought|rescued|birth to|took on|took in|expecting|lives with|owns|keeps)"
    r" (?:an?|another|one) (?:(?!and\b|or\b)[\w-]+ ){0,3}?"
    rf"(?P<who>{'|'.join(sorted(_ANYBODY, key=len, reverse=True))})\b(?!-| (?:name|food|bed|house|party|seat|shower)\b)"
)
_DEPENDANTS = ANIMAL_RELATIONS | words("baby kid child son daughter boy girl grandson granddaughter niece nephew")
_SEEN = words("doctor gp dentist therapist midwife surgeon specialist consultant physio vet nurse lawyer")
"""Those whom somebody has in the way of "my sister has a new doctor"."""
_OF_GROWN_UP = re.compile(
    r"(?:[Ss]he|[Hh]e)(?:'s)? (?:(?:also|now|still) )*"
    r"(?:lives? |works? |is (?:pregnant|divorced|married|retired|engaged)\b"
    rf"|is an? (?:[\w-]+ )?(?:{'|'.join(sorted(PROFESSIONS))})\b)"
)
"""What is said of a grown-up: of the sister rather than of her cat."""
_CALLED = re.compile(r"^,? (?:(?:who is |that is )?(?:called|named) )?")
_WITH_ARTICLE = re.compile(
    r"\b(?:[Tt]he|[Mm]y|[Oo]ur|[Aa]n?|[Hh]er|[Hh]is) (?:[a-z]+ )?"
    rf"(?P<who>{'|'.join(sorted(_ANYBODY, key=len, reverse=True))})\b(?![-'])"
)
_IS_NAMED = re.compile(rf"\b(?:[Tt]hat|[Ss]he|[Hh]e)(?:'s| is| was) {PERSON}")
_BEFORE_VERB = re.compile(
    r"(?:^|(?<=\bthat )|(?<=[,;:] )|(?<=\b(?:and|but) ))(?P<name>[^\W\d_]{3,20}) (?=(?P<verb>[a-z]+)\b)"
)
_CAPITALIZED = re.compile(r"(?<=[\w,;] )[A-Z][\w'-]+")


@dataclass(slots=True)
class People:
    """The people spoken of: in this sentence, before it, and in the whole turn of a speaker."""

    here: list[Subject] = field(default_factory=list)
    before: list[Subject] = field(default_factory=list)
    turn: dict[str, Subject] = field(default_factory=dict)
    speaker: str = ""
    is_old: bool = False
    """True if the last sentence spoke of nobody."""

    def only(self, clause: Clause) -> Subject | None:
        """Return the only person whom "she" or "he" in a clause may be, if there is exactly one.

        That is nobody of the sentences before if this one has named somebody else: "Lena can't come, she's ill".
        """
        one = self.here or self.before
        if not self.here and one and _names_another(clause.sentence[: clause.sentence.find(clause.text)], one[0]):
            return None
        if _OF_GROWN_UP.match(clause.text):
            one = [each for each in one if each.label or not each.rest]
        return one[0] if len(one) == 1 and one[0].label else None

    def begin_turn(self, speaker: Speaker) -> None:
        """Keep the only person of the last turn if the same speaker goes on."""
        last = list(self.turn.values()) if speaker.label == self.speaker else []
        self.before = last if len(last) == 1 else []
        self.here, self.turn, self.speaker, self.is_old = [], {}, speaker.label, False

    def add(self, people: Iterable[Subject]) -> None:
        for each in people:
            self.turn[each.label] = each
            self.here = [*(other for other in self.here if other.label != each.label), each]

    def end_sentence(self, text: str) -> None:
        """Forget those of the sentences before if this is the second one without them, or if it speaks of others.

        A single word is no sentence: "Back.", "Okay."
        """
        is_word = " " not in text
        if self.here or names_somebody(text) or (self.is_old and not is_word):
            self.before = self.here
        self.is_old = not self.here and (self.is_old or not is_word)
        self.here = []

    def hear(self, text: str) -> None:
        """Forget the people of the last turn if what is said in between names others."""
        known = {each.label for each in self.turn.values()}
        if _SOMEBODY.search(text) or any(name not in known for name in _names_in(text)):
            self.turn = {}


def brought_in(text: str, subject: Subject | None, *, named: Iterable[Subject]) -> list[Subject]:
    """Return somebody without a label, if a clause brings one in for whom "she" or "he" may stand.

    `rest` says who it is if that is a child, an animal, or a doctor and the like.
    The `named` are known: "I have a sister called Ana".
    """
    match = _BROUGHT_IN.search(text)
    if match and _CALLED.sub("", text[match.end() :]).startswith(tuple(each.label for each in named)):
        return []
    mine = subject.pronoun if subject is not None and not subject.is_own else ""
    pronoun = pronoun_of(match["who"]) if match else ""
    if match is None or (mine and pronoun and mine != pronoun):
        return []
    is_lesser = match["who"] in _DEPENDANTS or (
        match["who"] in _SEEN and match[0].startswith(("ha", "got", "get", "found"))
    )
    voice = Voice(speaker="", is_own=False)
    return [
        Subject(label="", rest=match["who"] if is_lesser else "", voice=voice, names=(), is_third=True, pronoun=pronoun)
    ]


def names_somebody(text: str) -> bool:
    """Return True if a sentence may speak of somebody who is not known."""
    return _SOMEBODY.search(text) is not None or any(True for _ in _names_in(text))


def _names_another(text: str, person: Subject) -> bool:
    """Return True if the beginning of a sentence speaks of somebody else than a person, by name or as "our nanny"."""
    text = _IS_NAMED.sub("", text)
    others = [match["who"] for match in _WITH_ARTICLE.finditer(text) if not person.label.endswith(match["who"])]
    named = [match["name"] for match in _BEFORE_VERB.finditer(text) if _may_be_name(match["name"], match["verb"])]
    return bool(others) or any(name.casefold() != person.label.casefold() for name in (*named, *_names_in(text)))


def _may_be_name(word: str, verb: str) -> bool:
    """Return True for a word before a verb that no dictionary has: "lena" in "lena can not come"."""
    return not lemmas(word.lower()) and (verb in AUXILIARIES or is_third_form(verb) or is_past_form(verb))


def _names_in(text: str) -> Iterable[str]:
    return (match[0] for match in _CAPITALIZED.finditer(text) if is_name(match[0]))
