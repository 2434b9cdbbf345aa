"""Statements about somebody's people, animals, favourites, name and birthday, and about parts of places."""

import re
from collections.abc import Iterator
from dataclasses import replace

from memory.dates import Bound, Tense, find_dates
from memory.extraction.rules.names import ADJECTIVES, NAME, PERSON, bare_name, is_name
from memory.extraction.rules.phrases import Voice, cut_phrase, make_phrase, possessive
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import NamedThing, Statement
from memory.extraction.rules.subjects import PARENTS, Subject, pronoun_of
from memory.extraction.rules.values import YEARLY_DAY, read_yearly_day
from memory.extraction.rules.words import ANIMAL_RELATIONS, PERSON_RELATIONS, SINGLE_RELATIONS
from memory.models.facts import Temporal

_RELATIONS = "|".join(sorted(PERSON_RELATIONS | ANIMAL_RELATIONS, key=len, reverse=True))
_WHO = rf"(?P<who>(?:(?:{ADJECTIVES}) )*(?P<relation>{_RELATIONS}))"
_NAMED = re.compile(rf"\b(?:[Mm]y|[Oo]ur) {_WHO}(?P<comma>,?) (?P<name>{PERSON})(?=[ .,!;?]|$)")
_HERS = (
    re.compile(
        rf"\b[Mm]y {_WHO}(?:'s name is| is called| is named|,? named|,? called"
        rf"| is) (?P<name>{PERSON})(?=[.,!;]|$| (?:and|but|now)\b)"
    ),
    _NAMED,
    re.compile(
        rf"^(?P<who>(?P<relation>(?i:{'|'.join(PARENTS)})))(?:'s name is| is called| is named) (?P<name>{PERSON})"
        r"(?=[.,!;]|$| (?:and|but)\b)"
    ),
    re.compile(rf"^(?P<name>{PERSON}) is (?:my|our) {_WHO}(?=[.,!;]|$)"),
    re.compile(
        r"^(?:I|[Ww]e)\b.{1,80}?\b(?:have|got|adopted|had"
        rf"|and) an? (?:(?!ex)[a-z-]+ ){{0,2}}?{_WHO},? (?:named|called)"
        rf" (?P<name>{PERSON})(?=[ .,!;]|$)"
    ),
)  # fmt: skip
_IS_CALLED = re.compile(
    r"(?:(?:[Hh]er|[Hh]is|[Ii]ts) name(?:'s| is)|I (?:named|called) (?:her|him|it)"
    rf"|(?:[Ss]he|[Hh]e) is (?:called|named)) (?P<name>{PERSON})(?=[.,!;]|$| (?:and|but)\b)"
)
_PRONOUNS = {"her": "she", "she": "she", "his": "he", "he ": "he"}
"""The pronoun of the one whom a clause calls by name, by its first three letters."""
_ONE_OF_MINE = re.compile(
    r"\b(?:have|has|got|adopted|rescued|bought|is|met|my|our|this is) (?:my |our |an? "
    rf"|this )?(?:[\w-]+ ){{0,2}}?(?P<relation>{_RELATIONS})\b"
)
_ONE_OF_ANOTHER = re.compile(
    rf"\b(?:(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er) {_WHO}(?:,? {PERSON},?)?|[Ss]he|[Hh]e|(?!I |We ){PERSON}) (?:(?:has|just) )*"
    r"(?:has|got|had|adopted|rescued|bought|met|hired|found) an? "
)
"""An animal or person of somebody else: "My brother has a dog"."""
_THEIRS = re.compile(rf"(?P<owner>{PERSON})'s {_WHO}(?:'s name)? is (?P<name>{PERSON})(?=[.,!;]|$| (?:and|but)\b)")
_DIED = re.compile(r",? (?:just |has |sadly |recently )*(?P<how>died|passed away)\b(?P<rest>.*)")
_WHEN = re.compile(
    r"(?: (?:of|from) (?!boredom|embarrassment|shame|laughter|laughing|curiosity|happiness|joy|shock)[\w' -]+?)?"
    r",? ?(?:(?:(?:last|this|yesterday|today|recently|in|when|after|at the age|two|three)\b"
    r"|an? (?:few|couple|year|month|week|day|while|long time)\b|at \d|on (?:\d|[A-Z])|\d).*)?[.!]?"
)
_FAVORITE = re.compile(
    r"(?:[Mm]y|(?P<our>[Oo]ur)) (?:all-time )?favou?rite (?P<what>[a-z][a-z' -]{1,40}?) (?:is|are) (?P<value>.+)"
)
_NAME = re.compile(rf"[Mm]y (?:(?:first|full) )?name is (?P<name>{PERSON})(?=[.,!;]|$| (?:and|but)\b)")
_YEARLY = re.compile(rf"(?:[Mm]y|[Oo]ur) (?P<what>{YEARLY_DAY}) is (?P<when>.+)")
_OF_RELATIVE = re.compile(
    rf"(?:(?:my|our) )?(?P<who>{_RELATIONS})(?:'s|s'?) (?=(?:{YEARLY_DAY}|b-?day) is\b)", re.IGNORECASE
)
_BDAY = re.compile(r"^b-?day", re.IGNORECASE)
_EVERYBODYS = re.compile(
    r"(?:mot|(?:car|road|council|vehicle) tax|tax return|(?:car|home|house|pet|travel) insurance|tv licen[cs]e|passport"
    r"|driving licen[cs]e|rent|mortgage)(?= (?:is due|is up|expires?|runs out|renews)\b)",
    re.IGNORECASE,
)
"""What everybody has one of, where it is due."""
_PART = re.compile(rf"(?P<part>{NAME}) is (?:a )?part of (?P<whole>{NAME})(?=[.,!;]|$)")
_LOCATED = re.compile(
    rf"(?P<part>{NAME}) is an? (?:[a-z]+ )?(?P<kind>city|town|village|suburb|district"
    rf"|neighbou?rhood|region|island) (?:in|near|of) (?P<whole>{NAME})(?=[.,!;]|$)"
)  # fmt: skip


