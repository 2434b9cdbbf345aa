"""Times that questions mention, asked on Thursday 18 May 2023, 15:00."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory.retrieval.rewriters.times import MAX_WINDOWS, find_windows
from tests.memory.retrieval.rewriters.asking import NOW


def window_bounds(text: str) -> list[tuple[str, str]]:
    """Return where each window begins and ends; empty if it is open."""
    return [
        tuple(f"{side:%Y-%m-%d %H:%M}".removesuffix(" 00:00") if side else "" for side in (each.since, each.until))  # type: ignore[misc]
        for each in find_windows(text, now=NOW)
    ]


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("What did I do last week?", "2023-05-08", "2023-05-15"),
        ("What happened in March 2021?", "2021-03-01", "2021-04-01"),
        ("Who came by yesterday?", "2023-05-17", "2023-05-18"),
        ("what did i eat two days ago", "2023-05-16", "2023-05-17"),
        ("What did we plan on 2023-04-12?", "2023-04-12", "2023-04-13"),
        ("What broke on 3 May?", "2023-05-03", "2023-05-04"),
        ("What broke on 3 June?", "2022-06-03", "2022-06-04"),
        ("Who called on Saturday?", "2023-05-13", "2023-05-14"),
        ("what did i buy in june", "2022-06-01", "2022-07-01"),
        ("what did i buy in may", "2023-05-01", "2023-06-01"),
        ("What may I have bought in March?", "2023-03-01", "2023-04-01"),
        ("Where did we sail in 2019?", "2019-01-01", "2020-01-01"),
        ("Where did we sail in the summer of 2022?", "2022-01-01", "2023-01-01"),
        ("Which bands played in the 1990s?", "1990-01-01", "2000-01-01"),
        ("What was decided in Q2 2022?", "2022-04-01", "2022-07-01"),
        ("What changed in 2023-02?", "2023-02-01", "2023-03-01"),
    ],
)
def test_a_date_in_a_question_is_the_latest_past_one(text: str, since: str, until: str) -> None:
    assert window_bounds(text) == [(since, until)]


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("Who came between 3 and 5 June?", "2022-06-03", "2022-06-06"),
        ("Who came between June 3 and 5, 2021?", "2021-06-03", "2021-06-06"),
        ("Who came from 3 May to 2 June 2021?", "2021-05-03", "2021-06-03"),
        ("What did I read between November and February?", "2022-11-01", "2023-03-01"),
        ("what did i read between january and march", "2023-01-01", "2023-04-01"),
        ("Where was I from Monday to Wednesday?", "2023-05-15", "2023-05-18"),
        ("Where was I between 2015 and 2019?", "2015-01-01", "2020-01-01"),
        ("What came in from 2023-05-01 to 2023-05-03?", "2023-05-01", "2023-05-04"),
        ("What came in from March until now?", "2023-03-01", "2023-05-19"),
        ("What came up in the last two weeks?", "2023-05-04 15:00", ""),
        ("What came up over the past month?", "2023-04-18 15:00", ""),
        ("What broke in the last 24 hours?", "2023-05-17 15:00", ""),
        ("What did I ask an hour ago?", "2023-05-18 13:00", "2023-05-18 15:00"),
        ("What has changed since March?", "2023-03-01", ""),
        ("What has changed since yesterday?", "2023-05-17", ""),
        ("What was said after 3 May 2023?", "2023-05-04", ""),
        ("Who lived here before 2020?", "", "2020-01-01"),
        ("Who lived here until March?", "", "2023-04-01"),
    ],
)
def test_a_time_span_in_a_question_may_be_open_at_one_end(text: str, since: str, until: str) -> None:
    assert window_bounds(text) == [(since, until)]


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("What will we do on Saturday?", "2023-05-20"),
        ("What are we going to do in March?", "2024-03-01"),
        ("What is planned for next week?", "2023-05-22"),
    ],
)
def test_a_question_about_the_future_means_the_next_such_date(text: str, since: str) -> None:
    assert [begins for begins, _ in window_bounds(text)] == [since]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where are the keys?",
        "What may I eat, and may we march?",
        "Which hotel did we book for two weeks?",
        "Between 3 and 5 people came",
        "What broke on 31 February 2020?",
        "Who paid 2020 euros?",
        "What came up in the last few days?",
        "Is version 3.5 from 4 to 6 supported?",
        "上周我说了什么？",
    ],
)
def test_words_that_may_not_be_a_time_give_no_window(text: str) -> None:
    assert window_bounds(text) == []


def test_several_times_come_in_their_order_and_are_bounded() -> None:
    assert window_bounds("On Friday or on Tuesday, or on Friday?") == [
        ("2023-05-12", "2023-05-13"),
        ("2023-05-16", "2023-05-17"),
    ]
    assert len(find_windows(" ".join(f"in {year}" for year in range(1950, 2000)), now=NOW)) == MAX_WINDOWS


def test_days_are_days_of_utc() -> None:
    in_auckland = datetime(2023, 5, 19, 3, 0, tzinfo=timezone(timedelta(hours=12)))

    [window] = find_windows("yesterday", now=in_auckland)

    assert window.since == datetime(2023, 5, 17, tzinfo=UTC)


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_times_outside_the_calendar_raise_no_error(now: datetime) -> None:
    text = "last week, next week, an hour ago, 900 years ago, in the last 999 decades, between May and June, tomorrow"

    find_windows(text, now=now)
