"""Times that a question mentions, as half-open windows in UTC.

`memory.dates` reads dates the way statements write them. Questions have forms of their own: a bare month or weekday is
the latest past one (unless the question is about the future), "since" and "before" leave one side open, "the last two
weeks" run up to now, and two dates are a window from the first to the last.

To add a form, write a pattern and a function that resolves its match, and add them to `_FORMS`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dateutil.relativedelta import relativedelta

from memory.dates import MONTHS, NUMBERS, Bound, DateMention, Tense, find_dates
from memory.retrieval.queries import TimeWindow

MAX_WINDOWS = 8
MAX_AMOUNT = 1_000

_AMOUNT = r"(?P<amount>[0-9]{1,4}|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
_UNIT = r"(?P<unit>minute|hour|day|week|month|year|decade)s?"
_MONTH = "|".join(MONTHS)
_ANY_MONTH = rf"(?:{_MONTH}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_ANY_DAY = r"(?:the )?[0-3]?[0-9](?:st|nd|rd|th)?"
_ANY_YEAR = r"(?:19|20)[0-9]{2}"
_WEEKDAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SIDE = "|".join(
    (
        rf"{_ANY_YEAR}-[01][0-9]-[0-3][0-9]",
        rf"{_ANY_DAY} (?:of )?{_ANY_MONTH}(?:,? {_ANY_YEAR})?",
        rf"{_ANY_MONTH} {_ANY_DAY}(?:,? {_ANY_YEAR})?(?![0-9])",
        rf"{_ANY_MONTH}(?: {_ANY_YEAR})?",
        rf"(?:last |this )?(?:{_WEEKDAY})|(?:last|this) (?:week|weekend|month|year)|yesterday|today|now",
        rf"{_ANY_YEAR}|{_ANY_DAY}(?:,? {_ANY_YEAR})?",
    )
)
# most questions mention no time; those without a hint are not searched for forms
_HINT = re.compile(
    r"[0-9]|\b(?:yesterday|today|tonight|tomorrow|ago|last|past|this|next|since|between|until|till|before|after"
    rf"|weekend|morning|{_MONTH}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(r"\b(?:will|won't|shall|going to|gonna|upcoming|coming)\b|'ll\b", re.IGNORECASE)
# in lower case "may" and "march" have other meanings unless the word before makes them months
_SMALL_MONTH = re.compile(
    rf"(?<![\w/-])(?P<lead>in|during|since|last|this|next|of|until|till|before|after|by) (?P<month>{_MONTH.lower()})\b"
)
# "came by yesterday" does not mean "by yesterday"
_COMES_BY = re.compile(r"\b(?:came|come|comes|went|goes|go|stopped|stop|dropped|drop|passed|pass) $", re.IGNORECASE)
_AMBIGUOUS_MONTHS = frozenset(("may", "march"))
_SURE_LEADS = frozenset(("in", "during", "since", "last", "this", "next"))


@dataclass(frozen=True, slots=True)
class WindowMention:
    """A window and the part of the text that mentions it."""

    begin: int
    stop: int
    window: TimeWindow


_Resolve = Callable[[re.Match[str], datetime, Tense], TimeWindow | None]


def find_windows(text: str, *, now: datetime) -> list[TimeWindow]:
    """Return the windows in the order of the text, each once. Never raises for any text."""
    if not _HINT.search(text):
        return []
    at, read = now.astimezone(UTC), capitalize_months(text)
    tense = Tense.FUTURE if _FUTURE.search(read) else Tense.PAST
    found: list[WindowMention] = []
    # forms of questions come first, since they may contain forms of statements
    for span in (*question_form_mentions(read, at, tense), *date_mentions(read, at, tense)):
        if not any(span.begin < other.stop and other.begin < span.stop for other in found):
            found.append(span)
    found.sort(key=lambda span: span.begin)
    return list(dict.fromkeys(span.window for span in found))[:MAX_WINDOWS]


def capitalize_months(text: str) -> str:
    """Capitalize months in lower case that cannot mean anything else. The length stays the same."""
    return _SMALL_MONTH.sub(capitalize_month, text)


def capitalize_month(match: re.Match[str]) -> str:
    lead, month = match["lead"], match["month"]
    is_sure = month not in _AMBIGUOUS_MONTHS or lead in _SURE_LEADS
    return f"{lead} {month.capitalize()}" if is_sure else match[0]


def date_mentions(text: str, at: datetime, tense: Tense) -> Iterator[WindowMention]:
    for dated in find_dates(text, at=at, tense=tense):
        if dated.bound is not Bound.LASTING:
            # "for two weeks" is how long, not when
            is_within = _COMES_BY.search(text[: dated.begin]) is not None
            yield WindowMention(
                dated.begin, dated.stop, window_of_date(replace(dated, bound=Bound.WITHIN) if is_within else dated)
            )


def window_of_date(dated: DateMention) -> TimeWindow:
    return {
        Bound.SINCE: TimeWindow(since=dated.start, until=None),
        Bound.AFTER: TimeWindow(since=dated.end, until=None),
        Bound.BEFORE: TimeWindow(since=None, until=dated.start),
        Bound.UNTIL: TimeWindow(since=None, until=dated.end),
    }.get(dated.bound, TimeWindow(since=dated.start, until=dated.end))


def question_form_mentions(text: str, at: datetime, tense: Tense) -> Iterator[WindowMention]:
    for pattern, resolve in _FORMS:
        for match in pattern.finditer(text):
            try:
                window = resolve(match, at, tense)
            except (ValueError, OverflowError):
                # a year outside the calendar
                continue
            if window is not None:
                yield WindowMention(match.start(), match.end(), window)


def window_between(match: re.Match[str], at: datetime, tense: Tense) -> TimeWindow | None:
    """Return the window from the first date to the last. Each completes the other, as in "3 and 5 June 2023"."""
    first, last = complete_date(match["first"], match["last"]), complete_date(match["last"], match["first"])
    closes = parse_date(last, at, tense)
    opens = parse_date(first, at, tense)
    if opens and closes and opens.start >= closes.end:
        # "between November and February"
        opens = parse_date(first, closes.start, Tense.PAST)
    if opens is None or closes is None or opens.start >= closes.end:
        return None
    return TimeWindow(since=opens.start, until=closes.end)


def parse_date(words: str, at: datetime, tense: Tense) -> DateMention | None:
    """Return the date that all of the words form together, or None."""
    for lead in ("", "in ", "on "):
        found = find_dates(capitalize_months(f"{lead}{words}"), at=at, tense=tense)
        if len(found) == 1 and (found[0].begin, found[0].stop) == (0, len(lead) + len(words)):
            return found[0]
    return None


_DAY_ALONE = re.compile(rf"(?:the )?(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?(?P<year>,? {_ANY_YEAR})?")
_MONTH_NAMED = re.compile(rf"\b{_ANY_MONTH}\b", re.IGNORECASE)
_YEAR_NAMED = re.compile(rf"\b{_ANY_YEAR}\b")


def complete_date(words: str, other: str) -> str:
    """Add the month and the year that only the other date has."""
    month, year = _MONTH_NAMED.search(other), _YEAR_NAMED.search(other)
    if words.lower() == "now":
        return "today"
    if (day := _DAY_ALONE.fullmatch(words)) and month:
        words = f"{day['day']} {month[0].capitalize()}{day['year'] or ''}"
    elif _MONTH_NAMED.fullmatch(words):
        words = words.capitalize()
    if year and year[0] != other and not _YEAR_NAMED.search(words) and _MONTH_NAMED.search(words):
        words = f"{words} {year[0]}"
    return words


def parse_amount(match: re.Match[str]) -> int:
    words = (match["amount"] or "one").lower()
    return NUMBERS.get(words) or min(int(words), MAX_AMOUNT)


def relative_delta(unit: str, amount: int) -> relativedelta:
    if unit == "decade":
        return relativedelta(years=10 * amount)
    return relativedelta(**{f"{unit}s": amount})  # type: ignore[arg-type]


def window_up_to_now(match: re.Match[str], at: datetime, _tense: Tense) -> TimeWindow | None:
    """Resolve "in the last two weeks": from then until now."""
    return TimeWindow(since=at - relative_delta(match["unit"].lower(), parse_amount(match)), until=None)


def window_hours_ago(match: re.Match[str], at: datetime, _tense: Tense) -> TimeWindow | None:
    """Resolve "three hours ago", give or take one hour."""
    unit, amount = match["unit"].lower(), parse_amount(match)
    return TimeWindow(since=at - relative_delta(unit, amount + 1), until=at - relative_delta(unit, amount - 1))


def calendar_window(months: int) -> _Resolve:
    """Return a resolver of a year, or a month or quarter of it, to the window of so many months from there."""

    def resolve(match: re.Match[str], _at: datetime, _tense: Tense) -> TimeWindow | None:
        named = match.groupdict()
        month = 3 * int(named["quarter"]) - 2 if "quarter" in named else int(named.get("month", 1))
        opens = datetime(int(named["year"]), month, 1, tzinfo=UTC)
        return TimeWindow(since=opens, until=opens + relativedelta(months=months))

    return resolve


def _question_form(pattern: str, resolve: _Resolve) -> tuple[re.Pattern[str], _Resolve]:
    return re.compile(rf"(?<![\w/-])(?:{pattern})(?![\w/-])", re.IGNORECASE), resolve


_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
_FORMS = (
    _question_form(
        rf"(?:between|from|since) (?P<first>{_SIDE}) (?:and|to|until|till|through) (?P<last>{_SIDE})", window_between
    ),
    _question_form(rf"(?:in|over|during|within|for) the (?:last|past) (?:{_AMOUNT} )?{_UNIT}", window_up_to_now),
    _question_form(rf"(?:the )?(?:last|past) {_AMOUNT} {_UNIT}", window_up_to_now),
    _question_form(rf"(?:about |around )?{_AMOUNT} (?P<unit>minute|hour)s? ago", window_hours_ago),
    _question_form(r"(?:in|during|of|from) the (?P<year>(?:19|20)[0-9]0)s", calendar_window(120)),
    _question_form(
        rf"(?:the )?(?:summer|winter|spring|autumn|fall|start|beginning|end|course) of {_YEAR}", calendar_window(12)
    ),
    _question_form(rf"Q(?P<quarter>[1-4]) (?:of )?{_YEAR}", calendar_window(3)),
    _question_form(r"(?:in |during |of )?(?P<year>(?:19|20)[0-9]{2})-(?P<month>0[1-9]|1[0-2])", calendar_window(1)),
)
