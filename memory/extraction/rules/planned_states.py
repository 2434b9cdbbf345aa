"""Plans of another home or job, and what takes them back: "The move to Berlin is off", "Acme withdrew the offer".

A plan of this kind is a claim with a date, such as "The user is moving to Berlin in March 2027", beside which stands
what begins with it, "The user lives in Berlin" (`beginnings`). It is over once somebody says that it does not take
place, that they stay, or that another one takes its place.
"""

import re
from dataclasses import dataclass

from memory.dates import MONTHS
from memory.extraction.rules.names import NAME

_DATE = rf"\b(?:(?:\d{{1,2}} )?(?:{'|'.join(MONTHS)}) \d{{4}})\b"
_WHO = r"(?P<who>\S.{0,60}?)"
_WILL = r"(?:(?:is|are|will|will be|(?:is|are) going to) )?(?:(?:also|now|finally|actually) )?"
_PLANNED_HOME = re.compile(
    rf"{_WHO} {_WILL}(?:mov|relocat)(?:e|es|ing) (?:back )?(?:(?:home|house|flat) )?to (?P<value>{NAME})(?P<rest>.*)"
)
_PLANNED_JOB = re.compile(
    rf"{_WHO} {_WILL}(?:(?:start|begin)(?:s|ning|ing)?(?: [\w' -]{{1,60}}?)? with"
    rf"|(?:(?:start|begin)(?:s|ning|ing)?|works?)(?: [\w' -]{{1,60}}?)? (?:at|for))"
    rf" (?P<value>{NAME})(?P<rest>.*)"
)
_AFTER_ALL = r"(?: (?:after all|any ?more|now|for now))*"
_NOT = (
    r"(?:(?:is|are) (?:not|no longer) (?:going to |planning to )?|will not (?:be )?|(?:has |have )?decided (?:not to"
    r"|against) |no longer )"
)
_WHEN = (
    r"(?:,? (?:next|this|in|on|from) (?:the )?(?:month|year|summer|autumn|winter|spring"
    rf"|(?:.{{0,20}} )?(?:{'|'.join(MONTHS)})(?: \d{{4}})?))?"
)
_BEHIND = rf"(?:{_WHEN}{_AFTER_ALL}|{_AFTER_ALL}{_WHEN})\.?"
_OFF = (
    r"(?:(?:is|was|has been|got|is now) (?:(?:all|now) )?(?:off|cancell?ed|called off|postponed|put off|delayed|on hold"
    r"|put on hold|not happening|withdrawn|rescinded)|fell through|has fallen through|is not happening)"
)
_NO_HOME = re.compile(
    rf"(?:{_WHO} {_NOT}(?:(?:mov|relocat)(?:e|es|ing)|the move)(?: (?:back )?to (?P<value>{NAME}))?{_BEHIND}"
    rf"|(?P<whose>.{{1,40}}?)(?:'s)? (?:big |planned )?move(?: to (?P<value2>{NAME}))? {_OFF}{_BEHIND}"
    rf"|(?P<who3>\S.{{0,60}}?) (?:has |have |had to )?(?:cancel(?:l?ed)?|call(?:ed)? off|postponed?|put off)"
    rf" (?:the|their|his|her) move(?: to (?P<value3>{NAME}))?{_BEHIND}"
    rf"|(?P<who4>\S.{{0,60}}?) (?:is|are) staying(?: (?:put|home|(?:in|at) (?P<stays>{NAME}|home)))? after all\.?)"
)
_THE_JOB = r"(?:(?:job )?offer|(?:new )?(?:job|position|role|post))"
_NO_JOB = re.compile(
    rf"(?:{_WHO} {_NOT}(?:(?:start|begin)(?:s|ning|ing)?|work(?:s|ing)?|join(?:s|ing)?|tak(?:e|es|ing))"
    rf"(?: [\w' -]{{1,40}}?)?(?: (?:at|for|with))? (?P<value>{NAME}){_BEHIND}"
    rf"|(?P<value2>{NAME}) (?:has |have )?(?:withdrew|withdrawn|rescinded|revoked|pulled|took back|cancell?ed)"
    rf" (?:the|their|its|her|his|my|our) {_THE_JOB}{_BEHIND}"
    rf"|.{{1,40}}? {_THE_JOB} (?:at|from|with|of) (?P<value3>{NAME}) {_OFF}{_BEHIND}"
    rf"|(?P<who3>\S.{{0,60}}?) (?:has |have )?(?:turned down|declined|rejected) (?:the {_THE_JOB}"
    rf" (?:at|from|with|of) (?P<value4>{NAME})|(?P<value5>{NAME})'s? {_THE_JOB}){_BEHIND}"
    rf"|(?P<who4>\S.{{0,60}}?) (?:is|are) staying (?:at|with) (?P<stays>{NAME}) after all\.?)"
)
_INSTEAD = re.compile(r"\binstead\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A planned home or job: whose it is, which one, and the words behind its name."""

    is_home: bool
    who: str
    value: str
    rest: str


def _read_plan(claim: str) -> _Plan | None:
    for pattern in (_PLANNED_HOME, _PLANNED_JOB):
        match = pattern.fullmatch(claim)
        if match and re.search(_DATE, match["rest"]):
            is_home = pattern is _PLANNED_HOME
            return _Plan(is_home=is_home, who=match["who"], value=match["value"], rest=match["rest"])
    return None


def cancels_planned_state(new: str, old: str) -> bool:
    """Return True if a claim says that the move or the job that another one plans does not take place, or not then."""
    plan = _read_plan(old)
    match = None if plan is None else (_NO_HOME if plan.is_home else _NO_JOB).fullmatch(new)
    if plan is None or match is None:
        return False
    groups = {name: value for name, value in match.groupdict().items() if value}
    value = next((text for name, text in groups.items() if name.startswith("value")), plan.value)
    who = next((text for name, text in groups.items() if name.startswith("who")), "The")
    is_theirs = who.removesuffix("'s") in (plan.who, "The") or who in ("Their", "His", "Her")
    months, planned = (frozenset(month for month in MONTHS if month in text) for text in (new, plan.rest))
    return is_theirs and value == plan.value and groups.get("stays", "") != plan.value and months <= planned


def replaces_planned_state(new: str, old: str) -> bool:
    """Return True for two plans of somebody's home, or job, that cannot both hold.

    They are to happen at once, or in the same place at another time, or one of them takes place instead.
    """
    ours, theirs = _read_plan(new), _read_plan(old)
    if ours is None or theirs is None or (ours.is_home, ours.who) != (theirs.is_home, theirs.who):
        return False
    days = [re.findall(_DATE, plan.rest) for plan in (ours, theirs)]
    is_other = ours.value != theirs.value
    return (is_other and (days[0] == days[1] or _INSTEAD.search(new) is not None)) or (
        not is_other and days[0] != days[1]
    )


def begins_with(plan: str, state: str) -> bool:
    """Return True if a planned claim is the plan of what another claim says that begins: "The user lives in Berlin"."""
    read = _read_plan(plan)
    verbs = r"lives? in" if read and read.is_home else r"works? (?:at|for)"
    return read is not None and re.match(rf"{re.escape(read.who)} {verbs} {re.escape(read.value)}\b", state) is not None
