"""The formulas, against rows computed by hand."""

import pytest

from memory.scoring import effective_relevance_score, recency, wilson_lower_bound


@pytest.mark.parametrize(
    ("importance", "confidence", "age_days", "score"),
    [
        # 0.4 * importance + 0.3 * confidence + 0.3 * 0.95 ^ days
        (0.5, 1.0, 0, 0.2 + 0.3 + 0.3),
        (1.0, 1.0, 0, 1.0),
        (0.0, 0.0, 0, 0.3),
        (0.5, 1.0, 1, 0.2 + 0.3 + 0.285),
        (0.5, 0.5, 2, 0.2 + 0.15 + 0.27075),
        (1.0, 0.0, 0.5, 0.4 + 0.292404),
        (0.0, 1.0, 14, 0.3 + 0.146302),
        (0.25, 0.8, 90, 0.1 + 0.24 + 0.002966),
        (0.9, 0.1, 100_000, 0.36 + 0.03),
        # of later: as if of now
        (0.5, 1.0, -3, 0.8),
    ],
)
def test_effective_relevance_weighs_importance_confidence_and_recency(
    importance: float, confidence: float, age_days: float, score: float
) -> None:
    found = effective_relevance_score(importance=importance, confidence=confidence, age_days=age_days)

    assert found == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    ("age_days", "left"), [(0, 1), (1, 0.95), (2, 0.9025), (13.513, 0.5), (30, 0.214639), (-1, 1), (1e9, 0)]
)
def test_recency_halves_in_two_weeks(age_days: float, left: float) -> None:
    assert recency(age_days) == pytest.approx(left, abs=1e-4)


@pytest.mark.parametrize(
    ("positive", "total", "bound"),
    [
        # z = 1.96; for all positive it is n / (n + z²), for none 0
        (0, 0, 0.0),
        (0, 1, 0.0),
        (0, 50, 0.0),
        (1, 1, 1 / (1 + 3.8416)),
        (10, 10, 10 / (10 + 3.8416)),
        # (0.5 + z²/4 - 1.96 * sqrt((0.25 + z²/8) / 2)) / (1 + z²/2) = (1.4604 - 1.1849) / 2.9208
        (1, 2, 0.0945),
        (5, 10, 0.2366),
        (90, 100, 0.8256),
        (1, 100, 0.0018),
        (990, 1000, 0.9817),
    ],
)
def test_wilson_expects_little_of_few_votes(positive: int, total: int, bound: float) -> None:
    assert wilson_lower_bound(positive, total) == pytest.approx(bound, abs=1e-4)


def test_more_votes_of_the_same_share_count_for_more() -> None:
    bounds = [wilson_lower_bound(4 * votes, 5 * votes) for votes in (1, 2, 10, 100, 10_000)]

    assert bounds == sorted(bounds)
    assert all(bound < 0.8 for bound in bounds)
