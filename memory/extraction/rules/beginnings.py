"""States that begin at a named time to come: "I start my new job at Acme on 1 December", "I'm moving to Lyon in March".

The plan itself is a claim of its own, which is over once its date has passed ("The user is moving to Lyon in March
2027"). What begins then has no end: "The user lives in Lyon" is true from then on, and what it contradicts ends then.
So does the amount of a thing ("my rent is going up to £995 from January").
Only firm plans count, without hopes, hedges and ends. Teams move to products, and people start at gyms and schools:
a home needs a name that is known as a place, or a word for a home, and an employer a word for a job or a company.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from memory.dates import Bound, Tense, find_dates
from memory.extraction.rules.names import NAME, is_name
from memory.extraction.rules.quantities import read_changed_quantity
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import NamedThing, Statement
from memory.extraction.rules.subjects import Subject, subject_of
from memory.extraction.rules.words import CITIES, COUNTRIES, GROUP_RELATIONS, REGIONS

_WILL = r"(?:(?:am|is|are|will|will be|(?:am|is|are) going to) )?(?:also |now |finally |actually )?"
_ROLE = r"an? [\w -]{2,40}?(?=$|[.,!]| (?:on|in|from|next|this|tomorrow|starting|at the)\b)"
_HOME = re.compile(
    rf"{_WILL}(?:mov|relocat)(?:e|es|ing) (?:back )?(?P<home>(?:home|house|flat) )?to (?P<value>{NAME})(?P<rest>.*)"
)
_JOB = re.compile(
    rf"{_WILL}(?:start|begin)(?:s|ning|ing)? (?:(?:work|working) (?:as an? [\w -]{{2,40}}? )?(?:at|for)"
    r"|(?:my|our|a|his|her|their) (?:(?:new|first|next) )?(?:job|position|role) (?:as an? [\w -]{2,40}? )?"
    rf"(?:at|for|with)) (?P<value>{NAME})(?P<rest>.*)"
)
_START = re.compile(
    rf"{_WILL}(?:start|begin)(?:ning|ing)? (?:at|for) (?P<value>{NAME})(?P<role> as {_ROLE})?(?P<rest>.*)"
)
_NO_JOB = re.compile(r"\b(?:member|student|pupil|patient|guest|volunteer|customer|beginner|freshman|resident)$")
_WORK = re.compile(rf"{_WILL}work(?:s|ing)? (?:at|for) (?P<value>{NAME})(?P<rest>.*)")
_COMPANY = re.compile(r".* (?:Inc|Ltd|LLC|GmbH|AG|SA|PLC|Corp|Corporation|Company|Co|Holdings)")
_NEW_JOB = re.compile(
    r"\b(?:(?:new|next|first) (?:job|position|role|employer)|job offer|hired|resigned|last day at"
    r"|(?:quit|quitting|leave|leaving|left) my job|(?:got|accepted|took) (?:the|a) (?:job|position|role|offer))\b",
    re.IGNORECASE,
)
_NEW_AMOUNT = re.compile(
    r"(?P<what>\S.{0,60}?)(?<! was)(?<! were)(?<! been) (?:(?:is|are|will)(?: going to)? )?"
    r"(?:(?P<up>go(?:es|ing)? up|ris(?:es?|ing)|increas(?:es?|ing)|(?:be|being) (?:raised|increased))"
    r"|(?P<down>go(?:es|ing)? down|drop(?:s|ping)?|fall(?:s|ing)?|(?:be|being) (?:lowered|reduced|cut))"
    r"|chang(?:es?|ing)|(?:be|being) changed) (?:from \S+ )?to "
    r"(?P<value>[$€£]?\d[\w.,]*(?: (?:an?|per) \w+)?)(?P<rest>,? \S.*)"
)
_FROM = re.compile(r"(?:from|starting|starting on|beginning|as of|as from) ", re.IGNORECASE)
_LEADING = re.compile(
    r"(?P<when>(?:From|Starting|Beginning|As of|In|On|Next|This|Tomorrow)\b[^,]{0,30}?),? (?=(?:I|[Ww]e|[Mm]y)\b)"
)
_BEYOND_THE_NAME = re.compile(rf"(?:, {NAME})?,? ")
_TO_LIVE = re.compile(r",? to live\b(?! (?:for|until|till)\b).*")
_NOTHING = re.compile(r"[ .!]*")
_COMPANIONS = re.compile(r"(?: instead)?(?:,? with (?:my|our|his|her|their) [a-z]+)?(?: instead)?[ .!]*")
_ENDS = re.compile(
    r"\b(?:until|till|temporar\w+|return(?:s|ing)?|(?:come|coming|be|go|going|am) back"
    r"|for (?:(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|\d+|the|some|only|just|about|a few) ){1,3}"
    r"(?:days?|weeks?|weekend|months?|years?|summer|winter|semester|term|while|season))\b",
    re.IGNORECASE,
)
"""Words of a stay, anywhere in the sentence: "I'm moving to Lyon in March, but I come back in July"."""
_TEAMS = GROUP_RELATIONS - {"family"}
_MAX_DATE_CHARACTERS = 60


def read_beginning(said: ClauseContext) -> Iterator[Statement]:
    """Yield the statement of what begins at the time that a clause names, if it is to come."""
    if said.clause.is_hedged or _ENDS.search(said.clause.sentence):
        return
    text, lead = said.clause.text.rstrip(" .!"), said.clause.lead
    if match := _LEADING.match(text):
        text, lead = text[match.end() :], match["when"]
    subject = subject_of(text, said.speaker, said.names, spoken_of=said.spoken_of)
    if subject is None or subject.label.rpartition(" ")[2] in _TEAMS:
        return
    for pattern, attribute, type_, words in (
        (_HOME, "residence", "place", ("lives in", "live in")),
        (_JOB, "employer", "organization", ("works at", "work at")),
        (_START, "employer", "organization", ("works at", "work at")),
        (_WORK, "employer", "organization", ("works at", "work at")),
    ):
        match = pattern.fullmatch(subject.rest)
        if match is None or not is_name(match["value"]) or not _is_sure(match, said, subject):
            continue
        begins = _begins(said, match["rest"], lead, needs_from=pattern is _WORK)
        if begins is None:
            continue
        claim = f"{words[subject.is_plural]} {match['value']}"
        statement = make_statement(said, subject, attribute=attribute, value=match["value"], claim=claim)
        named = (*statement.names, NamedThing(name=match["value"], type=type_))
        yield replace(statement, names=named, valid_from=begins)
        return


def read_new_amount(said: ClauseContext) -> Iterator[Statement]:
    """Yield what something costs or measures from a day to come: "my rent is going up to £995 from January"."""
    match = _NEW_AMOUNT.fullmatch(said.clause.text.rstrip(" .!"))
    begins = None if match is None or said.clause.is_hedged else _begins(said, match["rest"], "", needs_from=False)
    if match is None or begins is None:
        return
    verb = "goes up" if match["up"] else "goes down" if match["down"] else "changes"
    clause = replace(said.clause, text=f"{match['what']} {verb} to {match['value']}")
    for statement in read_changed_quantity(replace(said, clause=clause)):
        yield replace(statement, valid_from=begins)


def _is_sure(match: re.Match[str], said: ClauseContext, subject: Subject) -> bool:
    """Return True if the name is that of a home or an employer, as far as words can tell."""
    name = match["value"]
    if match.re is _HOME:
        is_place = name in CITIES | COUNTRIES | REGIONS or name.casefold() in said.places
        return is_place or match["home"] is not None or _TO_LIVE.search(match["rest"]) is not None
    if match.re is _START:
        has_new_job = _NEW_JOB.search(f"{said.before} {said.clause.sentence}") is not None
        has_role = match["role"] is not None and _NO_JOB.search(match["role"]) is None
        return subject.is_own and (has_new_job or has_role or _COMPANY.fullmatch(name) is not None)
    return True


def _begins(said: ClauseContext, rest: str, lead: str, *, needs_from: bool) -> datetime | None:
    """Return the time to come that stands between the name and the end of the clause, or else alone before it."""
    beyond = _BEYOND_THE_NAME.match(rest)
    for words in (rest[beyond.end() :],) if beyond else (lead,) if _NOTHING.fullmatch(rest) else ():
        begun = _FROM.match(words)
        if needs_from and begun is None:
            continue
        # "from January" is read as "in January" is
        ways = (words[begun.end() :], f"in {words[begun.end() :]}") if begun else (words,)
        if found := next(filter(None, (_only_date(way, said) for way in ways)), None):
            return found
    return None


def _only_date(words: str, said: ClauseContext) -> datetime | None:
    """Return the start of the date that the words are; None if they go on, as in "from May to July"."""
    words = _TO_LIVE.sub("", words)
    dates = find_dates(words[:_MAX_DATE_CHARACTERS], at=said.turn.timestamp, tense=Tense.FUTURE)
    if not dates or dates[0].begin != 0 or not _COMPANIONS.fullmatch(words[dates[0].stop :]):
        return None
    is_start = dates[0].bound in (Bound.WITHIN, Bound.SINCE) and dates[0].start > said.turn.timestamp
    return dates[0].start if is_start else None
