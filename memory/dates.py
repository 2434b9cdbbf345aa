"""Dates that a text mentions, resolved against the time at which it was said; and whether a client's time has come.

The rules are strict. Words that may not be dates are ignored ("may", "sat", "second", "fall"), and so are ambiguous
dates (03/04/2023, "on Tuesday" without a tense) and vague ones ("a few weeks ago", "last summer", whose months depend
on the hemisphere). To add a form, add a `_DateForm` to `_FORMS`: one pattern and one function.

Conventions where English has none: weeks begin on Monday; "last Tuesday" and "next Tuesday" are the nearest ones before
and after the day; "two weeks ago" is the calendar week of the day 14 days before, and so for months and years.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum

from dateutil.relativedelta import relativedelta

CLOCK_SKEW = timedelta(minutes=5)
"""Time that a client's clock may be ahead of this one."""


def has_come(time: datetime, *, now: datetime) -> bool:
    """Return True if a client's time has a zone and is not in the future, apart from CLOCK_SKEW."""
    return time.tzinfo is not None and time <= now + CLOCK_SKEW


class DateUnit(StrEnum):
    """The precision of a date."""

    DAY = "day"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


class Tense(StrEnum):
    """The direction in which a date without a year lies from the reference day."""

    PAST = "past"
    FUTURE = "future"


class Bound(StrEnum):
    """The relation of a statement to the time range that it mentions."""

    WITHIN = "within"
    SINCE = "since"
    """It began then."""
    UNTIL = "until"
    """It ended then."""
    LASTING = "lasting"
    """It lasted that long ("for three years"). If it still lasts at the reference time, it began in the range."""
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class DateMention:
    """A mention of a date: `text[begin:stop]` names the half-open range of whole days from `start` to `end`.

    The days are in the zone of the reference time.
    """

    begin: int
    stop: int
    start: datetime
    end: datetime
    unit: DateUnit
    bound: Bound = Bound.WITHIN

    @property
    def words(self) -> str:
        """The range as a phrase without a reference time: "on 3 May 2023", "in May 2023", "in 2023"."""
        day = f"{self.start.day} {MONTHS[self.start.month - 1]} {self.start.year}"
        if self.unit is DateUnit.YEAR and self.end.year > self.start.year + 1:
            return f"from {self.start.year} to {self.end.year - 1}"
        return {
            DateUnit.DAY: f"on {day}",
            DateUnit.WEEKEND: f"on the weekend of {day}",
            DateUnit.WEEK: f"in the week of {day}",
            DateUnit.MONTH: f"in {MONTHS[self.start.month - 1]} {self.start.year}",
            DateUnit.YEAR: f"in {self.start.year}",
        }[self.unit]


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "a couple of": 2, "a couple": 2, "couple of": 2,
}  # fmt: skip

_MONTH_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, start=1)} | {
    name[:3].lower(): number for number, name in enumerate(MONTHS, start=1)
}
_MONTH_NUMBERS["sept"] = 9

# after a preposition a full capitalized name is enough; short or lower-case months need a day or a year
_NAMED_MONTH = "|".join(MONTHS)
_MONTH = "|".join(f"{name}|{name[:3]}\\b\\.?" for name in MONTHS) + r"|Sept\b\.?"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
_NEAR_YEAR = r"(?P<year>(?:last|this|next) year)"
_AMOUNT = r"(?P<amount>[0-9]{1,3}|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
_UNITS = r"(?P<unit>day|week(?:end)?|month|year)s?"
_WEEKDAY = "|".join(WEEKDAYS)
# "last Fri" is a day, "at last sat" is not
_SHORT_WEEKDAY = r"(?-i:Mon|Tues?|Wed|Thurs?|Thu|Fri|Sat|Sun)"
_WHEN = r"(?:(?:on|in|over|by|until|till|since|from|before|after) )?"
_ON_WEEKDAY = rf"{_WHEN}(?:(?P<weekday>(?i:{_WEEKDAY})|{_SHORT_WEEKDAY}),? )?"
# a month in lower case behind a weekday and a day is one: "monday 9 nov"
_WITH_WEEKDAY = rf"{_WHEN}(?P<weekday>{_WEEKDAY}|mon|tues?|wed|thurs?|thu|fri|sat|sun),? "
_NO_YEAR = r"(?P<year>)(?!,? (?:(?:19|20)[0-9]{2}|(?:last|this|next) year)\b)"

