"""Settings without a verb: labels with a value, and names and numbers after their nouns."""

import pytest

from tests.memory.extraction.spoken import claims


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("retries: 4 with exponential backoff, starting at 3 seconds", "Retries: 4 with exponential backoff"),
        ("Timeouts to Adyen: 15 seconds, 2 retries.", "Timeouts to Adyen: 15 seconds, 2 retries"),
        ("so the format of the codes: KX-2031-0007, four digits", "The format of the codes: KX-2031-0007, four digits"),
        ("log format: json", "Log format: json"),
        ("exports: CSVs go to the bucket acme-exports", "CSVs go to the bucket acme-exports"),
        ("seed 41 everywhere", "Seed is 41 everywhere"),
        ("Line length 96.", "Line length is 96"),
        ("learning rate 0.003, batch size 256", "Learning rate is 0.003"),
        ("deadline: June 9", "Deadline: 9 June 2023"),
        ("learning rate 0.003, batch size 256", "Batch size is 256"),
        ("ok, table name order_totals, one row per day", "Table name is order_totals"),
        ("our events table, dataset raw_events, partitioned", "Dataset is raw_events"),
    ],
)
def test_settings_without_a_verb_are_claims(text: str, claim: str) -> None:
    assert claim in claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "tom: the timeout is 30s",
        "Tom: the timeout is 30s",
        "customer support: the refund takes 5 days",
        "the doctor: take two pills at 9am",
        "My husband: the refund takes 5 days",
        "release: I think 5 May",
        "shoe size 42",
        "table 5, please",
        "park on level 2 at work",
        "the podcast name: Kettle On",
        "Thanks to our contributors: @ana, @Ben, @Cleo",
        "the plan: see what happens",
        "call the table invoices_b",
        "training: run until the end of December",
    ],
)
def test_lines_of_others_and_numbers_of_anything_are_no_settings(text: str) -> None:
    assert claims(text) == []


def test_a_value_that_a_statement_contains_is_no_setting_of_its_own() -> None:
    assert claims("the banner is in assets/top.svg, colour #0A4F2B") == [
        "The banner is in assets/top.svg, colour #0A4F2B"
    ]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        # of which month, another sentence may say
        ("The freeze begins on the 20th.", "The freeze begins on the 20th"),
        ("The freeze begins on 20 May.", "The freeze begins on 20 May 2023"),
        ("the christmas market is Dec 12 and 13", "The christmas market is 12 and 13 December 2023"),
        ("The offsite is Mar 3-5, 2024", "The offsite is 3-5 March 2024"),
        ("The latest dump is from 3 May.", "The latest dump is since 3 May 2023"),
    ],
)
def test_a_bare_day_of_the_month_gets_no_month(text: str, claim: str) -> None:
    assert claims(text) == [claim]
