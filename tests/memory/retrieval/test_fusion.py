"""Fusion: one finite relevance out of words and meaning, whatever they are."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Fusion
from memory.retrieval.ranking import FUSIONS, fuse_standardized, reciprocal_rank_fusion
from memory.retrieval.ranking.table import PASSAGE_DISCOUNT
from tests.memory.candidates import asking, found, numbers
from tests.properties import examples

ALL = [pytest.param(fuse, id=name) for name, fuse in FUSIONS.items()]
# differences below the rounding error are ignored
WORDS = st.integers(0, 50_000).map(lambda thousandths: thousandths / 1_000)
NEARNESS = st.integers(-1_000, 1_000).map(lambda thousandths: thousandths / 1_000)
MEANING = st.none() | NEARNESS
SAID = st.lists(st.tuples(WORDS, MEANING), min_size=1, max_size=30)

Said = Sequence[tuple[float, float | None]]


def saying(said: Said) -> list[Candidate]:
    """Candidates with these BM25 scores and similarities, numbered from 1."""
    return [found(at, bm25=bm25, similarity=near) for at, (bm25, near) in enumerate(said, start=1)]


def fused(fuse: Fusion, *said: tuple[float, float | None]) -> list[float]:
    candidates = saying(said)
    fuse(candidates, asking())
    return [each.score for each in candidates]


@pytest.mark.parametrize(
    ("said", "relevance"),
    [
        # mean 2, deviation 2: ±1; similarity the same: ±1. Sums 2 and -2, of which exp(-4 / 2)
        pytest.param([(4, 0.8), (0, 0.4)], [1, math.exp(-2)], id="both agree"),
        pytest.param([(4, 0.4), (0, 0.8)], [1, 1], id="they outweigh each other"),
        # words: mean 1, deviation sqrt(2): 2 / 1.4142, -1 / 1.4142 twice
        pytest.param([(3, None), (0, None), (0, None)], [1] + 2 * [math.exp(-3 / math.sqrt(2) / 2)], id="words alone"),
        pytest.param([(0, 0.9), (0, 0.1)], [1, math.exp(-1)], id="meaning alone"),
        # the third has the average similarity, 0.6: words 4, 0, 2 are (±1, 0) / 0.8165, meaning ±1
        pytest.param(
            [(4, 0.8), (0, 0.4), (2, None)],
            [1, math.exp(-(2 / math.sqrt(2 / 3) + 2) / 2), math.exp(-(1 / math.sqrt(2 / 3) + 1) / 2)],
            id="one without a vector",
        ),
        # 0.1 apart is a deviation of 0.05, counted as 0.25: ±0.2
        pytest.param([(1.1, None), (1.0, None)], [1, math.exp(-0.2)], id="hardly any difference"),
        pytest.param([(3, 0.5)], [1], id="one alone"),
        pytest.param([(0, None)], [1], id="one of which nothing is known"),
        pytest.param([(2, 0.3), (2, 0.3), (2, 0.3)], [1, 1, 1], id="all the same"),
    ],
)
def test_standardized_is_e_to_half_the_distance_from_the_best_sum_of_deviations(
    said: Said, relevance: list[float]
) -> None:
    assert fused(fuse_standardized, *said) == pytest.approx(relevance)


def test_a_memory_of_many_passages_needs_a_nearer_one() -> None:
    long, short = found(1, similarity=0.5 + PASSAGE_DISCOUNT * math.log(8), passages=8), found(2, similarity=0.5)

    fuse_standardized([long, short], asking())

    assert long.score == pytest.approx(short.score)


@pytest.mark.parametrize(
    ("said", "relevance"),
    [
        pytest.param([(4, 0.8), (2, 0.4)], [1, 61 / 62], id="both agree"),
        pytest.param([(4, 0.4), (2, 0.8)], [(1 + 61 / 62) / 2] * 2, id="they outweigh each other"),
        pytest.param([(4, 0.8), (0, 0.4)], [1, 61 / 62 / 2], id="no word is no rank"),
        pytest.param([(4, 0.8), (2, None)], [1, 61 / 62 / 2], id="no vector is no rank"),
        pytest.param([(4, None), (2, None), (2, None), (1, None)], [1, 61 / 62, 61 / 62, 61 / 64], id="a draw"),
        pytest.param([(0, 0.9), (0, 0.1)], [1, 61 / 62], id="meaning alone"),
        pytest.param([(0, None), (0, None)], [0, 0], id="nothing is known"),
    ],
)
def test_rank_fusion_adds_reciprocal_ranks_relative_to_the_maximum(said: Said, relevance: list[float]) -> None:
    assert fused(reciprocal_rank_fusion, *said) == pytest.approx(relevance)


@pytest.mark.parametrize("fuse", ALL)
def test_no_candidates_have_no_scores(fuse: Fusion) -> None:
    assert fused(fuse) == []


@pytest.mark.parametrize("fuse", ALL)
def test_outliers_among_thousands_keep_the_others_in_order(fuse: Fusion) -> None:
    said = [(900.0, 0.9), (899.0, 0.89), *((0.001 * number, 0.0001 * number) for number in range(4_000, 0, -1))]

    scores = fused(fuse, *said)

    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


@pytest.mark.parametrize("fuse", ALL)
def test_nan_and_infinite_scores_do_not_affect_the_ranking(fuse: Fusion) -> None:
    odd = fused(fuse, (math.nan, 0.5), (2, math.nan), (1, math.inf), (3, 0.7))

    assert all(0 <= score <= 1 for score in odd)
    assert max(odd) == odd[3]


@pytest.mark.parametrize("fuse", ALL)
@examples(50)
@given(SAID)
def test_relevance_is_from_0_to_1_and_in_the_signals(fuse: Fusion, said: Said) -> None:
    candidates = saying(said)

    fuse(candidates, asking())

    assert all(0 <= each.score <= 1 for each in candidates)
    assert [each.signals["relevance"] for each in candidates] == [each.score for each in candidates]


@pytest.mark.parametrize("fuse", ALL)
@examples(50)
@given(SAID, st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(fuse: Fusion, said: Said, random: Random) -> None:
    shuffled = saying(said)
    random.shuffle(shuffled)
    fuse(shuffled, asking())

    in_order = sorted(shuffled, key=lambda each: each.id)

    assert [each.score for each in in_order] == pytest.approx(fused(fuse, *said))


@pytest.mark.parametrize("fuse", ALL)
@examples(50)
@given(st.lists(WORDS.map(lambda bm25: bm25 + 0.001), min_size=2, max_size=30), MEANING)
def test_with_equal_similarities_word_scores_decide(fuse: Fusion, words: list[float], meaning: float | None) -> None:
    scores = fused(fuse, *((bm25, meaning) for bm25 in words))

    assert order(scores, words) == sorted(words)
    assert len(set(scores)) == len(set(words))


@pytest.mark.parametrize("fuse", ALL)
@examples(50)
@given(st.lists(NEARNESS, min_size=2, max_size=30), WORDS)
def test_with_equal_word_scores_similarities_decide(fuse: Fusion, meaning: list[float], words: float) -> None:
    scores = fused(fuse, *((words, similarity) for similarity in meaning))

    assert order(scores, meaning) == sorted(meaning)


def order(scores: list[float], values: list[float]) -> list[float]:
    """Return the values in the order of their scores."""
    return [value for _, value in sorted(zip(scores, values, strict=True))]


@examples(50)
@given(SAID, st.floats(0, 100))
def test_adding_a_constant_to_all_word_scores_changes_nothing(said: Said, more: float) -> None:
    raised = fused(fuse_standardized, *((bm25 + more, similarity) for bm25, similarity in said))

    assert raised == pytest.approx(fused(fuse_standardized, *said), rel=1e-6)


def test_equal_differences_of_word_scores_give_equal_score_ratios() -> None:
    candidates = saying([(9, None), (8, None), (2, None), (1, None)])

    fuse_standardized(candidates, asking())
    best, second, third, last = (each.score for each in candidates)

    assert best / second == pytest.approx(third / last)


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        pytest.param({"bm25": 1.0, "ways": {"lexical"}}, ["shares words with the question"], id="words"),
        pytest.param({"similarity": 0.9, "ways": {"vector"}}, ["close in meaning"], id="meaning"),
        pytest.param({"similarity": 0.3, "ways": {"vector"}}, [], id="the farther half"),
        pytest.param({"ways": {"temporal"}}, ["of the time asked about"], id="time"),
        pytest.param({"ways": {"graph"}, "hops": 0}, ["named in the question"], id="named"),
        pytest.param({"ways": {"graph"}, "hops": 2}, ["linked to what the question names"], id="linked"),
        pytest.param({"ways": {"pinned"}, "pinned": True}, ["pinned"], id="pinned"),
        pytest.param(
            {"ways": {"vector", "lexical"}, "bm25": 2.0, "similarity": 0.9, "pinned": True},
            ["shares words with the question", "close in meaning", "pinned"],
            id="several, in one order",
        ),
    ],
)
@pytest.mark.parametrize("fuse", ALL)
def test_reasons_name_the_ways_in_which_it_was_found(fuse: Fusion, fields: dict[str, Any], reasons: list[str]) -> None:
    candidate = found(1, **{"bm25": 0.0, "similarity": 0.0} | fields)

    fuse([candidate, found(2, bm25=0.0, similarity=0.8)], asking())

    assert candidate.reasons == reasons


def test_equal_candidates_keep_their_order() -> None:
    candidates = saying([(1, 0.5)] * 3)

    fuse_standardized(candidates, asking())

    assert numbers(candidates) == [1, 2, 3]
