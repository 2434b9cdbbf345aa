"""Logistic regression with ridge regularization, by Newton's method."""

import numpy as np

from lab.evaluation.learning import Numbers

ROUNDS = 30
NO_STEP = 1e-12
"""Newton's method ends when no weight changes by more than this."""


def fit_logistic(table: Numbers, wanted: Numbers, shares: Numbers, ridge: Numbers) -> Numbers:
    """Return the weights of the columns under which the wanted rows are the likeliest.

    They minimize sum(shares * cross entropy) + sum(ridge * weights²) / 2. `shares` are the weights of the rows, which
    add up to 1, and `ridge` has a number for each column, 0 for a bias.
    """
    weights = np.zeros(table.shape[1])
    for _ in range(ROUNDS):
        likely = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (shares * (likely - wanted)) + ridge * weights
        curve = (table * (shares * likely * (1 - likely))[:, None]).T @ table + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < NO_STEP:
            break
    return weights
