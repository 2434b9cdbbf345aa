"""States that begin at a time to come, beside the plans that name it. The turns are of 18 May 2023, a Thursday."""

from datetime import UTC, datetime

import pytest

from tests.memory.extraction.spoken import claims, said

JUNE = datetime(2023, 6, 1, tzinfo=UTC)


def begun(text: str) -> list[tuple[str, datetime | None, datetime | None]]:
    return [(fact.claim, fact.valid_from, fact.valid_to) for fact in said(text).facts if fact.temporal == "current"]


@pytest.mark.parametrize(
    ("text", "claim", "begins"),
    [
        ("I start work at Acme on 1 December.", "The user works at Acme", datetime(2023, 12, 1, tzinfo=UTC)),
        ("I'm starting at Acme GmbH on 1 June.", "The user works at Acme GmbH", datetime(2023, 6, 1, tzinfo=UTC)),
        ("I'm starting at Acme as a UX designer on 1 June.", "The user works at Acme", JUNE),
        ("I got a new job! I start at Acme on 1 June.", "The user works at Acme", datetime(2023, 6, 1, tzinfo=UTC)),
        ("My daughter starts her new job at Acme in June.", "The user's daughter works at Acme", JUNE),
        ("I start my new role with Acme in June.", "The user works at Acme", JUNE),
        ("I'm moving to Ovar, Portugal in June.", "The user lives in Ovar, Portugal", JUNE),
        ("I'm moving to Ovar in June to live with Ana.", "The user lives in Ovar", JUNE),
        ("I'm moving to Lyon in June with my wife.", "The user lives in Lyon", JUNE),
        ("I'm moving house to Ovar in June.", "The user lives in Ovar", JUNE),
        ("My brother lives in Ovar. I'm moving to Ovar in June.", "The user lives in Ovar", JUNE),
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
    assert [each for each in begun(text) if each[1] == begins] == [(claim, begins, None)]


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
        "I'm moving to Windows next week.",
        "We're moving to PostgreSQL next month.",
        "Our team moves to Jira next month.",
        "Our team is moving to Berlin next month.",
        "I start with Python tomorrow.",
        "I'm starting with Kubernetes next week.",
        "I start working with Kubernetes next week.",
        "I start at Planet Fitness tomorrow.",
        "I start at Planet Fitness as a member tomorrow.",
        "I'm starting at Leeds as a student in September.",
        "I start at Yoga Studio Lyon tomorrow.",
        "My daughter starts at Greenwood Primary in September.",
        "I'm moving to Lyon in August for three months.",
        "I'm moving to Lyon in August until Christmas.",
        "I'm moving to Lyon in August, but I come back in October.",
        "I'm moving to Lyon in August or September.",
        "I'm moving to Lyon in August, maybe.",
        "In August I'm moving to Lyon for three months.",
        "I'm moving to Lyon in August, if the visa comes.",
        "I will work at Acme from June to July.",
        "From June I work at Acme until September.",
        "From June to July I work at Acme.",
        "I start my new job at Acme in June for three months.",
    ],
)
def test_what_does_not_surely_begin_is_no_state(text: str) -> None:
    assert begun(text) == []


@pytest.mark.parametrize(
    ("known", "text", "claim"),
    [
        (
            "The user's rent is £950 a month",
            "My rent is going up to £995 from June.",
            "The user's rent goes up to £995",
        ),
        (
            "The gym membership costs £30 a month",
            "The gym membership is rising from £30 to £35 on 1 June.",
            "The gym membership goes up to £35",
        ),
        ("The hourly rate is £45", "The hourly rate drops to £40 next month.", "The hourly rate goes down to £40"),
        (
            "The user's batch size is 64",
            "Our batch size will change to 128 from June.",
            "The user's batch size changes to 128",
        ),
    ],
)
def test_a_new_amount_begins_then_and_ends_the_former_one(known: str, text: str, claim: str) -> None:
    [fact] = said(text, known=[known]).facts

    assert (fact.claim, fact.valid_from, fact.valid_to, fact.contradicts) == (claim, JUNE, None, (1,))


@pytest.mark.parametrize(
    "text",
    [
        "My rent might go up to £995 from June.",
        "My rent went up to £995 in April.",
        "My rent was raised to £995 from June.",
        "My weight goes up to 80 kg by June.",
    ],
)
def test_no_amount_begins_that_is_in_doubt_or_over(text: str) -> None:
    assert [fact for fact in said(text).facts if fact.valid_from and fact.valid_from >= JUNE] == []


def test_the_plan_is_over_after_its_day() -> None:
    plan, state = said("I start work at Acme on 1 December.").facts

    assert (plan.claim, plan.temporal) == ("The user starts work at Acme on 1 December 2023", "future")
    assert plan.valid_to == datetime(2023, 12, 2, tzinfo=UTC)
    assert claims("I start work at Acme on 1 December.") == [plan.claim, state.claim]


def test_a_plan_that_may_begin_anything_stays_a_plan() -> None:
    [plan] = said("I start at Acme on 1 December.", known=["The user works at Globex"]).facts

    assert (plan.claim, plan.temporal) == ("The user starts at Acme on 1 December 2023", "future")
    assert plan.contradicts == ()


def test_a_known_home_is_a_place() -> None:
    found = said("I'm moving to Ovar in June.", known=["Ben lives in Ovar"]).facts

    assert "The user lives in Ovar" in [fact.claim for fact in found]


def test_a_plan_to_move_is_no_home_of_today() -> None:
    facts = said("I'm moving to Porto in May.", known=["The user lives in Leeds"]).facts

    assert [(fact.claim, fact.contradicts) for fact in facts] == [("The user is moving to Porto in May 2023", ())]


def test_the_plan_to_start_in_a_role_names_the_role_and_ends_with_its_day() -> None:
    plan = said("I'm starting at Acme as a UX designer on 1 June.").facts[0]

    assert plan.claim == "The user starts at Acme as a UX designer on 1 June 2023"
    assert (plan.temporal, plan.valid_to) == ("future", datetime(2023, 6, 2, tzinfo=UTC))
