"""Formulas for the quality of a ranking: relevance is binary, ranks begin with 1.

`ranked` holds each item once, best first; there is at least one answer.
"""

from collections.abc import Collection, Hashable, Sequence
from math import log2

import numpy as np

ROUNDS = 2_000
SEED = 17
CONFIDENCE = 95.0


def recall_at(ranked: Sequence[Hashable], answers: Collection[Hashable], k: int) -> float:
    """Return the share of the answers that is among the first k."""
    return len(set(ranked[:k]) & set(answers)) / len(set(answers))


def hit_at(ranked: Sequence[Hashable], answers: Collection[Hashable], k: int) -> float:
    """Return 1 if any answer is among the first k, else 0."""
    return float(not set(ranked[:k]).isdisjoint(answers))


def reciprocal_rank(ranked: Sequence[Hashable], answers: Collection[Hashable]) -> float:
    """Return 1 / rank of the first answer, 0 if there is none."""
    return next((1 / rank for rank, item in enumerate(ranked, start=1) if item in answers), 0.0)


def is_before(ranked: Sequence[Hashable], answers: Collection[Hashable], replaced: Collection[Hashable]) -> float:
    """Return 1 if an answer is ranked and no replaced memory is ranked before it, else 0."""
    return next((float(item in answers) for item in ranked if item in answers or item in replaced), 0.0)


def ndcg_at(ranked: Sequence[Hashable], answers: Collection[Hashable], k: int) -> float:
    """Return the DCG over the best possible one: sums of 1 / log2(1 + rank). Järvelin and Kekäläinen 2002."""
    gained = sum(discount(rank) for rank, item in enumerate(ranked[:k], start=1) if item in answers)
    best = sum(discount(rank) for rank in range(1, min(len(set(answers)), k) + 1))
    return gained / best


def discount(rank: int) -> float:
    return 1 / log2(1 + rank)


def bootstrap_interval(values: Sequence[float], *, rounds: int = ROUNDS, seed: int = SEED) -> tuple[float, float]:
    """Return the 95 % interval of the mean: percentiles of means of as many values, drawn with replacement.

    Efron 1979. The same values give the same interval; there is at least one.
    """
    drawn = np.random.default_rng(seed).choice(np.asarray(values), size=(rounds, len(values)))
    tail = (100 - CONFIDENCE) / 2
    low, high = np.percentile(drawn.mean(axis=1), (tail, 100 - tail))
    return float(low), float(high)
