"""Other days, times and doses of what a known claim speaks of: "closing slipped to dec 11", "they upped my Ramipril".

The thing is named as the claim names it, or by the end of its name, and the claim that is made then names it in full:
"The user's dentist appointment was moved to 15 December 2026". If the words fit several things, nothing is said.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.dates import MONTHS, WEEKDAYS, Tense, find_dates
from memory.extraction.rules.ailments import DRUG
from memory.extraction.rules.attributes import is_rescheduled, read_meaning
from memory.extraction.rules.endings import ends_plan
from memory.extraction.rules.phrases import Voice
from memory.extraction.rules.planned_states import replaces_planned_state
from memory.extraction.rules.quits import ends_held
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Subject

_DAY = rf"(?:{'|'.join(WEEKDAYS)})s?"
_VERB = (
    r"(?:moved|postponed|pushed|put off|rescheduled|slipped|slips|shifted|delayed|brought forward|bumped|moves|changed)"
    r"(?: (?:back|forward|out|up))?"
)
_THING = r"(?P<thing>(?:(?:my|our|the|their|[\w-]+'s?) )?[\w-]+(?: [\w-]+){0,3}?)"
_TO = r"(?: (?:from .{1,30} )?(?:to|until|till) (?P<to>\S.{0,60}?))"
_MOVED = re.compile(
    rf"{_THING} (?P<been>(?:was|were|is|are|has been|have been|got|gets|had to be) (?:now |just )?)?{_VERB}{_TO}?",
    re.IGNORECASE,
)
_MOVED_BY = re.compile(
    rf"(?:\S+ ){{1,4}}?(?:had to |have |has |just )*{_VERB.replace('slipped|slips|', '')} "
    rf"(?P<thing>(?:(?:my|our|the|their|[\w-]+'s?) [\w-]+|[a-z]+-[a-z]+)(?: [\w-]+){{0,3}}?)"
    rf"(?: (?:back|forward|out|up))?{_TO}",
    re.IGNORECASE,
)
_END = re.compile(r",(?! \d)|;| - | (?:because|since|so|but|and|as|thank|which|sorry)\b")
_TIME = re.compile(
    rf"\b(?:{_DAY}|{'|'.join(MONTHS)}|\d{{1,2}}[:.]\d\d|\d{{1,2}} ?(?:am|pm|o'clock)|at \d|noon"
    r"|the \d{1,2}(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
_IS_TIME = re.compile(
    rf"{_TIME.pattern}|\b(?:next|half past|quarter|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|january|february|mid|early|late|later|tomorrow|\d{1,2})\b",
    re.IGNORECASE,
)
_SET = re.compile(
    r"(?P<thing>(?:The user's |The |[A-Z][\w-]*'s )?[\w-]+(?: [\w-]+){0,3}?) (?:is|are|takes place|starts|happens)"
    r"(?: (?:planned|scheduled|set|due|booked))?(?: (?:for|on|at|to))? (?P<when>.+)"
)
_HAS = re.compile(
    r"(?P<who>The user|[A-Z][\w-]+) (?:has|goes to) (?:an? |the )?(?P<thing>[\w-]+(?: [\w-]+){0,2}?)"
    r" (?P<when>(?:on|at|every) .+)"
)
_NEW = re.compile(
    rf"(?P<thing>\S.{{1,60}}?) (?:(?:was|were|is|are|has been|got) )?{_VERB}(?: (?:to|until|till) (?P<to>.+))?\.?"
)
_ONCE = re.compile(
    r"\b(?:(?:just|only) (?:this|that|the) (?:once|one time|week)|for once|this (?:week|time|month) only)\b",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:room|floor|hall|gate|platform|building|track|desk|page|channel|table|court|house|number|studio) [\w-]+",
    re.IGNORECASE,
)
_SHORT = {"op": "operation", "appt": "appointment"}
_DETERMINER = re.compile(r"^(?:the user's|my|our|the|their) ")
_APPOINTMENT = re.compile(r" (?:appointment|check-?up)$")
_ROUTINE = re.compile(
    rf"(?P<what>\S.+?) (?:(?:on|every|each) )?(?P<days>{_DAY}(?:(?:,| and|, and) {_DAY})*)(?: (?:at|from) .+)?\.?",
    re.IGNORECASE,
)
_DOSE = r"(?P<dose>\d[\d.,]*\d|\d)(?: ?(?P<unit>m?c?g|ml|units?))?"
_DOSED = re.compile(
    r"(?:upped|raised|increased|lowered|reduced|cut|bumped|doubled|halved|changed|put|adjusted|dropped)(?: up| down)?"
    rf" (?:my|the) (?P<drug>{DRUG})(?: dos(?:e|age))?(?: up| down)?(?: from .{{1,20}}?)?"
    rf"(?: to |,? (?:so )?(?:it's|it is|I take|now) (?:now )?){_DOSE}(?![\w:])"
    # "to 2 bags" is no dose
    r"(?(unit)|(?! (?!now|an?|per|every|each|twice|once|daily|since|from|because|and|but|so|in|on|last|this|these|at"
    r"|after|as|with|yesterday|today|recently|instead|again|until|for|by)\w))",
    re.IGNORECASE,
)
_TAKES = re.compile(rf"(?P<who>\S.{{0,40}}?) (?:takes|is on|has) (?P<dose>\d[\d.,]* ?\w+) of (?P<drug>{DRUG}).*")
_PUT_ON = re.compile(rf".{{0,40}}\bput (?P<who>\S.{{0,40}}?) on (?P<drug>{DRUG}),? (?P<dose>\d[\d.,]* ?\w+)\b.*")
_ALSO = re.compile(r"\b(?:also|too|as well|another|additional)\b", re.IGNORECASE)


def outdates(new: str, old: str) -> bool:
    """Return True if a claim ends another one, or tells other days of the same, in words that name the same thing."""
    is_end = ends_plan(new, old) or ends_held(new, old) or replaces_planned_state(new, old)
    return is_end or reschedules(new, old) or changes_dose(new, old) or is_on_other_days(new, old)


def replaces_plan(new: str, old: str) -> bool:
    """Return True if one plan takes the place of another: of a thing at another time, or of another home or job."""
    return is_rescheduled(read_meaning(new), read_meaning(old)) or replaces_planned_state(new, old)


def reschedules(new: str, old: str) -> bool:
    """Return True if a claim says that what the other one sets a time for was moved or put off."""
    match = _NEW.fullmatch(new)
    if match is None or _ONCE.search(new) or (match["to"] and not _is_time(match["to"])):
        return False
    return any(_key(thing) == _key(match["thing"]) for thing in _things_of(old))


def replaces_routine(new: Statement, old: str) -> bool:
    """Return True if somebody does the same on other days of the week now: "I play skat on Tuesdays now"."""
    return new.is_change and not _ALSO.search(new.sentence) and is_on_other_days(new.claim, old)


def is_on_other_days(new: str, old: str) -> bool:
    """Return True for two claims of one routine on different days of the week: both may hold."""
    ours, theirs = _ROUTINE.fullmatch(new), _ROUTINE.fullmatch(old)
    if ours is None or theirs is None:
        return False
    what, days = ({each[part].casefold() for each in (ours, theirs)} for part in ("what", "days"))
    return len(what) == 1 and len(days) == 2


def changes_dose(new: str, old: str, *, is_change: bool = False) -> bool:
    """Return True for two doses of one medicine that somebody is on: "is on 10 mg of Ramipril", "takes 5 mg of …".

    Who takes 10 mg may take 5 mg at another time of the day, unless words say that it changed (`is_change`).
    """
    ours, theirs = _TAKES.fullmatch(new), _TAKES.fullmatch(old) or _PUT_ON.fullmatch(old)
    if ours is None or theirs is None or not (is_change or " is on " in new):
        return False
    is_same = all(ours[part].casefold() == theirs[part].casefold() for part in ("who", "drug"))
    return is_same and ours["dose"] != theirs["dose"]


def read_other_time(said: ClauseContext, known: Sequence[str]) -> Statement | None:
    """Return that a known claim's thing was moved or has another dose, if a clause says so of one thing."""
    if said.clause.is_hedged or _ONCE.search(said.clause.sentence):
        return None
    text = said.clause.text.strip(" .!")
    if match := _DOSED.search(said.clause.sentence):
        return _with_dose(said, match, known)
    match = _MOVED.fullmatch(_END.split(text)[0]) or _MOVED_BY.fullmatch(_END.split(text)[0])
    if match is None or (match["to"] and not _is_time(match["to"])):
        return None
    if match["to"] is None and not match["been"]:
        return None
    spoken = match["thing"]
    things = {thing for claim in known for thing in _things_of(claim) if _may_name(spoken, thing)}
    if len({_key(thing) for thing in things}) != 1:
        return None
    thing = min(things)
    for short, long in _SHORT.items():
        # a claim is made of the words that were said
        thing = thing.replace(long, short) if re.search(rf"\b{short}\b", spoken, re.IGNORECASE) else thing
    statement, claim = _statement(said), f"{thing} was moved"
    if match["to"] is None:
        return replace(statement, claim=f"{thing} was put off" if "put off" in text else claim)
    dates = find_dates(match["to"], at=said.turn.timestamp, tense=Tense.FUTURE)
    is_weekly = re.search(rf"\b(?:{'|'.join(WEEKDAYS)})s\b", match["to"], re.IGNORECASE)
    date = dates[0] if len(dates) == 1 and not is_weekly else None
    to = f"{match['to'][: date.begin]}{date.words}{match['to'][date.stop :]}" if date else match["to"]
    to = re.sub(r"^(?:on|in) ", "", to)
    return replace(statement, claim=f"{claim} to {to}", valid_to=date.end if date else None)