_Resolve = Callable[[re.Match[str], date, Tense | None], tuple[date, DateUnit] | None]


@dataclass(frozen=True, slots=True)
class _DateForm:
    pattern: re.Pattern[str]
    resolve: _Resolve


def find_dates(text: str, *, at: datetime, tense: Tense | None = None) -> list[DateMention]:
    """Return the dates that a text mentions, in its order, without overlaps. `at` is aware, in the zone of the text.

    Without a tense, dates that do not name their year or week are left out. Never raises for any text.
    """
    found: list[DateMention] = []
    for dated in sorted(_date_candidates(text, at, tense), key=lambda dated: (dated.begin, -dated.stop)):
        if not found or dated.begin >= found[-1].stop:
            found.append(dated)
    return found


def _date_candidates(text: str, at: datetime, tense: Tense | None) -> Iterator[DateMention]:
    for form in _FORMS:
        for match in form.pattern.finditer(text):
            try:
                # what began, whatever the tense of its verb: "we have been selling since May"
                began = tense is not None and match[0].lower().startswith("since ")
                resolved = form.resolve(match, at.date(), Tense.PAST if began else tense)
                if resolved is not None:
                    yield _date_mention(match, *resolved, at)
            except (ValueError, OverflowError):
                # 31 February, or a year outside the calendar
                continue
    yield from _spans(text, at)


def _date_mention(match: re.Match[str], first: date, unit: DateUnit, at: datetime) -> DateMention:
    start = datetime.combine(first, time(), tzinfo=at.tzinfo)
    end = datetime.combine(first + _LENGTHS[unit], time(), tzinfo=at.tzinfo)
    bound = _BOUNDS.get(match[0].split(maxsplit=1)[0].lower(), Bound.WITHIN)
    return DateMention(begin=match.start(), stop=match.end(), start=start, end=end, unit=unit, bound=bound)


_BOUNDS = {
    "since": Bound.SINCE,
    "from": Bound.SINCE,
    "until": Bound.UNTIL,
    "till": Bound.UNTIL,
    "by": Bound.BEFORE,
    "before": Bound.BEFORE,
    "after": Bound.AFTER,
}

_LENGTHS = {
    DateUnit.DAY: relativedelta(days=1),
    DateUnit.WEEKEND: relativedelta(days=2),
    DateUnit.WEEK: relativedelta(days=7),
    DateUnit.MONTH: relativedelta(months=1),
    DateUnit.YEAR: relativedelta(years=1),
}


def _amount(words: str) -> int:
    return NUMBERS.get(words.lower()) or int(words)


def _first_of(day: date, unit: DateUnit) -> date:
    """Return the first day of the week, weekend, month or year around a day."""
    if unit is DateUnit.WEEK:
        return day - timedelta(days=day.weekday())
    if unit is DateUnit.WEEKEND:
        return day - timedelta(days=day.weekday() - 5)
    if unit is DateUnit.MONTH:
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit is DateUnit.YEAR else day


def _shift(day: date, unit: DateUnit, amount: int) -> date:
    steps = {DateUnit.WEEKEND: relativedelta(weeks=amount), DateUnit.WEEK: relativedelta(weeks=amount)}
    months = {DateUnit.MONTH: relativedelta(months=amount), DateUnit.YEAR: relativedelta(years=amount)}
    return _first_of(day + (steps | months).get(unit, relativedelta(days=amount)), unit)


def _iso(match: re.Match[str], _day: date, _tense: Tense | None) -> tuple[date, DateUnit]:
    return date(int(match["year"]), int(match["month"]), int(match["day"])), DateUnit.DAY


