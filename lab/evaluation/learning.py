"""Weights of signals learned from choices: listwise softmax, as plain mathematics.

A choice is one question and its candidates. The model is that candidate c is chosen with p(c), softmax(X w + offset) at
c; the weights w are those under which the wanted candidates are the likeliest: they minimize

    sum over choices of times * cross entropy(wanted, p) + l2 * |w|^2

(Cao et al. 2007, ListNet with the top one). It is convex, and strictly so with l2 > 0: there is one such w, and damped
Newton steps find it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

MAX_STEPS = 60
MAX_HALVINGS = 30
CLOSE_ENOUGH = 1e-9
"""A step that gains less, relative to the loss, is the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChoice:
    """`signals` has one row a candidate, one column a weight; `wanted` are shares that add up to 1.

    `offset` is what speaks for each candidate besides the signals, and is not learned. A choice counts `times` times.
    `columns` are the places of the weights that the columns belong to, where other choices have other weights; None:
    all of them, in order.
    """

    signals: Numbers
    wanted: Numbers
    offset: Numbers
    times: float = 1.0
    columns: NDArray[np.intp] | None = None

    @property
    def places(self) -> NDArray[np.intp]:
        return np.arange(self.signals.shape[1]) if self.columns is None else self.columns

    def limited_to(self, is_kept: NDArray[np.bool_]) -> "RankingChoice":
        """Return the choice with these weights alone, of which the others keep their order."""
        own = is_kept[self.places]
        columns = (np.cumsum(is_kept) - 1)[self.places[own]]
        return replace(self, signals=self.signals[:, own], columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The loss at some weights, and its first and second derivatives there."""

    loss: float
    gradient: Numbers
    curvature: Numbers


def learn(choices: Sequence[RankingChoice], *, l2: float, start: Numbers | None = None) -> Numbers:
    """Return the weights, wherever the search starts. Needs at least one choice."""
    weights = np.zeros(1 + max(choice.places.max() for choice in choices)) if start is None else start
    slope = slope_at(choices, weights, l2=l2)
    for _ in range(MAX_STEPS):
        # downhill: with l2 the curvature is positive, also where nothing was observed
        step: Numbers = np.linalg.solve(slope.curvature, slope.gradient).astype(np.float64)
        weights = damp(choices, weights, step, slope, l2=l2)
        before, slope = slope.loss, slope_at(choices, weights, l2=l2)
        if before - slope.loss <= CLOSE_ENOUGH * max(1.0, before):
            break
    return weights


def damp(choices: Sequence[RankingChoice], weights: Numbers, step: Numbers, slope: Slope, *, l2: float) -> Numbers:
    """Return the weights after as much of the step as reduces the loss, or unchanged if nothing of it does."""
    share = 1.0
    for _ in range(MAX_HALVINGS):
        tried: Numbers = weights - share * step
        if loss_at(choices, tried, l2=l2) < slope.loss:
            return tried
        share /= 2
    return weights


def cross_entropy(choices: Sequence[RankingChoice], weights: Numbers) -> float:
    """Return the mean cross entropy over choices, in nats."""
    return loss_at(choices, weights, l2=0.0) / sum(choice.times for choice in choices)


def loss_at(choices: Sequence[RankingChoice], weights: Numbers, *, l2: float) -> float:
    entropies = [-choice.times * float(choice.wanted @ log_shares(choice, weights)) for choice in choices]
    return sum(entropies) + l2 * float(weights @ weights)


def slope_at(choices: Sequence[RankingChoice], weights: Numbers, *, l2: float) -> Slope:
    loss, gradient = l2 * float(weights @ weights), 2 * l2 * weights
    curvature = 2 * l2 * np.eye(len(weights))
    # one after the other: a choice fits into the processor's cache, all of them do not
    for choice in choices:
        logarithms = log_shares(choice, weights)
        shares = np.exp(logarithms)
        expected = shares @ choice.signals
        loss -= choice.times * float(choice.wanted @ logarithms)
        gradient[choice.places] += choice.times * ((shares - choice.wanted) @ choice.signals)
        variance = (choice.signals * shares[:, None]).T @ choice.signals - np.outer(expected, expected)
        curvature[np.ix_(choice.places, choice.places)] += choice.times * variance
    return Slope(loss=loss, gradient=gradient, curvature=curvature)


def log_shares(choice: RankingChoice, weights: Numbers) -> Numbers:
    """Return the logarithms of the softmax, which are finite however far apart the candidates are."""
    sums = choice.signals @ weights[choice.places] + choice.offset
    sums -= sums.max()
    logarithms: Numbers = sums - np.log(np.exp(sums).sum())
    return logarithms
