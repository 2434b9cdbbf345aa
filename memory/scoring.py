"""Formulas that score memories: pure, and each with its source. What SQL has to compute as well takes its constants
from here."""

import math

IMPORTANCE_WEIGHT = 0.4
CONFIDENCE_WEIGHT = 0.3
RECENCY_WEIGHT = 0.3
DECAY_A_DAY = 0.95
"""What a day leaves of recency: the documented decay of salience."""

CONFIDENCE_OF = {"explicit": 0.95, "implied": 0.85, "inferred": 0.70, "uncertain": 0.50}
"""The documented calibration: what an extractor's label of certainty is worth."""

WILSON_Z = 1.96
"""Standard deviations of a 95 % interval."""


def recency(age_days: float) -> float:
    """0.95 ^ days, in (0, 1]; 1 for what is of now, or of later."""
    return math.pow(DECAY_A_DAY, max(age_days, 0.0))


def effective_relevance_score(*, importance: float, confidence: float, age_days: float) -> float:
    """0.4 importance + 0.3 confidence + 0.3 recency, in [0, 1].

    A weighted sum, as Park et al. 2023 (Generative Agents) score memories: what is important stays so when it is old.
    `age_days` are the days since an entry was last written or read.
    """
    return IMPORTANCE_WEIGHT * importance + CONFIDENCE_WEIGHT * confidence + RECENCY_WEIGHT * recency(age_days)


def wilson_lower_bound(positive: int, total: int) -> float:
    """How much of all to expect positive at least, with 97.5 % certainty; 0 for none. Wilson 1927.

    Few votes count for little: 1 of 1 is 0.21, 10 of 10 is 0.72, 90 of 100 is 0.83.
    """
    if not total:
        return 0.0
    share, z2 = positive / total, WILSON_Z**2
    margin = WILSON_Z * math.sqrt((share * (1 - share) + z2 / (4 * total)) / total)
    return max(0.0, (share + z2 / (2 * total) - margin) / (1 + z2 / total))


def success_rate(successes: int, failures: int) -> float:
    """How often to expect success, in (0, 1): (s + 1) / (s + f + 2), Laplace's rule of succession.

    What was never tried is 0.5, so that a new strategy is found at all; 1 of 1 is 0.67, 9 of 10 is 0.83.
    """
    return (successes + 1) / (successes + failures + 2)
