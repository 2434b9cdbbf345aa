"""States that begin at a named time to come: "I start at Acme on 1 December", "I'm moving to Lyon in March".

The plan itself is a claim of its own, which is over once its date has passed ("The user is moving to Lyon in March
2027"). What begins then has no end: "The user lives in Lyon" is true from then on, and what it contradicts ends then.
Only firm plans count: no hopes, intentions and hedges, and only names of places and organizations.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from memory.dates import Bound, Tense, find_dates
from memory.extraction.rules.names import NAME, is_name
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import NamedThing, Statement
from memory.extraction.rules.subjects import subject_of

_WILL = r"(?:(?:am|is|are|will|will be|(?:am|is|are) going to) )?(?:also |now |finally |actually )?"
_HOME = re.compile(rf"{_WILL}(?:mov|relocat)(?:e|es|ing) (?:back )?to (?P<value>{NAME})(?P<rest>.*)")
_JOB = re.compile(
    rf"{_WILL}(?:start|begin)(?:s|ning|ing)? "
    r"(?:work |working |(?:my|a|the|his|her|their) (?:new )?(?:job|position|role) )?"
    rf"(?:as an? [\w -]{{2,40}}? )?(?:at|for|with) (?P<value>{NAME})(?P<rest>.*)"
)
_WORK = re.compile(rf"{_WILL}work(?:s|ing)? (?:at|for) (?P<value>{NAME})(?P<rest>.*)")
_FROM = re.compile(r"(?:from|starting|starting on|beginning|as of|as from) ", re.IGNORECASE)
_LEADING = re.compile(
    r"(?P<when>(?:From|Starting|Beginning|As of|In|On|Next|This|Tomorrow)\b[^,]{0,30}?),? (?=(?:I|[Ww]e|[Mm]y)\b)"
)
_BEYOND_THE_NAME = re.compile(rf"(?:, {NAME})?,? ")
_MAX_DATE_CHARACTERS = 60


def read_beginning(said: ClauseContext) -> Iterator[Statement]:
    """Yield the statement of what begins at the time that a clause names, if it is to come."""
    if said.clause.is_hedged:
        return
    text, lead = said.clause.text.rstrip(" .!"), said.clause.lead
    if match := _LEADING.match(text):
        text, lead = text[match.end() :], match["when"]
    subject = subject_of(text, said.speaker, said.names, spoken_of=said.spoken_of)
    if subject is None:
        return
    for pattern, attribute, type_, words in (
        (_HOME, "residence", "place", ("lives in", "live in")),
        (_JOB, "employer", "organization", ("works at", "work at")),
        (_WORK, "employer", "organization", ("works at", "work at")),
    ):
        match = pattern.fullmatch(subject.rest)
        begins = _begins(said, match["rest"], lead, needs_from=pattern is _WORK) if match else None
        if match is None or begins is None or not is_name(match["value"]):
            continue
        claim = f"{words[subject.is_plural]} {match['value']}"
        statement = make_statement(said, subject, attribute=attribute, value=match["value"], claim=claim)
        named = (*statement.names, NamedThing(name=match["value"], type=type_))
        yield replace(statement, names=named, valid_from=begins)
        return


def _begins(said: ClauseContext, rest: str, lead: str, *, needs_from: bool) -> datetime | None:
    """Return the time to come that stands right after the name, or else at the beginning of the clause."""
    beyond = _BEYOND_THE_NAME.match(rest)
    for words in (rest[beyond.end() :] if beyond else "", lead):
        begun = _FROM.match(words)
        if needs_from and begun is None:
            continue
        # "from January" is read as "in January" is
        ways = (words[begun.end() :], f"in {words[begun.end() :]}") if begun else (words,)
        if found := next(filter(None, (_first_date(way, said) for way in ways)), None):
            return found
    return None


def _first_date(words: str, said: ClauseContext) -> datetime | None:
    dates = find_dates(words[:_MAX_DATE_CHARACTERS], at=said.turn.timestamp, tense=Tense.FUTURE)
    is_first = bool(dates) and dates[0].begin == 0 and dates[0].bound in (Bound.WITHIN, Bound.SINCE)
    return dates[0].start if is_first and dates[0].start > said.turn.timestamp else None
