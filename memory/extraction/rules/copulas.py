"""Claims with forms of "be": ages, states, origins, professions, relations to others, births and similar events."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from memory.dates import Bound, Tense, find_dates
from memory.extraction.numbers import NUMBER, read_number
from memory.extraction.rules.names import NAME, bare_name, is_name
from memory.extraction.rules.phrases import cut_at_marks, cut_phrase, is_vague, make_phrase
from memory.extraction.rules.readings import TEMPORAL, ClauseContext, make_statement
from memory.extraction.rules.statements import NamedThing, Statement, attitude_to
from memory.extraction.rules.subjects import Subject
from memory.extraction.rules.verbs import Form, Predicate
from memory.extraction.rules.words import GROUP_RELATIONS, PROFESSIONS, STATES, words
from memory.models.facts import Temporal

MAX_AGE_YEARS = 120
MIN_BARE_AGE_YEARS = 13
"""Least age without the words "years old": "I'm 30" is an age, but "I'm 5" may go on with "minutes away"."""

_JOBS = "|".join(sorted(PROFESSIONS, key=len, reverse=True))
_PROFESSION = re.compile(
    rf"(?P<all>an? (?:(?!great|good|bad|terrible|better|natural|true|real)[\w'-]+ ){{0,3}}?(?:{_JOBS}))\b"
    rf"(?: (?:for|at) (?P<org>.+)| in (?:the )?{NAME})?"
)
_AGE = re.compile(
    rf"(?P<years>{NUMBER})(?P<unit> years? old| years? of age)?(?! and a half)(?=[.,!;]|$| (?:and"
    rf"|but|now)\b)"
)
_GROUPS = tuple(f" {group}" for group in GROUP_RELATIONS)
_PRONOUN = re.compile(r"(?:she|he)\b", re.IGNORECASE)
_TURNED = re.compile(
    rf"(?:(?:have|has) )?(?:just |recently |already |finally )?turned (?P<years>{NUMBER})(?=$|[.,!;]"
    rf"| (?!percent|degrees|per\b))"
    r"(?P<rest>.*)"
)
_INTOLERANT = (
    r"(?:(?:lactose|gluten|dairy|wheat|fructose|histamine|egg|soya?|nut|alcohol)(?: |-)intolerant"
    r"|(?:gluten|dairy|lactose|wheat|histamine)(?: |-)sensitive)"
)
_STATE = re.compile(
    rf"(?:a (?=vegetarian|vegan|pescatarian))?(?P<state>{_INTOLERANT}|colou?r blind"
    rf"|{'|'.join(sorted(STATES, key=len, reverse=True))})"
    r"(?=[.,!;]|$| (?:and|now|since|for|myself|herself|himself|too|as well|but|so|after all|any ?more"
    r"|at all|btw|by the way|tbh|actually)\b)"
)
_RELATED_TO = re.compile(
    r"(?P<words>allergic to|married to|engaged to|interested in|afraid of|scared of|terrified of|good at|fluent in"
    r"|a member of|a fan of|a (?:big|huge|massive) fan of|(?:so |really "
    r"|very )?passionate about|fond of|(?:really )?into"
    r"|obsessed with|crazy about|keen on|(?:so |really |super "
    r"|pretty )?(?:excited (?:about|for)|looking forward to|worried about|nervous about)"
    r"|involved (?:in|with)|fascinated by|inspired by|familiar with|drawn to|friends with"
    r"|an? (?:single |proud )?(?:mom|mum|mother|dad|father|parent) of|the (?:owner"
    r"|founder) of"
    r"|majoring in|the president of|the captain of|a volunteer at|a resident of|named after) (?P<rest>.+)"
)
_ATTRIBUTES = {"allergic to": "allergy", "married to": "spouse", "engaged to": "engaged", "fluent in": "language"}
_MARITAL = words("married divorced single widowed engaged")
_LIKED = re.compile(r"fan of|passionate about|fond of|into|obsessed with|crazy about")
_ORIGIN = re.compile(rf"(?:originally )?from (?P<place>{NAME})(?=[.,!;]|$| (?:and|but|originally)\b)")
_BASED = re.compile(rf"based in (?P<place>{NAME})(?=[.,!;]|$| (?:and|but|now)\b)")
_HAPPENED = re.compile(
    r"(?P<words>born in|born on|raised in|diagnosed with|promoted to|accepted (?:in)?to|hired (?:as|by|at)|laid off"
    r"|fired|sacked|made redundant|let go(?! of)|adopted|elected|invited to|injured in|rescued)(?: (?P<rest>.+))?"
)
_WITHOUT_MORE = ("laid off", "fired", "sacked", "made redundant", "let go")
_BORN = {"born in": "birthplace", "born on": "birthday"}


def read_copula(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    """Return the statement that a form of "be" makes about a subject, or None."""
    for read in _READINGS.get(predicate.form, _PRESENT):
        statement = read(said, subject, predicate)
        if statement is not None:
            temporal = TEMPORAL.get(predicate.form, Temporal.CURRENT)
            is_over = statement.temporal == Temporal.CURRENT and statement.attribute not in _BORN.values()
            return (
                replace(statement, temporal=temporal, valid_from=_beginning(said, predicate)) if is_over else statement
            )
    return None


def _beginning(said: ClauseContext, predicate: Predicate) -> datetime | None:
    """Return the time since when it is true, as in "is vegan since 2015", "has been a nurse for ten years"."""
    if predicate.form not in (Form.COPULA, Form.COPULA_PERFECT):
        return None
    dates = find_dates(cut_at_marks(predicate.rest), at=said.turn.timestamp)
    bounds = (Bound.SINCE, Bound.LASTING) if predicate.form is Form.COPULA_PERFECT else (Bound.SINCE,)
    began = [dated.start for dated in dates if dated.bound in bounds]
    return began[0] if len(began) == 1 else None


def _claim(subject: Subject, predicate: Predicate, words: str) -> str:
    return f"{predicate.words(is_plural=subject.is_plural)} {words}"


def _age(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    match = _AGE.match(predicate.rest)
    years = read_number(match["years"]) if match else 0
    if match is None or subject.is_plural or not 0 < years <= MAX_AGE_YEARS:
        return None
    # "she is 5" may be about the dog that was just named
    is_vague = subject.is_own or subject.label.endswith(_GROUPS) or _PRONOUN.match(said.clause.text)
    least = MIN_BARE_AGE_YEARS if is_vague else 1
    if not match["unit"] and years < least:
        return None
    claim = _claim(subject, predicate, f"{years} years old")
    return make_statement(said, subject, attribute="age", value=str(years), claim=claim)


def read_new_age(said: ClauseContext, subject: Subject, words: str) -> Statement | None:
    """Read "turned seven yesterday" as the age, unless it is too long ago."""
    match = _TURNED.match(words)
    years = read_number(match["years"]) if match else 0
    if match is None or subject.is_plural or not 0 < years <= MAX_AGE_YEARS:
        return None
    dates = find_dates(match["rest"], at=said.turn.timestamp, tense=Tense.PAST)
    when = dates[0].start if len(dates) == 1 else None
    if len(dates) > 1 or (when and not timedelta() <= said.turn.timestamp - when < timedelta(days=365)):
        return None
    statement = make_statement(said, subject, attribute="age", value=str(years), claim=f"is {years} years old")
    return replace(statement, valid_from=when)


def _state(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    match = _STATE.match(predicate.rest)
    if match is None:
        return None
    state = match["state"]
    return make_statement(said, subject, attribute="state", value=state, claim=_claim(subject, predicate, state))


def _origin(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    return _at_place(said, subject, predicate, pattern=_ORIGIN, attribute="origin", words="from")


def _based(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    return _at_place(said, subject, predicate, pattern=_BASED, attribute="residence", words="based in")


def _at_place(
    said: ClauseContext, subject: Subject, predicate: Predicate, *, pattern: re.Pattern[str], attribute: str, words: str
) -> Statement | None:
    """Read "is from Brazil", "is based in Toronto": words and the name of a place, which the pattern finds."""
    match = pattern.match(predicate.rest)
    name = bare_name(match["place"]) if match else ""
    if not is_name(name):
        return None
    claim = _claim(subject, predicate, f"{words} {name}")
    statement = make_statement(said, subject, attribute=attribute, value=name, claim=claim)
    return replace(statement, names=(*subject.names, NamedThing(name=name, type="place")))


def _profession(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    text = cut_phrase(predicate.rest)
    match = _PROFESSION.fullmatch(text)
    if match is None or subject.is_plural or not make_phrase(text, subject.voice):
        return None
    claim = _claim(subject, predicate, make_phrase(text, subject.voice))
    statement = make_statement(said, subject, attribute="profession", value=match["all"], claim=claim)
    organization = bare_name(match["org"] or "")
    if not is_name(organization):
        return statement
    is_paid = (
        subject.person and predicate.form is Form.COPULA and not re.search(r"student|graduate|volunteer", match["all"])
    )
    names = (*subject.names, NamedThing(name=organization, type="organization"))
    return replace(
        statement, names=names, relationship=(subject.person, organization, "WORKS_FOR") if is_paid else None
    )


def _relation(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    match = _RELATED_TO.match(predicate.rest)
    value = make_phrase(cut_phrase(match["rest"]), subject.voice) if match else ""
    if match is None or not value or is_vague(value) or value.startswith(("some ", "many ", "different ")):
        return None
    words = re.sub(r"^(?:so|really|very|super|pretty) ", "", match["words"])
    claim = _claim(subject, predicate, f"{words} {value}")
    if _LIKED.search(words):
        attribute = attitude_to(value)
        is_now = predicate.form is Form.COPULA
        statement = make_statement(said, subject, attribute=attribute, value="likes", claim=claim)
        return replace(statement, topic=value, liking="likes" if is_now else "")
    statement = make_statement(said, subject, attribute=_ATTRIBUTES.get(words, words), value=value, claim=claim)
    if words in ("married to", "engaged to") and is_name(value):
        return _knowing(statement, subject, value)
    return statement


def _denial(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    """Read "is not allergic to peanuts", "is not vegetarian": mistakes about these do harm."""
    statement = _state(said, subject, predicate) or _relation(said, subject, predicate)
    if statement is None or statement.attribute not in ("state", "allergy") or statement.value in _MARITAL:
        return None
    return replace(statement, attribute=f"not:{statement.attribute}", relationship=None)


def _knowing(statement: Statement, subject: Subject, name: str) -> Statement:
    names = (*statement.names, NamedThing(name=name, type="person"))
    return replace(statement, names=names, relationship=(subject.person, name, "KNOWS") if subject.person else None)


def _former(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    """Read "is no longer at Brightwave"."""
    match = re.match(rf"(?:at|with) (?P<name>{NAME})$", cut_phrase(predicate.rest))
    if match is None or not is_name(match["name"]):
        return None
    statement = make_statement(
        said, subject, attribute="former", value=match["name"], claim=_claim(subject, predicate, match[0])
    )
    return replace(statement, temporal=Temporal.PAST)


def _happened(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    match = _HAPPENED.match(predicate.rest)
    if match is None:
        return None
    dates = find_dates(predicate.rest, at=said.turn.timestamp, tense=Tense.PAST)
    date = dates[0] if len(dates) == 1 and dates[0].bound is Bound.WITHIN else None
    words, begin = match["words"], match.end("words")
    if date and date.begin < begin:
        year = str(date.start.year)
        when = date.words if year in predicate.rest[: date.stop] else date.words.removesuffix(f" {year}")
        return _born_on(said, subject, words, when)
    value = make_phrase(cut_phrase(predicate.rest[begin : date.begin if date else None].strip()), subject.voice)
    if not value and words not in _WITHOUT_MORE:
        return None
    verb = predicate.words(is_plural=subject.is_plural)
    claim = " ".join(filter(None, (verb, words, value, date.words if date else "")))
    statement = make_statement(said, subject, attribute=_BORN.get(words, f"event:{words}"), value=value, claim=claim)
    statement = replace(statement, temporal=Temporal.PAST, valid_from=date.start if date else None)
    if words in ("born in", "raised in") and is_name(value):
        return replace(statement, names=(*subject.names, NamedThing(name=value, type="place")))
    return statement


def _born_on(said: ClauseContext, subject: Subject, words: str, when: str) -> Statement | None:
    """Read "was born in 1990", "was born on 3 May 1990", and "was born on 3 May", which is of no year."""
    if not words.startswith("born"):
        return None
    statement = make_statement(
        said, subject, attribute="birthday", value=when.partition(" ")[2], claim=f"was born {when}"
    )
    return replace(statement, temporal=Temporal.PAST)


_Reading = Callable[[ClauseContext, Subject, Predicate], Statement | None]
_PRESENT: tuple[_Reading, ...] = (_age, _state, _origin, _based, _profession, _relation)
_READINGS: dict[Form, tuple[_Reading, ...]] = {
    Form.COPULA_PAST: (_happened, _profession, _origin, _relation),
    Form.COPULA_PERFECT: (_state, _profession, _happened, _relation),
    Form.COPULA_NEGATED: (_denial,),
    Form.NO_LONGER: (*_PRESENT, _former),
}
