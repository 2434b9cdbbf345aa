"""TextRank with numpy: scores for how central each sentence of a text is.

Mihalcea & Tarau, "TextRank: Bringing Order into Texts", EMNLP 2004, with a walk that restarts at sentences of
weight (Haveliwala, "Topic-Sensitive PageRank", 2002) instead of anywhere.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Words = Sequence[str]

# The paper walks on with 0.85. In dialogue what the others echo most is greetings and courtesies: more
# restarts at weighty sentences keep more of what later questions ask for.
DAMPING = 0.3
TOLERANCE = 1e-6
MAX_ITERATIONS = 100


def inverse_document_frequencies(sentences: Sequence[Words]) -> dict[str, float]:
    """Return the weight of each word: ln(1 + (n - df + 0.5) / (df + 0.5)), as in BM25; never negative.

    It stands for the stop-word lists and part-of-speech filters of the paper, which only exist by language.
    """
    frequencies = Counter(word for sentence in sentences for word in dict.fromkeys(sentence))
    count = len(sentences)
    return {word: math.log1p((count - df + 0.5) / (df + 0.5)) for word, df in frequencies.items()}


def similarities(sentences: Sequence[Words]) -> Vector:
    """Return the paper's overlap with weighted words: sum of idf over common words / (ln(1 + |a|) + ln(1 + |b|)).

    A square matrix with a diagonal of zeros. It adds up word by word over the sentences that hold the word, so that its
    memory is the square of the number of sentences, whatever the vocabulary.
    """
    weights = inverse_document_frequencies(sentences)
    holders: dict[str, list[int]] = {}
    for index, sentence in enumerate(sentences):
        for word in dict.fromkeys(sentence):
            holders.setdefault(word, []).append(index)
    overlap: Vector = np.zeros((len(sentences), len(sentences)))
    for word, indices in holders.items():
        if len(indices) > 1:
            overlap[np.ix_(indices, indices)] += weights[word]
    np.fill_diagonal(overlap, 0.0)
    lengths: Vector = np.log1p([len(sentence) for sentence in sentences])
    overlap /= np.maximum(lengths[:, None] + lengths[None, :], 1.0)
    return overlap


def rank(similarity: Vector, *, prior: Vector) -> Vector:
    """Return scores that sum to 1, by damped power iteration: s = (1 - d) p + d Mᵀ s, M the similarities by row.

    `prior` (p, positive, any scale) is where the walk restarts; uniform, it is the paper's formula scaled.
    A sentence like no other passes its score on by the prior. Rounded to nine digits, so that the
    order of near-equal scores does not hang on how the machine adds.
    """
    restart = prior / prior.sum()
    totals = similarity.sum(axis=1)
    is_linked = totals > 0
    transitions = similarity[is_linked] / totals[is_linked, None]
    scores: Vector = restart.copy()
    for _ in range(MAX_ITERATIONS):
        walked = transitions.T @ scores[is_linked] + scores[~is_linked].sum() * restart
        updated = (1 - DAMPING) * restart + DAMPING * walked
        change = np.abs(updated - scores).sum()
        scores = updated
        if change < TOLERANCE:
            break
    return scores.round(9)