def _slashed(match: re.Match[str], _day: date, _tense: Tense | None) -> tuple[date, DateUnit] | None:
    """Resolve 13/04/2023, but no ambiguous date such as 03/04/2023."""
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if (first > 12) == (second > 12) and first != second:
        return None
    day, month = (first, second) if first > 12 else (second, first)
    return date(year, month, day), DateUnit.DAY


def _month_number(match: re.Match[str]) -> int:
    return _MONTH_NUMBERS[match["month"].rstrip(".").lower()]


def _year_number(words: str, day: date) -> int:
    """Return the year that a number or "next year" is."""
    return int(words) if words.isdecimal() else day.year + {"last": -1, "this": 0, "next": 1}[words.split()[0].lower()]


def _day_of_month(match: re.Match[str], day: date, tense: Tense | None) -> tuple[date, DateUnit] | None:
    """Resolve "3 May". A weekday tells the year whatever the tense, as the day has it in one of three years."""
    month, number = _month_number(match), int(match["day"])
    if match["year"]:
        return date(_year_number(match["year"], day), month, number), DateUnit.DAY
    if match["weekday"]:
        weekday = _weekday_number(match)
        years = (year for year in range(day.year - 1, day.year + 2) if number <= monthrange(year, month)[1])
        if found := [named for year in years if (named := date(year, month, number)).weekday() == weekday]:
            return found[0], DateUnit.DAY
    return None if tense is None else (_nearest(day, tense, month, number), DateUnit.DAY)


def _nearest(day: date, tense: Tense, month: int, number: int = 1) -> date:
    """Return the latest such date up to the day in the past tense, the soonest one from the day on in the future."""
    named = date(day.year, month, number)
    if tense is Tense.PAST:
        return named if named <= day else date(day.year - 1, month, number)
    return named if named >= day else date(day.year + 1, month, number)


def _month_of_year(match: re.Match[str], day: date, _tense: Tense | None) -> tuple[date, DateUnit]:
    return date(_year_number(match["year"], day), _month_number(match), 1), DateUnit.MONTH


def _month_alone(match: re.Match[str], day: date, tense: Tense | None) -> tuple[date, DateUnit] | None:
    month, this_month = _month_number(match), day.replace(day=1)
    lead = (match["lead"] or "").lower()
    if lead == "this":
        return date(day.year, month, 1), DateUnit.MONTH
    if lead == "last":
        return _nearest(this_month - timedelta(days=1), Tense.PAST, month), DateUnit.MONTH
    if lead == "next":
        return _nearest(this_month + relativedelta(months=1), Tense.FUTURE, month), DateUnit.MONTH
    return None if tense is None else (_nearest(this_month, tense, month), DateUnit.MONTH)


def _year(match: re.Match[str], _day: date, _tense: Tense | None) -> tuple[date, DateUnit]:
    return date(int(match["year"]), 1, 1), DateUnit.YEAR


def _named_day(match: re.Match[str], day: date, _tense: Tense | None) -> tuple[date, DateUnit]:
    name = match["name"].lower()
    shifts = {"the day before yesterday": -2, "the day after tomorrow": 2, "last night": -1}
    first = name.split(" ", maxsplit=1)[0]
    return day + timedelta(days=shifts.get(name, {"yesterday": -1, "tomorrow": 1}.get(first, 0))), DateUnit.DAY


def _unit_near_day(match: re.Match[str], day: date, _tense: Tense | None) -> tuple[date, DateUnit]:
    unit = DateUnit(match["unit"].lower())
    shift = {"last": -1, "this past": -1, "this": 0, "this coming": 0, "next": 1}
    lead = " ".join(match["lead"].lower().split())
    return _shift(day, unit, shift[lead]), unit


def _weekday_number(match: re.Match[str]) -> int:
    return [name[:3] for name in WEEKDAYS].index(match["weekday"][:3].lower())


