"""Dates in texts, against a reference: Thursday 18 May 2023, 15:00."""

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.dates import Bound, DateMention, DateUnit, Tense, find_dates

AT = datetime(2023, 5, 18, 15, 0, tzinfo=UTC)


def found_dates(text: str, *, tense: Tense | None = None) -> list[tuple[str, str, str]]:
    """Return what was matched, and the first and last day (the last is not in the range)."""
    found = find_dates(text, at=AT, tense=tense)
    return [(text[dated.begin : dated.stop], f"{dated.start:%Y-%m-%d}", f"{dated.end:%Y-%m-%d}") for dated in found]


def only(text: str, *, tense: Tense | None = None) -> DateMention:
    [dated] = find_dates(text, at=AT, tense=tense)
    return dated


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", "2023-05-17", "2023-05-18"),
        ("yesterday morning", "2023-05-17", "2023-05-18"),
        ("last night", "2023-05-17", "2023-05-18"),
        ("today", "2023-05-18", "2023-05-19"),
        ("tomorrow", "2023-05-19", "2023-05-20"),
        ("the day before yesterday", "2023-05-16", "2023-05-17"),
        ("the day after tomorrow", "2023-05-20", "2023-05-21"),
        ("last Tuesday", "2023-05-16", "2023-05-17"),
        ("last Thursday", "2023-05-11", "2023-05-12"),
        ("next Thursday", "2023-05-25", "2023-05-26"),
        ("this Friday", "2023-05-19", "2023-05-20"),
        ("this week", "2023-05-15", "2023-05-22"),
        ("last weekend", "2023-05-13", "2023-05-15"),
        ("this weekend", "2023-05-20", "2023-05-22"),
        ("last month", "2023-04-01", "2023-05-01"),
        ("next month", "2023-06-01", "2023-07-01"),
        ("last year", "2022-01-01", "2023-01-01"),
        ("last March", "2023-03-01", "2023-04-01"),
        ("last May", "2022-05-01", "2022-06-01"),
        ("next May", "2024-05-01", "2024-06-01"),
        ("3 days ago", "2023-05-15", "2023-05-16"),
        ("two weeks ago", "2023-05-01", "2023-05-08"),
        ("two weekends ago", "2023-05-06", "2023-05-08"),
        ("a couple of months ago", "2023-03-01", "2023-04-01"),
        ("ten years ago", "2013-01-01", "2014-01-01"),
        ("two years from now", "2025-01-01", "2026-01-01"),
        ("2023-02-28", "2023-02-28", "2023-03-01"),
        ("on 3 May 2023", "2023-05-03", "2023-05-04"),
        ("on the 3rd of May, 2023", "2023-05-03", "2023-05-04"),
        ("May 3rd, 2023", "2023-05-03", "2023-05-04"),
        ("may 3 2023", "2023-05-03", "2023-05-04"),
        ("25/12/2022", "2022-12-25", "2022-12-26"),
        ("12/25/2022", "2022-12-25", "2022-12-26"),
        ("in March 2021", "2021-03-01", "2021-04-01"),
        ("back in 2010", "2010-01-01", "2011-01-01"),
        ("from 2015 to 2019", "2015-01-01", "2020-01-01"),
        ("on 9 May next year", "2024-05-09", "2024-05-10"),
        ("May 9th of last year", "2022-05-09", "2022-05-10"),
        ("in May next year", "2024-05-01", "2024-06-01"),
        ("on Saturday 20 May", "2023-05-20", "2023-05-21"),
        ("Sat 7 Jan", "2023-01-07", "2023-01-08"),
        ("on tuesday 9 may", "2023-05-09", "2023-05-10"),
    ],
)
def test_a_date_that_says_enough_is_resolved_without_a_tense(text: str, start: str, end: str) -> None:
    assert found_dates(text) == [(text, start, end)]


@pytest.mark.parametrize(
    ("text", "past", "future"),
    [
        ("in March", "2023-03-01", "2024-03-01"),
        ("in May", "2023-05-01", "2023-05-01"),
        ("in June", "2022-06-01", "2023-06-01"),
        ("on Tuesday", "2023-05-16", "2023-05-23"),
        ("on 3 May", "2023-05-03", "2024-05-03"),
        ("December 25th", "2022-12-25", "2023-12-25"),
    ],
)
def test_a_date_without_a_year_lies_where_the_tense_says(text: str, past: str, future: str) -> None:
    assert found_dates(text) == []
    assert found_dates(text, tense=Tense.PAST)[0][1] == past
    assert found_dates(text, tense=Tense.FUTURE)[0][1] == future


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Saturday 20 May", "2023-05-20"),
        ("on Friday 9 December", "2022-12-09"),
        ("Friday, May 3", "2024-05-03"),
    ],
)
@pytest.mark.parametrize("tense", [None, *Tense])
def test_a_weekday_tells_the_year_whatever_the_tense(text: str, start: str, tense: Tense | None) -> None:
    assert [first for _, first, _ in found_dates(text, tense=tense)] == [start]


