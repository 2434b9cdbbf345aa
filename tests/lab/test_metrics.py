"""Formulas of rankings: tables computed by hand, and their bounds."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.evaluation.asking import count_words
from lab.evaluation.metrics import bootstrap_interval, hit_at, is_before, ndcg_at, recall_at, reciprocal_rank
from tests.properties import examples

RANKINGS = st.lists(st.integers(0, 12), unique=True, max_size=12)
ANSWERS = st.sets(st.integers(0, 12), min_size=1)
CUTS = st.integers(1, 12)


@pytest.mark.parametrize(
    ("ranked", "answers", "k", "recall", "hit"),
    [
        ("abcd", "a", 1, 1.0, 1.0),
        ("abcd", "bd", 1, 0.0, 0.0),
        ("abcd", "bd", 2, 0.5, 1.0),
        ("abcd", "bd", 4, 1.0, 1.0),
        ("abcd", "dxyz", 10, 0.25, 1.0),
        ("abcd", "dd", 4, 1.0, 1.0),
        ("", "a", 10, 0.0, 0.0),
    ],
)
def test_recall_is_the_share_of_answers_found_and_a_hit_is_any_answer_found(
    ranked: str, answers: str, k: int, recall: float, hit: float
) -> None:
    assert recall_at(ranked, answers, k) == recall
    assert hit_at(ranked, answers, k) == hit


@pytest.mark.parametrize(
    ("ranked", "answers", "expected"),
    [("abcd", "a", 1.0), ("abcd", "cd", 1 / 3), ("abcd", "x", 0.0), ("", "x", 0.0)],
)
def test_the_reciprocal_rank_is_that_of_the_first_answer(ranked: str, answers: str, expected: float) -> None:
    assert reciprocal_rank(ranked, answers) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ranked", "answers", "replaced", "expected"),
    [
        ("nxo", "n", "o", 1.0),
        ("xon", "n", "o", 0.0),
        ("xn", "n", "o", 1.0),
        ("xo", "n", "o", 0.0),
        ("x", "n", "o", 0.0),
    ],
)
def test_is_before_requires_an_answer_above_the_one_it_replaced(
    ranked: str, answers: str, replaced: str, expected: float
) -> None:
    assert is_before(ranked, answers, replaced) == expected


@pytest.mark.parametrize(
    ("ranked", "answers", "k", "expected"),
    [
        ("abcd", "a", 10, 1.0),
        ("abcd", "b", 10, 1 / log2(3)),
        ("abcd", "ac", 10, (1 + 0.5) / (1 + 1 / log2(3))),
        ("abcd", "ab", 1, 1.0),
        ("abcd", "d", 3, 0.0),
    ],
)
def test_ndcg_discounts_by_the_logarithm_of_the_rank(ranked: str, answers: str, k: int, expected: float) -> None:
    assert ndcg_at(ranked, answers, k) == pytest.approx(expected)


@examples(60)
@given(ranked=RANKINGS, answers=ANSWERS, k=CUTS)
def test_every_metric_lies_between_zero_and_one(ranked: list[int], answers: set[int], k: int) -> None:
    recall, hit, gain = recall_at(ranked, answers, k), hit_at(ranked, answers, k), ndcg_at(ranked, answers, k)

    assert 0 <= recall <= hit <= 1
    assert 0 <= gain <= 1 + 1e-9
    assert (recall > 0) == (gain > 0) == (hit > 0)
    assert recall <= recall_at(ranked, answers, k + 1)
    assert (reciprocal_rank(ranked, answers) >= 1 / k) == (hit == 1)


@examples(30)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_bootstrap_interval_lies_within_its_values(values: list[float]) -> None:
    low, high = bootstrap_interval(values, rounds=200)

    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_a_bootstrap_interval_matches_the_standard_error_and_is_deterministic() -> None:
    coins = [0.0, 1.0] * 50

    low, high = bootstrap_interval(coins)

    # the standard error of 100 coins is 0.05, 1.96 of them are 0.098
    assert [low, high] == pytest.approx([0.402, 0.598], abs=0.015)
    assert bootstrap_interval(coins) == (low, high)
    assert bootstrap_interval([0.5]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [("", 0), ("a quiet street", 3), ("我住在上海", 5), ("我住在 Shanghai 了", 5), ("東京タワー", 5), ("ฉัน go", 4)],
)
def test_words_are_counted_in_scripts_without_spaces(text: str, words: int) -> None:
    assert count_words(text) == words
