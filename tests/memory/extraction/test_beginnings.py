"""States that begin at a time to come, beside the plans that name it. The turns are of 18 May 2023, a Thursday."""

from datetime import UTC, datetime

import pytest

from tests.memory.extraction.spoken import claims, said


def begun(text: str) -> list[tuple[str, datetime | None, datetime | None]]:
    return [(fact.claim, fact.valid_from, fact.valid_to) for fact in said(text).facts if fact.temporal == "current"]


@pytest.mark.parametrize(
    ("text", "claim", "begins"),
    [
        ("I start at Acme on 1 December.", "The user works at Acme", datetime(2023, 12, 1, tzinfo=UTC)),
        ("I'm starting at Acme on 1 December.", "The user works at Acme", datetime(2023, 12, 1, tzinfo=UTC)),
        ("I start my new job at Acme on Monday.", "The user works at Acme", datetime(2023, 5, 22, tzinfo=UTC)),
        ("I'll start working for Acme next week.", "The user works at Acme", datetime(2023, 5, 22, tzinfo=UTC)),
        ("From 3 June I work at Globex.", "The user works at Globex", datetime(2023, 6, 3, tzinfo=UTC)),
        ("I will work at Globex from 3 June.", "The user works at Globex", datetime(2023, 6, 3, tzinfo=UTC)),
        ("I'm going to work for Globex from June.", "The user works at Globex", datetime(2023, 6, 1, tzinfo=UTC)),
        ("I'm moving to Lyon in August.", "The user lives in Lyon", datetime(2023, 8, 1, tzinfo=UTC)),
        (
            "I'll be moving to Lyon, France next month.",
            "The user lives in Lyon, France",
            datetime(2023, 6, 1, tzinfo=UTC),
        ),
        ("My sister is moving to Rome in June.", "The user's sister lives in Rome", datetime(2023, 6, 1, tzinfo=UTC)),
    ],
)
def test_what_begins_then_has_no_end(text: str, claim: str, begins: datetime) -> None:
    assert begun(text) == [(claim, begins, None)]


@pytest.mark.parametrize(
    "text",
    [
        "I hope to move to Lyon in August.",
        "I might move to Lyon in August.",
        "I want to start at Acme on 1 December.",
        "I'm not moving to Lyon in August.",
        "I started at Acme on 1 December.",
        "I start at 9 on Monday.",
        "I'm visiting Lyon in August.",
        "I'm working at Acme next week.",
        "If I move to Lyon in August, I need a car.",
    ],
)
def test_what_does_not_surely_begin_is_no_state(text: str) -> None:
    assert begun(text) == []


def test_the_plan_is_over_after_its_day() -> None:
    plan, state = said("I start at Acme on 1 December.").facts

    assert (plan.claim, plan.temporal) == ("The user starts at Acme on 1 December 2023", "future")
    assert plan.valid_to == datetime(2023, 12, 2, tzinfo=UTC)
    assert claims("I start at Acme on 1 December.") == [plan.claim, state.claim]