def test_a_weekday_that_a_day_has_in_no_near_year_tells_nothing() -> None:
    assert found_dates("on Wednesday 20 May") == []
    assert found_dates("on Wednesday 20 May", tense=Tense.FUTURE) == [
        ("on Wednesday 20 May", "2023-05-20", "2023-05-21")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It may produce, and they march in file.",
        "We sat in the sun a second time, in the fall, in august company.",
        "in may",
        "03/04/2023",
        "31 February 2020",
        "February 31, 2020",
        "2023-13-01",
        "on the 3rd",
        "a few weeks ago",
        "last summer",
        "3 days each",
        "in 1850 cases",
        "chapter 2019",
        "mid-2019-series",
        "yesterdays",
        "on Mondays",
        "on Monday evenings",
        "on Friday and Saturday nights",
        "on Tuesday or Thursday mornings",
        "32 May 2021 9999-99-99",
        "",
        "every last Friday",
        "on the last Friday of the month",
    ],
)
def test_an_ambiguous_or_invalid_date_is_ignored(text: str) -> None:
    assert found_dates(text, tense=Tense.PAST) == []


@pytest.mark.parametrize(
    ("text", "bound", "start"),
    [
        ("since 2019", Bound.SINCE, "2019-01-01"),
        ("since last month", Bound.SINCE, "2023-04-01"),
        ("until 2021", Bound.UNTIL, "2021-01-01"),
        ("by next month", Bound.BEFORE, "2023-06-01"),
        ("before 3 May 2022", Bound.BEFORE, "2022-05-03"),
        ("after 2020", Bound.AFTER, "2020-01-01"),
        ("for three years", Bound.LASTING, "2020-01-01"),
        ("for the past two months", Bound.LASTING, "2023-03-01"),
        ("in 2019", Bound.WITHIN, "2019-01-01"),
    ],
)
def test_the_preposition_says_how_the_span_is_meant(text: str, bound: Bound, start: str) -> None:
    dated = only(text)

    assert (dated.bound, f"{dated.start:%Y-%m-%d}") == (bound, start)


def test_a_past_duration_is_not_a_future_date() -> None:
    assert found_dates("I finished it in two days", tense=Tense.PAST) == []
    assert found_dates("We leave in two days", tense=Tense.FUTURE) == [("in two days", "2023-05-20", "2023-05-21")]


def test_days_begin_at_midnight_where_the_text_was_said() -> None:
    lisbon = ZoneInfo("Europe/Lisbon")
    at = datetime(2023, 3, 27, 0, 30, tzinfo=lisbon)

    [dated] = find_dates("I arrived yesterday", at=at)

    assert dated.start == datetime(2023, 3, 26, tzinfo=lisbon)
    assert dated.end - dated.start == at.replace(hour=0, minute=0) - datetime(2023, 3, 26, tzinfo=lisbon)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "on 17 May 2023"),
        ("last weekend", "on the weekend of 13 May 2023"),
        ("two weeks ago", "in the week of 1 May 2023"),
        ("last month", "in April 2023"),
        ("last year", "in 2022"),
        ("from 2015 to 2019", "from 2015 to 2019"),
    ],
)
def test_a_date_has_a_phrase_without_its_reference(text: str, words: str) -> None:
    assert only(text).words == words


def test_several_dates_come_in_the_order_of_the_text() -> None:
    text = "Last month I was away, and since 3 May 2023 I am back."

    assert [match for match, *_ in found_dates(text)] == ["Last month", "since 3 May 2023"]


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
@pytest.mark.parametrize("text", ["yesterday", "tomorrow", "500 years ago", "next year", "last week", "this weekend"])
def test_the_ends_of_the_calendar_raise_nothing(text: str, at: datetime) -> None:
    assert all(dated.start < dated.end for dated in find_dates(text, at=at, tense=Tense.FUTURE))


PIECES = (
    *("in", "on", "since", "last", "next", "May", "march", "3", "31", "2023", "2023-05", "of", "the", "ago", "two"),
    *("weeks", "months", "from", "to", "for", "a", "couple", "3rd", ".", "/", "-"),
)
WORDS = st.sampled_from(PIECES)


@given(st.lists(WORDS).map(" ".join) | st.text(), st.datetimes(timezones=st.just(UTC)), st.sampled_from([None, *Tense]))
def test_any_text_yields_ordered_spans_within_it(text: str, at: datetime, tense: Tense | None) -> None:
    found = find_dates(text, at=at, tense=tense)

    edges = [edge for dated in found for edge in (dated.begin, dated.stop)]
    assert edges == sorted(edges)
    assert all(0 <= dated.begin < dated.stop <= len(text) and dated.start < dated.end for dated in found)
    assert {dated.unit for dated in found} <= set(DateUnit)


@pytest.mark.slow
@pytest.mark.parametrize(
    "word", ["in ", "1 ", "the ", "2023-", "on the 1 of ", "a couple of ", " ", "for about ", "1/"]
)
def test_a_megabyte_takes_time_in_proportion(word: str) -> None:
    began = time.process_time()

    find_dates(word * (1_000_000 // len(word)), at=AT)

    assert time.process_time() - began < 30


@pytest.mark.parametrize(
    ("text", "tense", "start"),
    [
        ("on Friday the 26th", Tense.FUTURE, "2023-05-26"),
        ("Tuesday, 13th", Tense.FUTURE, "2023-06-13"),
        ("on Sunday 7th", Tense.PAST, "2023-05-07"),
        ("on Friday, the 9th of June", Tense.FUTURE, "2023-06-09"),
        ("since Monday the 15th", Tense.FUTURE, "2023-05-15"),
        ("since April", Tense.FUTURE, "2023-04-01"),
        ("until Friday", Tense.FUTURE, "2023-05-19"),
        ("until Friday", Tense.PAST, "2023-05-12"),
    ],
)
def test_a_weekday_may_have_its_day_and_what_began_is_in_the_past(text: str, tense: Tense, start: str) -> None:
    assert f"{only(text, tense=tense).start:%Y-%m-%d}" == start
