"""Subjects of clauses: the speaker, one of the speaker's people, or a person by name."""

import re
from dataclasses import dataclass, replace

from memory.extraction.knowledge import ChunkTurn
from memory.extraction.rules.names import ADJECTIVES, PERSON, Names, is_name, personal_name
from memory.extraction.rules.phrases import Voice, possessive
from memory.extraction.rules.specifics import MACHINERY
from memory.extraction.rules.statements import NamedThing
from memory.extraction.rules.words import ANIMAL_RELATIONS, GROUP_RELATIONS, PERSON_RELATIONS, PLURAL_RELATIONS, words

THE_USER = "The user"
MEN = words(
    "brother husband son father dad stepdad grandad granddad son-in-law father-in-law brother-in-law godson godfather "
    "half-brother ex-husband stepfather stepson stepbrother grandfather grandpa grandson uncle nephew boyfriend"
)
WOMEN = words(
    "sister wife daughter mother mom mum stepmum stepmom nan nana gran auntie daughter-in-law mother-in-law "
    "sister-in-law goddaughter godmother half-sister ex-wife stepmother stepdaughter stepsister "
    "grandmother grandma granny "
    "granddaughter aunt niece girlfriend"
)
PARENTS = {"Mom": "mom", "Mum": "mum", "Dad": "dad", "Grandma": "grandma", "Grandpa": "grandpa", "Granny": "granny"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """The speaker of a turn as claims name them; `person` is the name, empty for "The user"."""

    label: str
    person: str

    @property
    def names(self) -> tuple[NamedThing, ...]:
        return (NamedThing(name=self.person, type="person"),) if self.person else ()

    @property
    def owner(self) -> str:
        """The possessive that begins a claim: "Ana's", "The user's"."""
        words = possessive(self.label)
        return words[:1].upper() + words[1:]


def speaker_of(turn: ChunkTurn) -> Speaker | None:
    """Return the speaker of a turn: a person by name, otherwise the user; None for a machine."""
    name = personal_name(turn)
    if name:
        return Speaker(label=name, person=name)
    return Speaker(label=THE_USER, person="") if turn.role == "user" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a clause. `label` begins the claim, and `rest` is the text after the subject.

    `is_third` is True if its verbs are in the third person singular.
    """

    label: str
    rest: str
    voice: Voice
    names: tuple[NamedThing, ...]
    is_third: bool
    is_plural: bool = False
    pronoun: str = ""
    """The pronoun "she" or "he"; empty if it is not known which."""

    @property
    def is_own(self) -> bool:
        return self.voice.is_own

    @property
    def person(self) -> str:
        """The name of the person that the subject is; empty for anybody without a known name."""
        return next((each.name for each in self.names if each.name == self.label and each.type != "animal"), "")


_ALL = "|".join(sorted(PERSON_RELATIONS | ANIMAL_RELATIONS | PLURAL_RELATIONS | GROUP_RELATIONS, key=len, reverse=True))
_FIRST = re.compile(
    rf"(?:(?P<one>I)|[Ww]e(?: all| both)?|[Mm]e and my (?:{_ALL})"
    rf"|[Mm]y (?:{_ALL}) and (?:I|me)|{PERSON} and I|(?:[Ss]ome|[Aa] few"
    r"|[Aa]) (?:[\w'-]+ ){0,2}friends?(?: from [\w'-]+)? and I"
    rf"|[Mm]y (?:{ADJECTIVES})?(?: ?[\w'-]+){{1,2}} and I) (?P<rest>.+)"
)
_RELATED = re.compile(
    r"(?:[Mm]y"
    rf"|(?P<our>[Oo]ur)) (?P<who>(?:(?:{ADJECTIVES}) )*(?P<relation>{_ALL}))(?:,?"
    rf" (?P<name>{PERSON}),?)? (?P<rest>.+)"
)
_PARENT = re.compile(
    rf"(?P<parent>{'|'.join(f'[{each[0]}{each[0].lower()}]{each[1:]}' for each in PARENTS)}) (?P<rest>.+)"
)
_PRONOUN = re.compile(r"(?P<pronoun>[Ss]he|[Hh]e) (?P<rest>.+)")
_RELATIVES = "|".join(sorted(PERSON_RELATIONS, key=len, reverse=True))
_THEIR_RELATIVE = re.compile(
    rf"(?P<whose>[Hh]is|[Hh]er) (?P<who>(?:(?:{ADJECTIVES}) )*(?P<relation>{_RELATIVES}))(?:,? (?P<name>{PERSON}),?)?"
    r" (?P<rest>[a-z].*)"
)
# "Just got back from Rome" is about the speaker
_DID = re.compile(
    r"(?:(?:Just|Finally|Recently) |(?=(?:Went|Took|Got|Bought|Visited|Attended|Signed|Started|Finished|Joined)\b))"
    rf"(?![A-Za-z]+ {MACHINERY})(?P<rest>[A-Z]?[a-z]+(?<=[a-z]{{2}}) .+)"
)
_PERSON_VERB = re.compile(rf"(?P<name>{PERSON}) (?P<rest>[a-z].*)")


def subject_of(text: str, speaker: Speaker, names: Names, *, spoken_of: Subject | None = None) -> Subject | None:
    """Return the subject that a clause begins with, or None. "She" and "he" stand for `spoken_of`."""
    if spoken_of is not None and (match := _PRONOUN.fullmatch(text)):
        return _repeat_subject(spoken_of, match)
    if match := _THEIR_RELATIVE.fullmatch(text):
        return _relative_of(spoken_of, match) if spoken_of is not None else None
    if match := _DID.fullmatch(text):
        text = f"I {match['rest']}"
    if match := _FIRST.fullmatch(text):
        voice = Voice(speaker=speaker.label, is_own=True)
        return Subject(label=speaker.label, rest=match["rest"], voice=voice, names=speaker.names, is_third=False)
    voice = Voice(speaker=speaker.label, is_own=False)
    if match := _RELATED.fullmatch(text):
        return _related(match, speaker, voice, names)
    if match := _PARENT.fullmatch(text):
        label = f"{speaker.owner} {PARENTS[match['parent'].capitalize()]}"
        return Subject(label=label, rest=match["rest"], voice=voice, names=speaker.names, is_third=True)
    return _named(text, speaker, voice, names)


def _related(match: re.Match[str], speaker: Speaker, voice: Voice, names: Names) -> Subject | None:
    relation, name = match["relation"], match["name"] or ""
    if name and not is_name(name):
        return None
    label = name or f"{speaker.owner} {match['who']}"
    type_ = names.type_of(name) if name else ""
    named = (NamedThing(name=names.form_of(name), type=type_),) if type_ else ()
    is_plural = relation in PLURAL_RELATIONS
    return Subject(
        label=label,
        rest=match["rest"],
        voice=voice,
        names=named if name else speaker.names,
        is_third=not is_plural,
        is_plural=is_plural,
        pronoun=pronoun_of(relation),
    )


def _repeat_subject(subject: Subject, match: re.Match[str]) -> Subject | None:
    """Return the former subject, or None if the pronoun does not fit it."""
    is_other = subject.pronoun not in ("", match["pronoun"].lower())
    return None if is_other else replace(subject, rest=match["rest"])


def _relative_of(subject: Subject, match: re.Match[str]) -> Subject | None:
    """Return a relative of the former subject: "my son Arlo …, and his dad lives in Leeds" is about Arlo's dad."""
    is_other = subject.pronoun not in ("", "he" if match["whose"].lower() == "his" else "she")
    if is_other or match["name"]:
        return None
    label = f"{possessive(subject.label)} {match['who']}"
    return replace(subject, label=label, rest=match["rest"], pronoun=pronoun_of(match["relation"]))


def pronoun_of(relation: str) -> str:
    """Return the pronoun of a relative: "she" for a sister, "he" for a brother, empty for a friend."""
    return "she" if relation in WOMEN else "he" if relation in MEN else ""


def _named(text: str, speaker: Speaker, voice: Voice, names: Names) -> Subject | None:
    match = _PERSON_VERB.fullmatch(text)
    type_ = names.type_of(match["name"]) if match else ""
    if match is None or type_ not in ("person", "animal"):
        return None
    name = names.form_of(match["name"])
    if name == speaker.person:
        return None
    named = (NamedThing(name=name, type=type_),)
    return Subject(label=name, rest=match["rest"], voice=voice, names=named, is_third=True)
