"""The formulas, against rows computed by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.scoring import (
    days_until_stale,
    decay_frequency_boost,
    decay_recency_boost,
    decayed_confidence,
    decayed_salience,
    effective_relevance_score,
    kind_factor,
    provenance_factor,
    recency_factor,
    recency_score,
    relationship_factor,
    salience_factor,
    staleness,
    wilson_lower_bound,
    window_factor,
    window_fade_seconds,
    work_factor,
)
from tests.properties import examples

SHARES = st.floats(0, 1)
DAYS = st.floats(0, 10_000)
READS = st.integers(0, 1_000_000)
DAY = 86_400


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
    assert recency_score(age_days) == pytest.approx(left, abs=1e-4)


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


def test_more_votes_with_the_same_share_score_higher() -> None:
    bounds = [wilson_lower_bound(4 * votes, 5 * votes) for votes in (1, 2, 10, 100, 10_000)]

    assert bounds == sorted(bounds)
    assert all(bound < 0.8 for bound in bounds)


@pytest.mark.parametrize(("weight", "factor"), [(0.3, 1), (0.25, 0.8333), (0.2, 0.6667), (0.15, 0.5)])
def test_kinds_count_as_their_documented_weights_over_the_largest(weight: float, factor: float) -> None:
    assert kind_factor(weight) == pytest.approx(factor, abs=1e-4)


@pytest.mark.parametrize(("age_days", "factor"), [(0, 1.1), (-5, 1.1), (1, 1.095), (14, 1.04877), (90, 1.00099)])
def test_recency_counts_a_tenth(age_days: float, factor: float) -> None:
    assert recency_factor(age_days) == pytest.approx(factor, abs=1e-5)


@pytest.mark.parametrize(("salience", "factor"), [(0, 0.8), (0.25, 0.9), (0.5, 1), (0.75, 1.1), (1, 1.2)])
def test_salience_counts_a_fifth_to_either_side_of_a_half(salience: float, factor: float) -> None:
    assert salience_factor(salience) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("length", "fading"),
    [
        pytest.param(0, DAY / 4, id="a moment"),
        pytest.param(DAY, DAY / 4, id="a day"),
        pytest.param(8 * DAY, 2 * DAY, id="eight days"),
        pytest.param(60 * DAY, 15 * DAY, id="two months"),
        pytest.param(365 * DAY, 30 * DAY, id="a year"),
        pytest.param(math.inf, DAY, id="without end"),
    ],
)
def test_windows_fade_over_a_quarter_of_their_length(length: float, fading: float) -> None:
    assert window_fade_seconds(length) == fading


@pytest.mark.parametrize(("fadings", "factor"), [(0, 1.3), (1, 1.15), (2, 1.075), (20, 1.0), (math.inf, 1.0)])
def test_the_window_bonus_halves_with_each_fading_period(fadings: float, factor: float) -> None:
    assert window_factor(fadings) == pytest.approx(factor, abs=1e-6)


@pytest.mark.parametrize(
    ("closeness", "place", "factor"),
    [(1, 0, 1.3), (1, 1, 1.27), (1, 2, 1.243), (0.75, 0, 1.225), (0.5, 0, 1.15), (0.5, 1, 1.135), (0, 0, 1)],
)
def test_work_counts_by_closeness_and_by_the_place_of_its_goal(closeness: float, place: int, factor: float) -> None:
    assert work_factor(closeness, place) == pytest.approx(factor)


@pytest.mark.parametrize(("hops", "factor"), [(0, 1.3), (1, 1.15), (2, 1.075), (3, 1.0375)])
def test_each_link_leaves_half_of_the_relationship(hops: int, factor: float) -> None:
    assert relationship_factor(hops) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("trust", "confidence", "has_evidence", "is_pinned", "factor"),
    [
        (1.0, None, False, False, 1.0),
        (1.0, 1.0, False, False, 1.0),
        (1.0, 0.5, False, False, 0.9),
        (0.0, None, False, False, 0.65),
        (0.0, 0.0, False, False, 0.52),
        (0.5, 0.5, False, False, 0.825 * 0.9),
        (1.0, None, True, False, 1.05),
        (1.0, None, False, True, 1.2),
        (1.0, 1.0, True, True, 1.26),
    ],
)
def test_provenance_multiplies_trust_confidence_evidence_and_pins(
    trust: float, confidence: float | None, has_evidence: bool, is_pinned: bool, factor: float
) -> None:
    found = provenance_factor(trust=trust, confidence=confidence, has_evidence=has_evidence, is_pinned=is_pinned)

    assert found == pytest.approx(factor)


@examples(50)
@given(SHARES, SHARES, st.booleans(), st.booleans())
def test_more_trust_or_confidence_never_counts_less(less: float, more: float, has_evidence: bool, pin: bool) -> None:
    less, more = sorted((less, more))
    by_trust = [
        provenance_factor(trust=trust, confidence=None, has_evidence=has_evidence, is_pinned=pin)
        for trust in (less, more)
    ]
    by_confidence = [
        provenance_factor(trust=1, confidence=confidence, has_evidence=has_evidence, is_pinned=pin)
        for confidence in (less, more)
    ]

    assert by_trust == sorted(by_trust)
    assert by_confidence == sorted(by_confidence)
    assert salience_factor(less) <= salience_factor(more)


@pytest.mark.parametrize(("reads", "boost"), [(0, 1), (1, 1.069315), (10, 1.239790), (100, 1.461512)])
def test_reads_slow_fading_down_by_their_logarithm(reads: int, boost: float) -> None:
    assert decay_frequency_boost(reads) == pytest.approx(boost, abs=1e-6)


@pytest.mark.parametrize(("age_days", "boost"), [(0, 1.1), (1, 1.036788), (7, 1.000091), (-1, 1.1), (1e9, 1)])
def test_the_recency_boost_approaches_one_with_age(age_days: float, boost: float) -> None:
    assert decay_recency_boost(age_days) == pytest.approx(boost, abs=1e-6)


@pytest.mark.parametrize(
    ("initial", "age_days", "access_count", "left"),
    [
        # initial * 0.95 ^ days * (1 + 0.1 ln(1 + n)) * (1 + 0.1 e ^ -days), and no more than it was
        (0.5, 0, 0, 0.5),
        (0.5, 1, 0, 0.5 * 0.95 * 1.036788),
        (1.0, 13.513, 0, 0.5),
        (1.0, 30, 0, 0.214639),
        (1.0, 30, 10, 0.214639 * 1.239790),
        (1.0, 7, 100, 1.0),
        (0.0, 7, 100, 0.0),
        (0.5, -3, 0, 0.5),
    ],
)
def test_salience_halves_in_two_weeks(initial: float, age_days: float, access_count: int, left: float) -> None:
    assert decayed_salience(initial, age_days=age_days, access_count=access_count) == pytest.approx(left, abs=1e-4)


@examples(50)
@given(SHARES, DAYS, DAYS, READS, READS)
def test_salience_never_grows_with_time_and_reads_only_slow_its_decay(
    initial: float, age_days: float, later: float, reads: int, more: int
) -> None:
    (age_days, later), (reads, more) = sorted((age_days, later)), sorted((reads, more))
    left = decayed_salience(initial, age_days=age_days, access_count=reads)

    assert 0 <= decayed_salience(initial, age_days=later, access_count=reads) <= left <= initial
    assert left <= decayed_salience(initial, age_days=age_days, access_count=more) <= initial


@pytest.mark.parametrize(
    ("age_days", "left"), [(0, 0.7), (6.99, 0.7), (7, 0.665), (13.9, 0.665), (14, 0.63175), (95, 0.359)]
)
def test_inferred_confidence_falls_by_the_week(age_days: float, left: float) -> None:
    assert decayed_confidence(0.7, age_days=age_days) == pytest.approx(left, abs=1e-3)


@pytest.mark.parametrize(
    ("age_days", "access_count", "importance", "is_superseded", "stale"),
    [
        # 1 - 0.95 ^ (days / ((1 + ln(1 + n)) * (0.5 + importance) * (0.25 if superseded)))
        (0, 0, 0.5, False, 0.0),
        (14, 0, 0.5, False, 0.5123),
        (44.9, 0, 0.5, False, 0.9),
        (22.45, 0, 0.0, False, 0.9),
        (67.35, 0, 1.0, False, 0.9),
        (11.225, 0, 0.5, True, 0.9),
        (107.15, 3, 0.5, False, 0.9),
        (-1, 0, 0.5, False, 0.0),
        (1e6, 0, 0.5, False, 1.0),
    ],
)
def test_entries_go_stale_in_weeks(
    age_days: float, access_count: int, importance: float, is_superseded: bool, stale: float
) -> None:
    found = staleness(age_days=age_days, access_count=access_count, importance=importance, is_superseded=is_superseded)

    assert found == pytest.approx(stale, abs=1e-4)


@examples(50)
@given(DAYS, DAYS, READS, READS, SHARES, SHARES)
def test_staleness_grows_with_age_and_falls_with_use_and_weight(
    age_days: float, later: float, reads: int, more: int, weight: float, heavier: float
) -> None:
    (age_days, later), (reads, more) = sorted((age_days, later)), sorted((reads, more))
    weight, heavier = sorted((weight, heavier))

    def stale(age: float = age_days, n: int = reads, importance: float = weight, superseded: bool = False) -> float:
        return staleness(age_days=age, access_count=n, importance=importance, is_superseded=superseded)

    assert 0 <= stale() <= stale(age=later) <= 1
    assert stale(n=more) <= stale() <= stale(superseded=True)
    assert stale(importance=heavier) <= stale()


@pytest.mark.parametrize(("share", "days"), [(0.0, 0), (0.5, 13.513), (0.9, 44.891), (1.0, math.inf)])
def test_days_until_stale_are_those_of_recency(share: float, days: float) -> None:
    assert days_until_stale(share) == pytest.approx(days, abs=1e-3)
