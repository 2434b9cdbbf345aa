"""Find the dates of claims in the speaker's own words, and write them out."""

import re
from collections.abc import Sequence
from datetime import datetime

from memory.dates import Bound, DateMention, Tense, find_dates
from memory.extraction.rules.inflection import AUXILIARIES, bare_word, is_base_form, is_past_form, is_third_form

RELATIVE_DAY = re.compile(
    r"\b(?:tomorrow|yesterday|(?:this|next|last) (?:week|month|year)|ago|the other day)\b", re.IGNORECASE
)
"""Days that only the day of the turn explains."""
_RECURRING = re.compile(
    r"\b(?:every|each|ever|always|usually|never|often)\b|\bof the (?:month|year|week|quarter)\b", re.I
)
_PREPOSITION = re.compile(
    r"\b(?:for|of|by|from|to|until|till|since|before|after|around|about|on|in|at) $", re.IGNORECASE
)
_WEEKDAY = re.compile(r"(?:on |every |by )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.IGNORECASE)
_RANGE = re.compile(r"\b(?:from|between)\b.+\b(?:to|and|until|till)\b", re.IGNORECASE)
_IS_ARRANGED = re.compile(r"\b(?:decided|agreed|booked|planned|scheduled|announced|promised)\b")
_IS_PERFECT = re.compile(r"\b(?:has|have) \w+(?:ed|en|t|own|ung|un|d)\b")


def dates_of(claim: str, said_at: datetime) -> list[DateMention]:
    """Return the dates of a claim, without those whose year depends on a tense that tells nothing.

    "I have signed up for the race on 12 July" may be about a past or a coming July, and so may "we agreed on 12 July".
    """
    before, ahead = (find_dates(claim, at=said_at, tense=tense) for tense in (Tense.PAST, Tense.FUTURE))
    in_past = is_past(claim)
    if _IS_PERFECT.search(claim) or (in_past and _IS_ARRANGED.search(claim)):
        return [date for date in before if date in ahead]
    return before if in_past or re.search(r"\bsince\b", claim) else ahead


def is_past(claim: str) -> bool:
    """Return True if the first verb of a claim is in the past."""
    following = [bare_word(token) for token in claim.split()[1:]]
    if auxiliary := next((word for word in following if word in AUXILIARIES), ""):
        return auxiliary in ("was", "were", "had", "did")
    for word in following:
        if is_third_form(word):
            return False
        if is_past_form(word) and not is_base_form(word):
            return True
    return False


def write_dates(claim: str, dates: Sequence[DateMention]) -> str:
    """Return the claim with its dates written out. What may come again stays as it was said, and so do ranges."""
    if _RANGE.search(claim) or _RECURRING.search(claim):
        return claim
    for date in sorted(dates, key=lambda each: -each.begin):
        if date.bound is Bound.WITHIN and not _WEEKDAY.fullmatch(claim[date.begin : date.stop].strip()):
            before = claim[: date.begin]
            written = re.sub(r"^(?:on|in) ", "", date.words) if _PREPOSITION.search(before) else date.words
            claim = f"{before}{written}{claim[date.stop :]}"
    return claim
