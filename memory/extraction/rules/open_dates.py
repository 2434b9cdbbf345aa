"""Find the dates of claims in the speaker's own words, write them out, and tell until when the claims are true."""

import re
from collections.abc import Sequence
from datetime import datetime

from memory.dates import Bound, DateMention, Tense
from memory.extraction.rules.arrangements import find_arranged_dates, is_arranged
from memory.extraction.rules.inflection import AUXILIARIES, bare_word, is_base_form, is_past_form, is_third_form
from memory.extraction.rules.values import with_days_of_stay, with_last_day
from memory.models.facts import Temporal

RELATIVE_DAY = re.compile(
    r"\b(?:tomorrow|yesterday|(?:this|next|last) (?:week|month|year)|ago|the other day)\b", re.IGNORECASE
)
"""Days that only the day of the turn explains."""
_RECURRING = re.compile(
    r"\b(?:every|each|ever|always|usually|never|often|used to)\b|\bof the (?:month|year|week|quarter)\b", re.I
)
_PREPOSITION = re.compile(
    r"\b(?:for|of|by|from|to|until|till|since|before|after|around|about|on|in|at) $", re.IGNORECASE
)
_DAY_NAME = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.IGNORECASE)
_WEEKDAY = re.compile(rf"(?:on |every |by )?{_DAY_NAME.pattern}", re.IGNORECASE)
_RANGE = re.compile(r"\b(?:from|between)\b.+\b(?:to|and|until|till)\b", re.IGNORECASE)
_IS_ANNOUNCED = re.compile(r"\b(?:decided|agreed|booked|planned|scheduled|announced|promised)\b")
_IS_AHEAD = re.compile(r" (?:will|is going to|are going to|(?:is|are) (?:not )?\w+ing) ")
_WILL = re.compile(r" (?:will|going to) ")
_IS_PERFECT = re.compile(r"\b(?:has|have) \w+(?:ed|en|t|own|ung|un|d)\b")


def date_claim(claim: str, said_at: datetime) -> tuple[str, Temporal, datetime | None]:
    """Return the claim with its dates written out, when it is true, and until when: a plan to the end of its date."""
    dates, is_ahead = dates_of(claim, said_at), _IS_AHEAD.search(claim) is not None
    date = dates[0] if len(dates) == 1 and dates[0].end > said_at else None
    is_plan = date is not None and (is_ahead or is_arranged(claim, date) or _is_on(claim, date))
    if (is_ahead or is_plan) and not _RECURRING.search(claim):
        whole, last = with_last_day(claim, at=said_at)
        if last is not None:
            return whole, Temporal.FUTURE, last.end
    is_over = is_past(claim) and not is_plan
    whole, last = (claim, None) if is_over else with_days_of_stay(claim, at=said_at)
    if last is not None:
        return whole, Temporal.FUTURE, last.end
    written = write_dates(claim, dates, is_once=is_plan or is_over)
    if date is not None and date.bound is Bound.UNTIL and not is_over and not _RECURRING.search(claim):
        whole = f"{claim[: date.begin]}until {date.words.partition(' ')[2]}{claim[date.stop :]}"
        is_to_come = is_past(claim) or _WILL.search(claim)
        return whole, Temporal.FUTURE if is_to_come else Temporal.CURRENT, date.end
    if date is None or not is_plan:
        return written, Temporal.PAST if is_past(claim) else Temporal.CURRENT, None
    is_until = date.bound is Bound.WITHIN and date.words.partition(" ")[2] in written
    return written, Temporal.FUTURE, date.end if is_until else None


def _is_on(claim: str, date: DateMention) -> bool:
    """Return True for a day of a month that something "is" on: "The party is on 5 December"."""
    is_day = any(map(str.isdecimal, claim[date.begin : date.stop]))
    return is_day and date.bound is Bound.WITHIN and claim[: date.begin].endswith((" is ", " are "))


def dates_of(claim: str, said_at: datetime) -> list[DateMention]:
    """Return the dates of a claim, without those whose year depends on a tense that tells nothing.

    "I have entered the race on 12 July" may be about a past or a coming July.
    """
    before, ahead = (find_arranged_dates(claim, at=said_at, tense=tense) for tense in (Tense.PAST, Tense.FUTURE))
    in_past = is_past(claim)
    if _IS_PERFECT.search(claim) or (in_past and _IS_ANNOUNCED.search(claim)):
        return [date for date in before if date in ahead]
    return before if in_past or re.search(r"\bsince\b", claim) else ahead


def is_past(claim: str) -> bool:
    """Return True if the first verb of a claim is in the past."""
    # the month is no auxiliary
    following = [bare_word(token) for token in claim.split()[1:] if not token.startswith("May")]
    if auxiliary := next((word for word in following if word in AUXILIARIES), ""):
        return auxiliary in ("was", "were", "had", "did")
    for word in following:
        if is_third_form(word):
            return False
        if is_past_form(word) and not is_base_form(word):
            return True
    return False


def write_dates(claim: str, dates: Sequence[DateMention], *, is_once: bool = False) -> str:
    """Return the claim with its dates written out. What may come again stays as it was said, and so do ranges.

    A day of the week may come again, unless it is the only one of what is planned or done once ("Rudi died on Sunday").
    """
    if _RANGE.search(claim) or _RECURRING.search(claim):
        return claim
    is_one_day = is_once and len(_DAY_NAME.findall(claim)) == 1
    for date in sorted(dates, key=lambda each: -each.begin):
        is_weekday = _WEEKDAY.fullmatch(claim[date.begin : date.stop].strip()) is not None
        if date.bound is Bound.WITHIN and (is_one_day or not is_weekday):
            before = claim[: date.begin]
            written = re.sub(r"^(?:on|in) ", "", date.words) if _PREPOSITION.search(before) else date.words
            claim = f"{before}{written}{claim[date.stop :]}"
    return claim
