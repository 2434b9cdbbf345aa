"""Days that something was arranged for: "I booked a table for 14 November" is about a day to come, though it is past.

Behind "for" and "to" stands the day that was arranged. Behind "on" it may be the day of arranging ("I booked the flight
on 14 November"). Appointments, what people sign up for, and what they arrange for somebody to do are on the nearer day.
"""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from memory.dates import WEEKDAYS, Bound, DateMention, DateUnit, Tense, find_dates
from memory.extraction.rules.words import words

ARRANGING = words(
    "book schedule reserve order plan organize organise rent hire set make get buy sign register enter enroll invite"
)
"""Verbs in the base form that set a day to come."""
_ARRANGED = (
    r"(?:booked|(?:re)?scheduled|arranged|reserved|ordered|planned|organi[sz]ed|rented|hired|set|made|got|gotten|bought"
    r"|signed|registered|entered|enrolled|confirmed|agreed|requested|invited|pencilled)"
)
_MOVED = (
    r"(?:moved|slip(?:s|ped)|bumped|postponed|(?:re)?scheduled|pushed|delayed|deferred|shifted|changed|put"
    r"|brought)"
)
_HOUR = r"(?: (?:\d{1,2}(?:[:.]\d\d)?(?: ?[ap]m)?|noon|midday|breakfast|lunch|dinner))?"
_IS_FOR = re.compile(
    rf"\b{_ARRANGED}\b.* (?:for{_HOUR}|from (?:the )?\w+ to) $|\b{_MOVED}\b.* (?:to|for){_HOUR} $"
    r"|\b(?:agreed|settled|decided|locked) $",
    re.IGNORECASE,
)
_IS_TO_BE = re.compile(
    r"\b(?:is|are|begins?|starts?|opens?|closes?|ends?|ships?|launch(?:es)?|takes? place|happens?|goes|comes?"
    r"|arrives?|leaves?|lands?|sees?|expires?|returns?|moves?|kicks?|falls?|delivers?|meets?|joins?|resumes?|finish(?:es)?|plays?"
    r"|airs?|stops?|gets?|premieres?)"
    r"(?: (?!(?:to|not|was|were|had|did|took|went|got|came|made|met|saw|left|said|\w+ed)\b)[\w'-]+){0,3} $",
    re.IGNORECASE,
)
"""Verbs in the present right before a date, whatever has happened before: "we agreed that the freeze begins on …"."""
_IS_BEGINNING = re.compile(r"\b(?:voted|decided|agreed|announced|approved)\b.* (?:as of|effective) $", re.IGNORECASE)
_PUT_OFF = re.compile(r"\b(?:postponed|put off|delayed|pushed|deferred|extended|adjourned)\b", re.IGNORECASE)
_IS_APPOINTMENT = re.compile(
    r"\b(?:signed up|registered|enrolled)\b|\btickets? (?:for|to) "
    r"|\b(?:made|got|booked|arranged|scheduled|reserved)\b.* an? (?:[\w'-]+ ){0,3}(?:appointment|check-?up|slot|viewing"
    r"|interview|consultation|table)\b"
    r"|\b(?:arranged|booked|hired|organi[sz]ed|asked|invited)\b.* to [a-z]+\b",
    re.IGNORECASE,
)
_IS_ONCE = re.compile(
    r"\b(?:funeral|wake|burial|wedding|christening|baptism|graduation|interview|surgery|operation|op|scan|mri|x-ray|biopsy"
    r"|check-?up|appointment|dentist|exam|hearing|trial|closing|flight|viewing|handover|inspection|premiere|ceremony"
    r"|memorial|housewarming|move)$"
)
_ON_DAY = re.compile(rf"(?:{'|'.join(WEEKDAYS)})\b(?!.*\bevery\b)", re.IGNORECASE)
"""The day of something that takes place once: "the funeral is Friday" is about the coming one."""
_LEAD_CHARACTERS = 160
_JUST_OVER = timedelta(days=31)
"""A day that was so long ago at most may be meant by "for 3 October" as well as the next one."""


def find_arranged_dates(text: str, *, at: datetime, tense: Tense | None) -> list[DateMention]:
    """Return the dates of a text (`find_dates`), of which those that something was arranged for are to come."""
    found = {date.begin: date for date in find_dates(text, at=at, tense=tense)}
    if tense is Tense.FUTURE:
        return list(found.values())
    past = {date.begin: date for date in find_dates(text, at=at, tense=Tense.PAST)}
    for ahead in find_dates(text, at=at, tense=Tense.FUTURE):
        before, lead = past.get(ahead.begin, ahead), _lead_of(text, ahead)
        is_day = any(map(str.isdecimal, text[ahead.begin : ahead.stop]))
        if before == ahead or not is_day:
            continue
        if _is_for(lead, ahead) or _IS_BEGINNING.search(lead) or _IS_TO_BE.search(lead):
            found.pop(ahead.begin, None)
            if at - before.end >= _JUST_OVER:
                found[ahead.begin] = ahead
        elif _IS_APPOINTMENT.search(lead) and ahead.start - at < at - before.start:
            found[ahead.begin] = ahead
    return [found[begin] for begin in sorted(found)]


def _is_for(lead: str, date: DateMention) -> bool:
    is_until = date.bound is Bound.UNTIL and _PUT_OFF.search(lead) is not None
    return is_until or _IS_FOR.search(lead) is not None


def _lead_of(text: str, date: DateMention) -> str:
    return text[max(0, date.begin - _LEAD_CHARACTERS) : date.begin]


def find_coming_day(text: str, *, at: datetime) -> DateMention | None:
    """Return the only date of a text, if it is a day to come; None if the same day of the last year is just over."""
    found = find_dates(text, at=at, tense=Tense.FUTURE)
    past = {date.begin: date for date in find_dates(text, at=at, tense=Tense.PAST)}
    if len(found) != 1 or found[0].unit is not DateUnit.DAY or found[0].end <= at:
        return None
    before = past.get(found[0].begin, found[0])
    return None if before != found[0] and at - before.end < _JUST_OVER else found[0]


def find_dates_behind(verb: str, text: str, *, at: datetime, tense: Tense | None) -> list[DateMention]:
    """Return the dates of the text behind a verb in the past."""
    found = find_arranged_dates(f"{verb} {text}", at=at, tense=tense)
    shift = len(verb) + 1
    return [replace(date, begin=max(0, date.begin - shift), stop=date.stop - shift) for date in found]


def is_arranged(text: str, date: DateMention) -> bool:
    """Return True for a date of a text, with a day or without, that something was arranged for."""
    lead = _lead_of(text, date)
    is_to_be = _IS_TO_BE.search(lead) is not None and any(map(str.isdecimal, text[date.begin : date.stop]))
    return _is_for(lead, date) or is_to_be or _IS_APPOINTMENT.search(lead) is not None


def on_coming_day(thing: str, words: str) -> str:
    """Return "on Friday at 11" for the words "Friday at 11" after "the funeral is", and others as they are."""
    return f"on {words}" if _IS_ONCE.search(thing) and _ON_DAY.match(words) else words