def _is_time(words: str) -> bool:
    """Return True for "14 June" and "half past nine", but not for "York" and "room 10"."""
    return _IS_TIME.search(_PLACE.sub("", words)) is not None


def _with_dose(said: ClauseContext, match: re.Match[str], known: Sequence[str]) -> Statement | None:
    """Return the new dose of a medicine of which a known claim tells another one."""
    for claim in known:
        old = _TAKES.fullmatch(claim) or _PUT_ON.fullmatch(claim)
        if old and old["drug"].casefold() == match["drug"].casefold():
            unit = match["unit"] or old["dose"].lstrip("0123456789., ")
            who = f"{old['who'][:1].upper()}{old['who'][1:]}"
            new = f"{who} is on {match['dose']} {unit} of {old['drug']}"
            return replace(_statement(said), claim=new) if changes_dose(new, claim.replace(old["who"], who)) else None
    return None


def _statement(said: ClauseContext) -> Statement:
    voice = Voice(speaker=said.speaker.label, is_own=True)
    subject = Subject(label=said.speaker.label, rest="", voice=voice, names=said.speaker.names, is_third=True)
    statement = make_statement(said, subject, attribute="moved", value=said.clause.text, claim="")
    return replace(statement, is_correction=False)


def _things_of(claim: str) -> list[str]:
    """Return the thing that a claim sets a time for: "Mila's swim class" of "Mila has swim class on Wednesdays"."""
    if (match := _HAS.fullmatch(claim)) and _TIME.search(match["when"]):
        return [f"{match['who']}'s {match['thing']}"]
    if (match := _SET.fullmatch(claim)) and _TIME.search(match["when"]):
        return [match["thing"]]
    return []


def _key(thing: str) -> str:
    name = _DETERMINER.sub("", thing.casefold().replace("s' ", "s's "))
    return _APPOINTMENT.sub("", " ".join(_SHORT.get(word, word) for word in name.split()))


def _may_name(spoken: str, thing: str) -> bool:
    """Return True if "the move" may be "the office move", and "swim class" "Mila's swim class"; "my" is the user's."""
    ours, theirs = _key(spoken), _key(thing)
    if ours == theirs:
        return True
    is_of_another = "'s" in theirs and re.match(r"(?:my|our) ", spoken.casefold())
    return theirs.endswith(f" {ours}") and not is_of_another and "'s" not in ours
