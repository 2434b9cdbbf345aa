"""Learning weights: the mathematics, compared with differences, simulated choices and one another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.evaluation.learning import (
    Numbers,
    RankingChoice,
    cross_entropy,
    learn,
    log_shares,
    loss_at,
    slope_at,
)
from tests.properties import examples

SEEDS = st.integers(0, 10_000)
STEP = 1e-5


def make_choices(seed: int, *, weights: Numbers, count: int = 12, candidates: int = 8) -> list[RankingChoice]:
    """Each with one wanted candidate, drawn with the probability that the weights give it."""
    random = np.random.default_rng(seed)
    return [draw_choice(random, weights, candidates) for _ in range(count)]


def draw_choice(random: np.random.Generator, weights: Numbers, candidates: int) -> RankingChoice:
    signals = random.normal(size=(candidates, len(weights)))
    blank = RankingChoice(signals=signals, wanted=np.zeros(candidates), offset=random.normal(size=candidates) / 2)
    wanted = random.multinomial(1, np.exp(log_shares(blank, weights))).astype(np.float64)
    return RankingChoice(signals=signals, wanted=wanted, offset=blank.offset)


def shifted(weights: Numbers, column: int, by: float) -> Numbers:
    moved: Numbers = weights + by * np.eye(len(weights))[column]
    return moved


@examples(15)
@given(seed=SEEDS, l2=st.floats(0.0, 3.0), at=st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_the_derivatives_match_finite_differences_of_the_loss(seed: int, l2: float, at: list[float]) -> None:
    choices, weights = make_choices(seed, weights=np.array([1.0, -1.0, 0.5])), np.array(at)

    slope = slope_at(choices, weights, l2=l2)

    assert slope.loss == pytest.approx(loss_at(choices, weights, l2=l2))
    for column in range(3):
        above, below = (shifted(weights, column, by) for by in (STEP, -STEP))
        rise = loss_at(choices, above, l2=l2) - loss_at(choices, below, l2=l2)
        turn = slope_at(choices, above, l2=l2).gradient - slope_at(choices, below, l2=l2).gradient
        assert slope.gradient[column] == pytest.approx(rise / (2 * STEP), rel=1e-4, abs=1e-4)
        assert slope.curvature[column] == pytest.approx(turn / (2 * STEP), rel=1e-4, abs=1e-4)


@examples(15)
@given(seed=SEEDS, start=st.lists(st.floats(-20, 20), min_size=3, max_size=3))
def test_the_search_ends_at_the_same_weights_wherever_it_starts(seed: int, start: list[float]) -> None:
    choices = make_choices(seed, weights=np.array([2.0, 0.0, -1.0]))

    found = learn(choices, l2=0.3)

    assert learn(choices, l2=0.3, start=np.array(start)) == pytest.approx(found, abs=1e-3)
    assert slope_at(choices, found, l2=0.3).gradient == pytest.approx(np.zeros(3), abs=1e-3)


@pytest.mark.slow
def test_weights_of_simulated_choices_are_recovered() -> None:
    weights = np.array([1.5, -0.7, 0.0, 0.4])

    found = learn(make_choices(3, weights=weights, count=3_000, candidates=20), l2=0.01)

    assert found == pytest.approx(weights, abs=0.1)


@pytest.mark.slow
def test_a_signal_in_the_offset_is_not_learned_again() -> None:
    choices = make_choices(5, weights=np.array([1.0, 2.0]), count=2_000)
    known = [
        RankingChoice(signals=each.signals[:, 1:], wanted=each.wanted, offset=each.offset + each.signals[:, 0])
        for each in choices
    ]

    assert learn(known, l2=0.01) == pytest.approx([2.0], abs=0.15)


def test_a_choice_of_two_candidates_equals_a_logistic_regression() -> None:
    # wanted three times of four at a difference of 1: the logit of 3/4
    wanted = [np.array([1.0, 0.0])] * 3 + [np.array([0.0, 1.0])]
    choices = [RankingChoice(signals=np.array([[1.0], [0.0]]), wanted=each, offset=np.zeros(2)) for each in wanted]

    found = learn(choices, l2=1e-9)

    assert found == pytest.approx([np.log(3)], abs=1e-4)
    assert cross_entropy(choices, found) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_equal_answers_share_the_probability() -> None:
    signals = np.array([[1.0], [1.0], [0.0]])
    choice = RankingChoice(signals=signals, wanted=np.array([0.5, 0.5, 0.0]), offset=np.zeros(3))

    # nothing is gained by telling the two apart: what can be had at best is ln 2
    assert cross_entropy([choice], learn([choice], l2=1e-6)) == pytest.approx(np.log(2), abs=1e-3)


def test_a_signal_that_is_always_zero_gets_zero_weight() -> None:
    choices = make_choices(7, weights=np.array([1.0, 1.0]))
    silent = [
        RankingChoice(signals=each.signals * np.array([1.0, 0.0]), wanted=each.wanted, offset=each.offset)
        for each in choices
    ]

    assert learn(silent, l2=0.3)[1] == 0.0


def test_larger_costs_make_smaller_weights() -> None:
    choices = make_choices(11, weights=np.array([3.0, -2.0]))

    lengths = [float(np.linalg.norm(learn(choices, l2=l2))) for l2 in (0.1, 1.0, 10.0, 100.0)]

    assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e6])
def test_signals_of_any_size_end_in_finite_weights(size: float) -> None:
    choices = [
        RankingChoice(signals=each.signals * size, wanted=each.wanted, offset=each.offset)
        for each in make_choices(13, weights=np.array([1.0, 1.0]))
    ]

    assert np.isfinite(learn(choices, l2=0.3)).all()


def test_choices_may_have_different_weights() -> None:
    choices = make_choices(1, weights=np.array([2.0, -1.0]), count=300, candidates=10)
    apart = [replace(each, columns=np.array([0, 1]) + 2 * (place % 2)) for place, each in enumerate(choices)]

    found = learn(apart, l2=0.3)

    each_alone = [learn(choices[place::2], l2=0.3) for place in (0, 1)]
    assert found == pytest.approx(np.concatenate(each_alone), abs=1e-3)
    kept = [each.limited_to(np.array([True, False, True, True])) for each in apart]
    assert [each.signals.shape[1] for each in kept[:2]] == [1, 2]
    assert learn(kept, l2=0.3)[1:] == pytest.approx(each_alone[1], abs=1e-3)
