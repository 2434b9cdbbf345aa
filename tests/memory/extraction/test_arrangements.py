"""Days that something was arranged for, said on Thursday 18 May 2023."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memory.dates import Tense
from memory.extraction.rules.arrangements import find_arranged_dates
from memory.extraction.rules.open_dates import date_claim
from memory.extraction.rules.values import with_days_of_stay
from tests.memory.extraction.spoken import AT, claims, extracted, only, said, turn


@pytest.mark.parametrize(
    ("text", "claim", "ends"),
    [
        (
            "I booked a table at Nobu for Saturday 20 May at 8.",
            "The user booked a table at Nobu for 20 May 2023 at 8",
            "21",
        ),
        ("I booked a hotel in York for 23 May", "The user booked a hotel in York for 23 May 2023", "24"),
        ("I booked a table for 8pm on 23 May", "The user booked a table for 8pm on 23 May 2023", "24"),
        ("I booked a table for tomorrow", "The user booked a table for 19 May 2023", "20"),
        ("i booked the van for 23 may", "The user booked the van for 23 May 2023", "24"),
        (
            "I scheduled the boiler service for 24 May at 10am",
            "The user scheduled the boiler service for 24 May 2023 at 10am",
            "25",
        ),
        (
            "I made an appointment with Dr Bains for 24 May",
            "The user made an appointment with Dr Bains for 24 May 2023",
            "25",
        ),
        ("I signed up for a 10k on 28 May", "The user signed up for a 10k on 28 May 2023", "29"),
        ("I ordered a cake for 23 May", "The user ordered a cake for 23 May 2023", "24"),
        ("I hired a van for the 23rd of May", "The user hired a van for 23 May 2023", "24"),
        ("I've booked the dentist for 23 May at 2pm.", "The user has booked the dentist for 23 May 2023 at 2pm", "24"),
        (
            "Got a job for Mrs Pritchard on monday 22 may at 9",
            "The user got a job for Mrs Pritchard at 9 on 22 May 2023",
            "23",
        ),
        ("I bought a ticket for Porto on 23 May", "The user bought a ticket for Porto on 23 May 2023", "24"),
        ("I invited the Smiths for 23 May", "The user invited the Smiths for 23 May 2023", "24"),
        ("I booked the cottage from 23 to 28 May", "The user booked the cottage from 23 to 28 May 2023", "29"),
        ("We moved the inspection to 23 May", "The user moved the inspection to 23 May 2023", "24"),
        ("We agreed on 23 May for the launch", "The user agreed on 23 May 2023 for the launch", "24"),
    ],
)
def test_what_was_arranged_is_on_a_day_to_come_and_over_then(text: str, claim: str, ends: str) -> None:
    fact = only(said(text))

    assert (fact.claim, fact.temporal, fact.valid_from) == (claim, "future", None)
    assert f"{fact.valid_to:%Y-%m-%d}" == f"2023-05-{ends}"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("I booked the flight on 23 May", "The user booked the flight on 23 May 2022"),
        ("I ordered the cake on 3 May", "The user ordered the cake on 3 May 2023"),
        ("I made an appointment on 3 May", "The user made an appointment on 3 May 2023"),
        ("I bought the house on 23 May", "The user bought the house on 23 May 2022"),
        ("I went to the match on 23 May", "The user went to the match on 23 May 2022"),
        ("I moved to Leeds on 3 May", "The user moved to Leeds on 3 May 2023"),
        ("We bought the flat on 23 May", "The user bought the flat on 23 May 2022"),
    ],
)
def test_the_day_on_which_somebody_did_something_is_in_the_past(text: str, claim: str) -> None:
    fact = only(said(text))

    assert (fact.claim, fact.temporal, fact.valid_to) == (claim, "past", None)


def test_a_day_that_is_just_over_may_be_meant_as_well_as_the_next_one() -> None:
    assert claims("I booked a table for 9 May") == ["The user booked a table for 9 May"]
    assert claims("I booked a table for 9 April") == ["The user booked a table for 9 April 2024"]


def test_a_year_is_told_once() -> None:
    assert claims("I signed up for a half marathon on 9 May next year") == [
        "The user signed up for a half marathon on 9 May 2024"
    ]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("We locked 22 April with the publisher", "2024-04-22"),
        ("The board voted to scrap late fees as of 22 April", "2024-04-22"),
        ("The bug was fixed on 22 April", "2023-04-22"),
        ("As of 22 April we had 40 users", "2023-04-22"),
    ],
)
def test_a_day_that_was_decided_is_to_come_and_one_on_which_something_happened_is_over(text: str, day: str) -> None:
    [date] = find_arranged_dates(text, at=datetime(2023, 6, 1, tzinfo=UTC), tense=Tense.PAST)

    assert f"{date.start:%Y-%m-%d}" == day


@pytest.mark.parametrize(
    ("text", "claim", "ends"),
    [
        (
            "I booked leave for 24 December to 2 January.",
            "The user booked leave for 24 December to 2 January 2027",
            "2027-01-03",
        ),
        (
            "I booked a room from 28 February to 3 March.",
            "The user booked a room from 28 February to 3 March 2026",
            "2026-03-04",
        ),
    ],
)
def test_days_of_two_months_have_the_year_of_the_last(text: str, claim: str, ends: str) -> None:
    said_at = datetime(2026, 3, 2, 15, tzinfo=UTC)
    fact = only(extracted([replace(turn(text), timestamp=said_at)]))

    assert (fact.claim, f"{fact.valid_to:%Y-%m-%d}") == (claim, ends)


@pytest.mark.parametrize(
    ("text", "claim", "ends"),
    [
        ("The deadline slipped to jan 20", "The deadline slipped to 20 January 2024", "2024-01-21"),
        ("our closing slipped to 11 february", "The user's closing slipped to 11 February 2024", "2024-02-12"),
        ("The wedding got pushed to 5 April", "The wedding got pushed to 5 April 2024", "2024-04-06"),
        (
            "The dentist appointment was moved to 15 April",
            "The dentist appointment was moved to 15 April 2024",
            "2024-04-16",
        ),
        ("The launch was moved to next week", "The launch was moved to the week of 22 May 2023", "2023-05-29"),
        ("Funeral is Friday at 11, St. Gangolf", "Funeral is on 19 May 2023 at 11, St. Gangolf", "2023-05-20"),
        ("My interview is monday at 10", "The user's interview is on 22 May 2023 at 10", "2023-05-23"),
    ],
)
def test_what_is_moved_or_takes_place_once_is_on_the_next_such_day_and_over_then(
    text: str, claim: str, ends: str
) -> None:
    fact = only(said(text))

    assert (fact.claim, fact.temporal, f"{fact.valid_to:%Y-%m-%d}") == (claim, "future", ends)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("The release was postponed to 11 May", "The release was postponed to 11 May"),
        ("Standup is Friday at 9", "Standup is Friday at 9"),
        ("The meeting was moved to Fridays", "The meeting was moved to Fridays"),
        ("The price was raised to 12 euros", "The price was raised to 12 euros"),
        (
            "The visit has been changed from the 20th of May to the 28th",
            "The visit has been changed from the 20th of May to the 28th",
        ),
    ],
)
def test_what_may_come_again_or_has_no_single_date_has_no_end(text: str, claim: str) -> None:
    fact = only(said(text))

    assert (fact.claim, fact.valid_to) == (claim, None)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("We agreed that the freeze begins on 20 June.", "The user agreed that the freeze begins on 20 June 2023"),
        ("We decided the launch is on 4 June.", "The user decided that the launch is on 4 June 2023"),
    ],
)
def test_what_was_agreed_on_for_a_day_to_come_is_ahead(text: str, claim: str) -> None:
    assert [(fact.claim, fact.temporal) for fact in said(text).facts] == [(claim, "future")]


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Marketing got their two extra weeks, so v3 sees the light on 4 June", 2023),
        ("The user heard that the show begins on 5 June", 2023),
        ("Marketing got two weeks on 4 June", 2022),
        ("The team agreed that the freeze began on 20 June", 2022),
        ("The user bought flights on 3 June", 2022),
        ("The sale ended on 3 June", 2022),
    ],
)
def test_the_verb_before_a_day_tells_whether_it_is_to_come(text: str, year: int) -> None:
    [date] = find_arranged_dates(text, at=AT, tense=Tense.PAST)

    assert date.start.year == year


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Marek is on leave from 20 to 22 May.", "Marek is on leave from 20 to 22 May 2023"),
        ("The sale runs from 30 May to 2 June.", "The sale runs from 30 May to 2 June 2023"),
        ("The conference is from 20 to 22 May 2023 in Vienna.", "The conference is from 20 to 22 May 2023 in Vienna"),
    ],
)
def test_a_state_of_some_days_has_their_year_and_is_over_after_them(text: str, claim: str) -> None:
    fact = only(said(text))

    last = {"22": datetime(2023, 5, 23, tzinfo=UTC), "2n": datetime(2023, 6, 3, tzinfo=UTC)}
    ends = last["2n" if "June" in claim else "22"]
    assert (fact.claim, fact.temporal, fact.valid_to) == (claim, "future", ends)


@pytest.mark.parametrize(
    "claim",
    [
        "The user is on leave from 20 to 22 June",
        "The office is closed from 24 December to 2 January",
    ],
)
def test_what_the_user_says_in_own_words_ends_with_its_days(claim: str) -> None:
    dated, temporal, ends = date_claim(claim, AT)

    assert temporal == "future"
    assert ends is not None
    assert dated == f"{claim} {ends.year}"


@pytest.mark.parametrize(
    "claim",
    [
        "The season runs from 1 to 20 December every year",
        "High season is from 1 May to 15 September",
        "The user works from 9 to 5",
        "The user lived in Oslo from 10 May to 12 June",
        "The user is on leave from 2 to 9 May",
        "The user was away from 10 to 12 June",
    ],
)
def test_what_comes_back_or_is_over_gets_no_end(claim: str) -> None:
    assert date_claim(claim, AT)[2] is None
    assert with_days_of_stay("The user works from 9 to 5", at=AT) == ("The user works from 9 to 5", None)