def _weekday_near_day(match: re.Match[str], day: date, tense: Tense | None) -> tuple[date, DateUnit] | None:
    number = _weekday_number(match)
    lead = " ".join((match["lead"] or "").lower().split())
    back, ahead = (day.weekday() - number - 1) % 7 + 1, (number - day.weekday() - 1) % 7 + 1
    if lead in ("last", "this past") or (not lead and tense is Tense.PAST):
        return day - timedelta(days=back), DateUnit.DAY
    if lead in ("next", "this coming") or (not lead and tense is Tense.FUTURE):
        return day + timedelta(days=ahead), DateUnit.DAY
    return (_first_of(day, DateUnit.WEEK) + timedelta(days=number), DateUnit.DAY) if lead == "this" else None


def _weekday_of_month(match: re.Match[str], day: date, tense: Tense | None) -> tuple[date, DateUnit] | None:
    """Resolve "Tuesday the 14th": the nearest 14th that is a Tuesday, in one of four months."""
    if tense is None:
        return None
    weekday, number = _weekday_number(match), int(match["day"])
    step = -1 if tense is Tense.PAST else 1
    for months in range(4):
        month = day.replace(day=1) + relativedelta(months=step * months)
        found = month + timedelta(days=number - 1)
        if found.month == month.month and found.weekday() == weekday and (found - day).days * step >= 0:
            return found, DateUnit.DAY
    return None


def _ago(match: re.Match[str], day: date, _tense: Tense | None) -> tuple[date, DateUnit]:
    unit = DateUnit(match["unit"].lower())
    return _shift(day, unit, -_amount(match["amount"])), unit


def _from_now(match: re.Match[str], day: date, tense: Tense | None) -> tuple[date, DateUnit] | None:
    """Resolve "two days from now", and "in two days", which in the past tense is how long something took."""
    if not match["now"] and tense is not Tense.FUTURE:
        return None
    unit = DateUnit(match["unit"].lower())
    return _shift(day, unit, _amount(match["amount"])), unit


def _form(pattern: str, resolve: _Resolve, *, cased: bool = False) -> _DateForm:
    return _DateForm(re.compile(rf"(?<![\w/-])(?:{pattern})(?![\w/-])", 0 if cased else re.IGNORECASE), resolve)