def name_owner(sentence: str) -> str:
    """Return a sentence with "my" before what is the speaker's without that word: "mums birthday", "mot is due"."""
    if match := _OF_RELATIVE.match(sentence):
        return f"My {match['who'].lower()}'s {_BDAY.sub('birthday', sentence[match.end() :])}"
    match = _EVERYBODYS.match(sentence)
    if match is None:
        return sentence
    what = "MOT" if match[0].lower() == "mot" else match[0].lower()
    return f"My {what}{sentence[match.end() :]}"


def read_possessions(said: ClauseContext) -> Iterator[Statement]:
    """Yield the statements about the speaker's people, animals, favourites, name and birthday, and about places."""
    for match in _people(said.clause.text):
        if statement := _person(said, match):
            yield statement
    if statement := _anothers(said) or _named_now(said):
        yield statement
    for read in (_favorite, _own_name, _yearly_day, _part):
        if statement := read(said):
            yield statement


def is_death(behind: str) -> bool:
    """Return True if the words behind "died" end there, or say when or of which illness: not for "died laughing"."""
    return _WHEN.fullmatch(behind) is not None


def type_of_relation(attribute: str) -> str:
    """Return what the value of "relation:cat" or "only:wife" is; empty for an attribute that is no relation."""
    kind, _, who = attribute.partition(":")
    last = who.rpartition(" ")[2] if kind in ("relation", "only") else ""
    return "animal" if last in ANIMAL_RELATIONS else "person" if last in PERSON_RELATIONS else ""


def read_introductions(said: ClauseContext) -> Iterator[Statement]:
    """Yield whom a question or a report speaks of as somebody's: "Does my sister Ana …", "my boss, Tom, says …"."""
    for match in _NAMED.finditer(said.clause.text):
        if statement := _person(said, match):
            yield statement


