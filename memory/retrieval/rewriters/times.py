"""The times that a question speaks of, as half-open spans in UTC.

`memory.dates` reads dates as statements have them; questions have forms of their own: a bare month or weekday is the
latest past one (unless they ask what will be), "since" and "before" leave one side open, "the last two weeks" run up to
now, and two dates are a span from the first to the last.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dateutil.relativedelta import relativedelta

from memory.dates import MONTHS, NUMBERS, Bound, Dated, Tense, find_dates
from memory.retrieval.queries import Window

MOST_WINDOWS = 8
MOST_AMOUNT = 1_000

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
# most questions have none, and are not looked through for forms
_HINT = re.compile(
    r"[0-9]|\b(?:yesterday|today|tonight|tomorrow|ago|last|past|this|next|since|between|until|till|before|after"
    rf"|weekend|morning|{_MONTH}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(r"\b(?:will|won't|shall|going to|gonna|upcoming|coming)\b|'ll\b", re.IGNORECASE)
# in small letters these two are words of other meanings, but for what stands before them
_SMALL_MONTH = re.compile(
    rf"(?<![\w/-])(?P<lead>in|during|since|last|this|next|of|until|till|before|after|by) (?P<month>{_MONTH.lower()})\b"
)
# "came by yesterday" is no "by yesterday"
_COMES_BY = re.compile(r"\b(?:came|come|comes|went|goes|go|stopped|stop|dropped|drop|passed|pass) $", re.IGNORECASE)
_AMBIGUOUS_MONTHS = frozenset(("may", "march"))
_SURE_LEADS = frozenset(("in", "during", "since", "last", "this", "next"))


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a text a window is spoken of."""

    begin: int
    stop: int
    window: Window


_Resolve = Callable[[re.Match[str], datetime, Tense], Window | None]


def windows_of(text: str, *, now: datetime) -> list[Window]:
    """In the order of the text, each once. Never raises for a text."""
    if not _HINT.search(text):
        return []
    at, read = now.astimezone(UTC), capitalize_months(text)
    tense = Tense.FUTURE if _FUTURE.search(read) else Tense.PAST
    found: list[Span] = []
    # forms of questions before those of statements, of which they hold one
    for span in (*spans_of_questions(read, at, tense), *spans_of_dates(read, at, tense)):
        if not any(span.begin < other.stop and other.begin < span.stop for other in found):
            found.append(span)
    found.sort(key=lambda span: span.begin)
    return list(dict.fromkeys(span.window for span in found))[:MOST_WINDOWS]


def capitalize_months(text: str) -> str:
    """Months as dates are written, where small letters cannot mean anything else; of the same length."""
    return _SMALL_MONTH.sub(capitalized, text)


def capitalized(match: re.Match[str]) -> str:
    lead, month = match["lead"], match["month"]
    is_sure = month not in _AMBIGUOUS_MONTHS or lead in _SURE_LEADS
    return f"{lead} {month.capitalize()}" if is_sure else match[0]


def spans_of_dates(text: str, at: datetime, tense: Tense) -> Iterator[Span]:
    for dated in find_dates(text, at=at, tense=tense):
        if dated.bound is not Bound.LASTING:
            # "for two weeks" is how long, not when
            is_within = _COMES_BY.search(text[: dated.begin]) is not None
            yield Span(dated.begin, dated.stop, window_of(replace(dated, bound=Bound.WITHIN) if is_within else dated))


def window_of(dated: Dated) -> Window:
    return {
        Bound.SINCE: Window(since=dated.start, until=None),
        Bound.AFTER: Window(since=dated.end, until=None),
        Bound.BEFORE: Window(since=None, until=dated.start),
        Bound.UNTIL: Window(since=None, until=dated.end),
    }.get(dated.bound, Window(since=dated.start, until=dated.end))


def spans_of_questions(text: str, at: datetime, tense: Tense) -> Iterator[Span]:
    for pattern, resolve in _FORMS:
        for match in pattern.finditer(text):
            try:
                window = resolve(match, at, tense)
            except (ValueError, OverflowError):
                # a year that no calendar has
                continue
            if window is not None:
                yield Span(match.start(), match.end(), window)


