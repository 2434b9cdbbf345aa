import math

import numpy as np
import pytest

from memory.providers import textrank


def test_a_rare_word_weighs_more_and_a_word_in_every_sentence_almost_nothing() -> None:
    weights = textrank.inverse_document_frequencies([["the", "pump"], ["the", "valve"], ["the"]])

    assert weights["pump"] == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert weights["the"] == pytest.approx(math.log(1 + 0.5 / 3.5))


def test_similarity_is_the_weight_of_common_words_over_the_logs_of_the_lengths() -> None:
    similarity = textrank.similarities([["old", "pump"], ["pump", "pump"], ["valve"]])

    weight = math.log(1 + 1.5 / 2.5)
    assert similarity[0, 1] == similarity[1, 0] == pytest.approx(weight / (math.log(3) + math.log(3)))
    assert similarity[0, 2] == similarity[0, 0] == 0


def test_scores_are_the_fixed_point_of_the_walk() -> None:
    # sentence 1 is like both others, which are unlike each other: s1 = (1-d)/3 + d(s0 + s2), s0 = s2
    similarity = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])

    scores = textrank.rank(similarity, prior=np.ones(3))

    middle = ((1 - textrank.DAMPING) / 3 + textrank.DAMPING) / (1 + textrank.DAMPING)
    assert scores == pytest.approx([(1 - middle) / 2, middle, (1 - middle) / 2], abs=1e-6)


def test_dissimilar_sentences_score_by_their_prior() -> None:
    scores = textrank.rank(np.zeros((2, 2)), prior=np.array([3.0, 1.0]))

    assert scores == pytest.approx([0.75, 0.25])