_BEFORE_MONTH = (
    r"(?:(?:[Bb]ack )?[Ii]n (?:early |mid-?|late )?"
    r"|[Ss]ince |[Uu]ntil |[Tt]ill |[Bb]y |[Bb]efore |[Aa]fter |[Dd]uring )"
)
_LEAD = r"(?P<lead>last|next|this past|this coming|this)"
_PART_OF_DAY = r"(?: (?:morning|afternoon|evening|night))?"
# "on Monday and Friday evenings" is each week
_ONCE = rf"(?!(?:(?:,|,? and|,? or) (?:{_WEEKDAY}))* (?:morning|afternoon|evening|night)s\b)"
_FORMS = (
    _form(_WHEN + r"(?P<year>(?:19|20)[0-9]{2})-(?P<month>[01][0-9])-(?P<day>[0-3][0-9])", _iso),
    _form(_WHEN + r"(?P<first>[0-3]?[0-9])/(?P<second>[0-3]?[0-9])/(?P<year>(?:19|20)[0-9]{2})", _slashed),
    _form(_ON_WEEKDAY + rf"(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH}),? {_YEAR}", _day_of_month),
    _form(_ON_WEEKDAY + rf"(?P<month>{_MONTH}) (?:the )?{_DAY},? {_YEAR}", _day_of_month),
    _form(_ON_WEEKDAY + rf"(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH}),?(?: of)? {_NEAR_YEAR}", _day_of_month),
    _form(_ON_WEEKDAY + rf"(?P<month>{_MONTH}) (?:the )?{_DAY},?(?: of)? {_NEAR_YEAR}", _day_of_month),
    _form(_ON_WEEKDAY + rf"(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH})(?P<year>)", _day_of_month, cased=True),
    _form(_ON_WEEKDAY + rf"(?P<month>{_MONTH}) (?:the )?{_DAY}(?P<year>)", _day_of_month, cased=True),
    _form(_WITH_WEEKDAY + rf"(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH}){_NO_YEAR}", _day_of_month),
    _form(_WITH_WEEKDAY + rf"(?P<month>{_MONTH}) (?:the )?{_DAY}{_NO_YEAR}", _day_of_month),
    # "31 February 2020" is no date, and neither is "February 2020" in it
    _form(rf"(?<![0-9] )(?<![0-9][a-z][a-z] )(?:back )?{_WHEN}(?P<month>{_MONTH})(?: of|,)? {_YEAR}", _month_of_year),
    _form(rf"{_BEFORE_MONTH}(?P<month>{_NAMED_MONTH})(?: of)? {_NEAR_YEAR}", _month_of_year, cased=True),
    _form(rf"{_BEFORE_MONTH}(?P<lead>)(?P<month>{_NAMED_MONTH})", _month_alone, cased=True),
    _form(rf"{_WHEN}(?P<lead>[Ll]ast|[Nn]ext|[Tt]his) (?P<month>{_NAMED_MONTH})", _month_alone, cased=True),
    _form(rf"(?:(?:back )?in|since|until|till|by|before|after|during)(?: the year)? {_YEAR}", _year),
    _form(
        rf"{_WHEN}(?P<name>the day before yesterday|the day after tomorrow|last night"
        rf"|(?:yesterday|tomorrow){_PART_OF_DAY}|today|tonight|this (?:morning|afternoon|evening))",
        _named_day,
    ),
    _form(rf"{_WHEN}{_LEAD} (?P<unit>week(?:end)?|month|year)", _unit_near_day),
    _form(
        # "every last Friday", "the last Friday of the month" are many days
        rf"{_WHEN}(?<!every )(?<!each ){_LEAD} (?P<weekday>{_WEEKDAY}|{_SHORT_WEEKDAY}){_PART_OF_DAY}(?! of\b)",
        _weekday_near_day,
    ),
    _form(rf"(?:on|until|till) (?P<lead>)(?P<weekday>{_WEEKDAY}){_ONCE}{_PART_OF_DAY}", _weekday_near_day),
    _form(rf"{_WHEN}(?P<weekday>{_WEEKDAY}),? (?:the )?(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)", _weekday_of_month),
    _form(rf"(?:about |around )?{_AMOUNT} {_UNITS} ago", _ago),
    _form(rf"in (?:about |around )?{_AMOUNT} {_UNITS}(?:['’]s? time)?(?P<now>)", _from_now),
    _form(rf"{_AMOUNT} {_UNITS} (?P<now>from now)", _from_now),
)

_FOR = re.compile(
    r"(?<![\w/-])(?:for (?:about |around |almost |over |the (?:past|last) )?|over the (?:past|last) )"
    rf"{_AMOUNT} {_UNITS}(?! (?:old|ago|each|per|straight|every)|[\w/-])",
    re.IGNORECASE,
)
_FROM_TO = re.compile(
    r"(?<![\w/-])(?:from|between) (?P<first>(?:19|20)[0-9]{2}) (?:to|until|till|and) (?P<last>(?:19|20)[0-9]{2})"
    r"(?![\w/-])",
    re.IGNORECASE,
)


def _spans(text: str, at: datetime) -> Iterator[DateMention]:
    """Yield ranges: "for three years", which began three years ago, and "from 2015 to 2019"."""
    for match in _FOR.finditer(text):
        try:
            first, unit = _ago(match, at.date(), None)
            yield replace(_date_mention(match, first, unit, at), bound=Bound.LASTING)
        except (ValueError, OverflowError):
            continue
    for match in _FROM_TO.finditer(text):
        first, last = date(int(match["first"]), 1, 1), date(int(match["last"]), 1, 1)
        if first <= last:
            end = datetime.combine(last + _LENGTHS[DateUnit.YEAR], time(), tzinfo=at.tzinfo)
            yield replace(_date_mention(match, first, DateUnit.YEAR, at), end=end, bound=Bound.WITHIN)