def _people(text: str) -> Iterator[re.Match[str]]:
    seen: set[int] = set()
    for pattern in _HERS:
        for match in pattern.finditer(text):
            if match.start("name") not in seen:
                seen.add(match.start("name"))
                yield match


def _self(said: ClauseContext) -> Subject:
    voice = Voice(speaker=said.speaker.label, is_own=True)
    return Subject(label=said.speaker.label, rest="", voice=voice, names=said.speaker.names, is_third=False)


def _own(said: ClauseContext, *, attribute: str, value: str, what: str) -> Statement:
    """Return a statement about something of the speaker, as "Ana's favorite book is Emma"."""
    statement = make_statement(said, _self(said), attribute=attribute, value=value, claim="")
    return replace(statement, claim=f"{said.speaker.owner} {what} {value}")


def _person(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    if match.re is _NAMED:
        # a doubt in the sentence is not about who the person is
        said = replace(said, clause=replace(said.clause, is_hedged=False))
    relation, name = match["relation"], bare_name(match["name"])
    type_ = "animal" if relation in ANIMAL_RELATIONS else "person"
    may_be_called = match.groupdict().get("comma") and said.names.type_of(name) != type_
    if not is_name(name) or may_be_called or _is_speaker(said, name, match) or "'s" in match["name"]:
        return None
    if said.names.type_of(name) != type_:
        return None
    name = said.names.form_of(name)
    if died := _DIED.match(said.clause.text[match.end("name") :]):
        if not is_death(died["rest"]):
            return None
        statement = _own(said, attribute="died", value=name, what=match["who"])
        statement = replace(statement, temporal=Temporal.PAST, names=(NamedThing(name=name, type=type_),))
        return _with_day_of_death(said, statement, died)
    who = match["who"].lower()
    attribute = f"only:{relation.lower()}" if who in SINGLE_RELATIONS else f"relation:{who}"
    return _own_relative(said, name, type_, who=who, attribute=attribute)


def _with_day_of_death(said: ClauseContext, statement: Statement, died: re.Match[str]) -> Statement:
    dates = find_dates(died["rest"], at=said.turn.timestamp, tense=Tense.PAST)
    date = dates[0] if len(dates) == 1 and dates[0].bound is Bound.WITHIN else None
    claim = f"{statement.claim} {died['how']}"
    if date is None:
        return replace(statement, claim=claim)
    return replace(statement, claim=f"{claim} {date.words}", when=date.words, valid_from=date.start)


def _own_relative(said: ClauseContext, name: str, type_: str, *, who: str, attribute: str) -> Statement:
    """Return the statement that a person or animal of this name is the speaker's, and their relationship."""
    person, link = said.speaker.person, "RELATED_TO" if type_ == "animal" else "KNOWS"
    return replace(
        _own(said, attribute=attribute, value=name, what=f"{who} is"),
        names=(*said.speaker.names, NamedThing(name=name, type=type_)),
        relationship=(person, name, link) if person and person != name else None,
    )


def _anothers(said: ClauseContext) -> Statement | None:
    """Read "Anna's brother is Tom", where both are people that the chunk knows."""
    match = _THEIRS.match(said.clause.text)
    if match is None or not all(said.names.type_of(match[name]) == "person" for name in ("owner", "name")):
        return None
    owner, name = said.names.form_of(match["owner"]), said.names.form_of(match["name"])
    voice = Voice(speaker=said.speaker.label, is_own=False)
    people = (NamedThing(name=owner, type="person"), NamedThing(name=name, type="person"))
    subject = Subject(label=owner, rest="", voice=voice, names=people, is_third=True)
    attribute = f"only:{match['relation']}" if match["who"] in SINGLE_RELATIONS else f"relation:{match['who']}"
    statement = make_statement(said, subject, attribute=attribute, value=name, claim="")
    claim = f"{possessive(owner)} {match['who']} is {name}"
    return replace(statement, claim=claim, relationship=(owner, name, "KNOWS") if owner != name else None)


def _named_now(said: ClauseContext) -> Statement | None:
    """Read "We got a puppy. Her name is Luna."."""
    match = _IS_CALLED.match(said.clause.text)
    own = [each["relation"] for each in _ONE_OF_MINE.finditer(said.before)] if match else []
    name = bare_name(match["name"]) if match else ""
    spoken_of = said.spoken_of.label.partition(f"{said.speaker.owner} ")[2] if said.spoken_of else ""
    own = own or [each for each in (spoken_of,) if each in PERSON_RELATIONS | ANIMAL_RELATIONS]
    if len(own) != 1 or not is_name(name) or _ONE_OF_ANOTHER.search(said.before):
        return None
    if match is None or pronoun_of(own[0]) not in ("", _PRONOUNS.get(match[0][:3].lower(), pronoun_of(own[0]))):
        return None
    relation = own[0]
    type_ = "animal" if relation in ANIMAL_RELATIONS else "person"
    return _own_relative(said, name, type_, who=relation, attribute=f"relation:{relation}")


def _is_speaker(said: ClauseContext, name: str, match: re.Match[str]) -> bool:
    """Return True for the speaker's name, or, after a comma, for the name of another speaker, who is addressed."""
    form = said.names.form_of(name)
    is_called = bool(match.groupdict().get("comma")) and form in said.names.speakers
    return form == said.speaker.person or is_called


def _favorite(said: ClauseContext) -> Statement | None:
    match = _FAVORITE.fullmatch(said.clause.text)
    value = make_phrase(cut_phrase(match["value"]), _self(said).voice) if match else ""
    if match is None or not value or re.match(r"(?:when|how|to|the one|for|in|on|at|by|probably|definitely)\b", value):
        return None
    what = match["what"].strip()
    if re.search(r"\b(?:part|thing|things|about|ones?|memory|memories|moment|of)\b", what):
        return None
    return _own(said, attribute=f"favorite:{what}", value=value, what=f"favorite {what} is")


def _own_name(said: ClauseContext) -> Statement | None:
    match = _NAME.match(said.clause.text)
    name = bare_name(match["name"]) if match else ""
    if not name or not is_name(name) or name == said.speaker.person:
        return None
    return replace(
        _own(said, attribute="name", value=name, what="name is"),
        names=(*said.speaker.names, NamedThing(name=name, type="person")),
    )


def _yearly_day(said: ClauseContext) -> Statement | None:
    match = _YEARLY.match(said.clause.text)
    if match is None:
        return None
    day = read_yearly_day(match["when"], at=said.turn.timestamp)
    return _own(said, attribute=match["what"], value=day, what=f"{match['what']} is on") if day else None


def _part(said: ClauseContext) -> Statement | None:
    """Read that a place or an organisation is part of another. They are linked if both types are known."""
    text = said.clause.text
    match = _PART.match(text) or _LOCATED.match(text)
    if match is None or not (is_name(match["part"]) and is_name(match["whole"])):
        return None
    part, whole = bare_name(match["part"]), bare_name(match["whole"])
    types = [said.names.type_of(name) for name in (part, whole)]
    if "kind" in match.re.groupindex:
        types = ["place", "place"]
    subject = replace(_self(said), label=part, names=(), voice=Voice(speaker=said.speaker.label, is_own=False))
    claim = match[0][len(match["part"]) :].strip()
    statement = make_statement(said, subject, attribute="part of", value=whole, claim=claim)
    names = tuple(NamedThing(name=name, type=type_) for name, type_ in zip((part, whole), types, strict=True) if type_)
    if len(names) < 2 or "person" in types:
        return replace(statement, names=names)
    link = "LOCATED_IN" if "kind" in match.re.groupindex else "PART_OF"
    return replace(statement, names=names, relationship=(part, whole, link))
