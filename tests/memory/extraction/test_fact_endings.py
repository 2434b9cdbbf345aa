"""The probability that a fact ends because a later statement replaces the one that it was learned from."""

import pytest

from memory.extraction.fact_endings import (
    ENDING_FLOOR,
    FEATURES,
    SHIPPED,
    EndingWeights,
    FactEnding,
    ending_features,
    ending_probability,
)
from memory.scoring import PROBABLE_REPLACEMENT, SURE_REPLACEMENT

CLAIM, EARLIER, LATER = "The user's standup is at 9:15", "Our standup is at 9:15.", "standup got bumped to ten"


def features(
    claim: str = CLAIM, older: str = EARLIER, newer: str = LATER, *, weight: float = SURE_REPLACEMENT
) -> dict[str, float]:
    return dict(zip(FEATURES, ending_features(FactEnding(claim, older, newer, weight)), strict=True))


def test_features_tell_what_the_link_does_not_know() -> None:
    found = features("Ana works at Globex", "Ana: I work at Globex, 3 days a week", "I also work 2 days for Initech")

    assert found == pytest.approx(
        {
            "link": 0.405,
            "lost_name": 1.0,
            "other_number": 1.0,
            "adds": 1.0,
            "newer_is_own": 1.0,
            "older_is_own": 1.0,
            "has_change": 0.0,
            "repeats_claim": 1 / 3,
        },
        abs=0.001,
    )


def test_the_more_surely_the_statement_was_replaced_the_more_probably_its_fact_ends() -> None:
    weights = (0.0, PROBABLE_REPLACEMENT, SURE_REPLACEMENT, 0.9, 1.0)

    found = [ending_probability(FactEnding(CLAIM, EARLIER, LATER, weight)) for weight in weights]

    assert found == sorted(found)
    assert found[0] < ENDING_FLOOR < found[-1] < 1


@pytest.mark.parametrize(
    ("claim", "older", "newer", "may_end"),
    [
        ("The user's daughter is Ziva", "My daughter Ziva is at kindergarten.", "Ziva started school", False),
        ("The user's daughter is Ziva", "My daughter is Ziva.", "Ziva started school", False),
        ("The user's dentist is Kim", "My dentist Kim is on holiday.", "Kim's back at last", False),
        ("The user's dentist is Kim", "My dentist is Kim.", "Since Kim retired I'm with Dr. Sato", True),
        ("The user's daughter is at kindergarten", "My daughter is at kindergarten.", "She started school", True),
    ],
)
def test_news_of_somebody_does_not_change_who_it_is(claim: str, older: str, newer: str, *, may_end: bool) -> None:
    assert (ending_probability(FactEnding(claim, older, newer, 0.99)) > 0) is may_end


def test_the_probability_is_the_logistic_function_of_the_weighted_sum() -> None:
    weights = EndingWeights(-1.0, [2.0, *[0.0] * (len(FEATURES) - 1)])

    assert weights.probability([0.5, *[9.0] * (len(FEATURES) - 1)]) == 0.5
    assert len(SHIPPED.weights) == len(FEATURES)