def between(match: re.Match[str], at: datetime, tense: Tense) -> Window | None:
    """From the first date to the last. What one of them leaves out, the other one says ("3 and 5 June 2023")."""
    first, last = complete(match["first"], match["last"]), complete(match["last"], match["first"])
    closes = date_of(last, at, tense)
    opens = date_of(first, at, tense)
    if opens and closes and opens.start >= closes.end:
        # "between November and February"
        opens = date_of(first, closes.start, Tense.PAST)
    if opens is None or closes is None or opens.start >= closes.end:
        return None
    return Window(since=opens.start, until=closes.end)


def date_of(words: str, at: datetime, tense: Tense) -> Dated | None:
    """The one date that words are, all of them."""
    for lead in ("", "in ", "on "):
        found = find_dates(capitalize_months(f"{lead}{words}"), at=at, tense=tense)
        if len(found) == 1 and (found[0].begin, found[0].stop) == (0, len(lead) + len(words)):
            return found[0]
    return None


_DAY_ALONE = re.compile(rf"(?:the )?(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?(?P<year>,? {_ANY_YEAR})?")
_MONTH_NAMED = re.compile(rf"\b{_ANY_MONTH}\b", re.IGNORECASE)
_YEAR_NAMED = re.compile(rf"\b{_ANY_YEAR}\b")


def complete(words: str, other: str) -> str:
    """A date with the month and the year that only the other one has."""
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


def amount_of(match: re.Match[str]) -> int:
    words = (match["amount"] or "one").lower()
    return NUMBERS.get(words) or min(int(words), MOST_AMOUNT)


def shift(unit: str, amount: int) -> relativedelta:
    if unit == "decade":
        return relativedelta(years=10 * amount)
    return relativedelta(**{f"{unit}s": amount})  # type: ignore[arg-type]


def up_to_now(match: re.Match[str], at: datetime, _tense: Tense) -> Window | None:
    """ "in the last two weeks": from as long ago until now."""
    return Window(since=at - shift(match["unit"].lower(), amount_of(match)), until=None)


def hours_ago(match: re.Match[str], at: datetime, _tense: Tense) -> Window | None:
    """Give or take one."""
    unit, amount = match["unit"].lower(), amount_of(match)
    return Window(since=at - shift(unit, amount + 1), until=at - shift(unit, amount - 1))


def decade(match: re.Match[str], _at: datetime, _tense: Tense) -> Window | None:
    return years_from(int(match["year"]), 10)


def year_alone(match: re.Match[str], _at: datetime, _tense: Tense) -> Window | None:
    return years_from(int(match["year"]), 1)


def years_from(year: int, years: int) -> Window:
    return Window(since=datetime(year, 1, 1, tzinfo=UTC), until=datetime(year + years, 1, 1, tzinfo=UTC))


def quarter(match: re.Match[str], _at: datetime, _tense: Tense) -> Window | None:
    opens = datetime(int(match["year"]), 3 * int(match["quarter"]) - 2, 1, tzinfo=UTC)
    return Window(since=opens, until=opens + relativedelta(months=3))


def month_in_figures(match: re.Match[str], _at: datetime, _tense: Tense) -> Window | None:
    opens = datetime(int(match["year"]), int(match["month"]), 1, tzinfo=UTC)
    return Window(since=opens, until=opens + relativedelta(months=1))


def form(pattern: str, resolve: _Resolve) -> tuple[re.Pattern[str], _Resolve]:
    return re.compile(rf"(?<![\w/-])(?:{pattern})(?![\w/-])", re.IGNORECASE), resolve


_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
_FORMS = (
    form(rf"(?:between|from|since) (?P<first>{_SIDE}) (?:and|to|until|till|through) (?P<last>{_SIDE})", between),
    form(rf"(?:in|over|during|within|for) the (?:last|past) (?:{_AMOUNT} )?{_UNIT}", up_to_now),
    form(rf"(?:the )?(?:last|past) {_AMOUNT} {_UNIT}", up_to_now),
    form(rf"(?:about |around )?{_AMOUNT} (?P<unit>minute|hour)s? ago", hours_ago),
    form(r"(?:in|during|of|from) the (?P<year>(?:19|20)[0-9]0)s", decade),
    form(rf"(?:the )?(?:summer|winter|spring|autumn|fall|start|beginning|end|course) of {_YEAR}", year_alone),
    form(rf"Q(?P<quarter>[1-4]) (?:of )?{_YEAR}", quarter),
    form(r"(?:in |during |of )?(?P<year>(?:19|20)[0-9]{2})-(?P<month>0[1-9]|1[0-2])", month_in_figures),
)
