"""Pure formulas that score memories, each with its source. SQL that computes the same takes its constants from here."""

import math

IMPORTANCE_WEIGHT = 0.4
CONFIDENCE_WEIGHT = 0.3
RECENCY_WEIGHT = 0.3
DAILY_DECAY = 0.95
"""The documented decay of salience: the factor of one day."""

CONFIDENCE_BY_CERTAINTY = {"explicit": 0.95, "implied": 0.85, "inferred": 0.70, "uncertain": 0.50}
"""The documented calibration of an extractor's labels of certainty."""

WILSON_Z = 1.96
"""Half the width of a 95 % interval in standard deviations."""

EPISODIC_WEIGHT = 0.3
FACT_WEIGHT = 0.25
ENTITY_WEIGHT = 0.2
PROCEDURAL_WEIGHT = 0.15
RECENCY_BOOST = 0.1
"""The documented weights of retrieval."""

TEMPORAL_BOOSTS = {"current": 1.2, "past": 0.7, "future": 1.0}
"""The documented boosts of facts by the time they are about. For the future nothing is documented."""

SPEAKER_BOOST = 1.5
"""Factor of turns by a speaker the question asks about: the largest allowed, as it says nearly as much as words do."""

SALIENCE_SPAN = 0.2
WINDOW_BOOST = 0.3
WORK_BOOST = 0.3
RELATIONSHIP_BOOST = 0.3
URGENCY_DECAY = 0.9
"""Share of the boost that each goal has of the one before it in the order of urgency."""

TRUST_SHARE = 0.35
CONFIDENCE_SHARE = 0.2
EVIDENCE_BOOST = 0.05
PIN_BOOST = 0.2

WINDOW_FADE_SHARE = 0.25
MIN_FADE_SECONDS = 6 * 3_600.0
MAX_FADE_SECONDS = 30 * 86_400.0
OPEN_WINDOW_FADE_SECONDS = 86_400.0

DECAY_AFTER_DAYS = 1.0
"""Documented days without a read or a write after which salience decays."""
DECAY_FREQUENCY_BOOST = 0.1
DECAY_RECENCY_BOOST = 0.1
WEEK_DAYS = 7.0
MIN_DECAY_STEP = 0.01
"""Least change of a decaying salience that is written: 32 times at most from 0.5, 47 times from 1."""
MAX_DECAY_STEPS = 700.0
"""Upper bound of the exponent in SQL: 0.95 ^ 700 is 3e-16, and PostgreSQL refuses powers that are near zero."""

MIN_STALENESS_SCALE = 0.5
SUPERSEDED_SCALE = 0.25


def recency_score(age_days: float) -> float:
    """Return 0.95 ^ days, in (0, 1]; 1 for the present and the future."""
    return math.pow(DAILY_DECAY, max(age_days, 0.0))


def effective_relevance_score(*, importance: float, confidence: float, age_days: float) -> float:
    """Return 0.4 importance + 0.3 confidence + 0.3 recency, in [0, 1].

    A weighted sum, as Park et al. 2023 (Generative Agents) score memories: an important memory stays so when it is old.
    `age_days` counts from the last write or read of an entry.
    """
    return IMPORTANCE_WEIGHT * importance + CONFIDENCE_WEIGHT * confidence + RECENCY_WEIGHT * recency_score(age_days)


def wilson_lower_bound(positive: int, total: int) -> float:
    """Return the share of positives to expect at least, with 97.5 % certainty; 0 for no votes. Wilson 1927.

    Few votes count for little: 1 of 1 is 0.21, 10 of 10 is 0.72, 90 of 100 is 0.83.
    """
    if not total:
        return 0.0
    share, z2 = positive / total, WILSON_Z**2
    margin = WILSON_Z * math.sqrt((share * (1 - share) + z2 / (4 * total)) / total)
    return max(0.0, (share + z2 / (2 * total) - margin) / (1 + z2 / total))


def success_rate(successes: int, failures: int) -> float:
    """Return the expected share of successes, in (0, 1): (s + 1) / (s + f + 2), Laplace's rule of succession.

    An untried strategy has 0.5, so that it is found at all; 1 of 1 is 0.67, 9 of 10 is 0.83.
    """
    return (successes + 1) / (successes + failures + 2)


def kind_factor(weight: float) -> float:
    """Return a documented weight relative to the largest one, in [0.5, 1]: 1, 0.83, 0.67, 0.5."""
    return weight / EPISODIC_WEIGHT


def recency_factor(age_days: float) -> float:
    """Return 1 + 0.1 recency, in (1, 1.1], the documented weight. `age_days` counts from the event or the last read."""
    return 1 + RECENCY_BOOST * recency_score(age_days)


def salience_factor(salience: float) -> float:
    """Return 0.8 + 0.4 salience, in [0.8, 1.2]; 1 for the initial salience of 0.5."""
    return 1 + SALIENCE_SPAN * (2 * salience - 1)


def window_fade_seconds(length_seconds: float) -> float:
    """Return the distance from a window at which its boost is halved: a quarter of its length, 6 hours to 30 days.

    For a window without a beginning or an end, one day.
    """
    if math.isinf(length_seconds):
        return OPEN_WINDOW_FADE_SECONDS
    return min(max(WINDOW_FADE_SHARE * length_seconds, MIN_FADE_SECONDS), MAX_FADE_SECONDS)


def window_factor(fades: float) -> float:
    """Return 1 + 0.3 * 0.5 ^ fades, in [1, 1.3]: 1.3 inside of a window, 1 far away.

    `fades` is the distance from the window in units of its `window_fade_seconds`, 0 inside.
    """
    return 1 + WINDOW_BOOST * math.pow(0.5, fades)


def work_factor(closeness: float, rank: int) -> float:
    """Return 1 + 0.3 closeness * 0.9 ^ rank, in [1, 1.3].

    `closeness` to an open goal is in [0, 1]; `rank` is that of the goal among the open ones, 0 for the most urgent.
    """
    return 1 + WORK_BOOST * closeness * math.pow(URGENCY_DECAY, rank)


def relationship_factor(hops: int) -> float:
    """Return 1 + 0.3 * 0.5 ^ hops, in (1, 1.3]. `hops` counts links from a named entity, 0 for the entity itself."""
    return 1 + RELATIONSHIP_BOOST * math.pow(0.5, hops)


def provenance_factor(*, trust: float, confidence: float | None, has_evidence: bool, is_pinned: bool) -> float:
    """Return (0.65 + 0.35 trust) * (0.8 + 0.2 confidence) * 1.05 with evidence * 1.2 if pinned, in [0.52, 1.26].

    1 for a fully trusted memory of which nothing else is known. Confidence (None for what is no claim) only subtracts.
    """
    factor = 1 - TRUST_SHARE * (1 - trust)
    if confidence is not None:
        factor *= 1 - CONFIDENCE_SHARE * (1 - confidence)
    if has_evidence:
        factor *= 1 + EVIDENCE_BOOST
    return factor * (1 + PIN_BOOST) if is_pinned else factor


def decay_frequency_boost(access_count: int) -> float:
    """Return 1 + 0.1 ln(1 + reads), at least 1, the documented logarithmic boost: 1.24 for 10 reads, 1.46 for 100."""
    return 1 + DECAY_FREQUENCY_BOOST * math.log1p(access_count)


def decay_recency_boost(age_days: float) -> float:
    """Return 1 + 0.1 e ^ -days, in [1, 1.1], the documented inverse exponential boost, gone within the first week."""
    return 1 + DECAY_RECENCY_BOOST * math.exp(-max(age_days, 0.0))


def decayed_salience(initial: float, *, age_days: float, access_count: int) -> float:
    """Return initial * 0.95 ^ days * frequency boost * recency boost, in [0, initial].

    The documented curve of forgetting: halved in two weeks without a read. `age_days` counts from the last read or
    write. The boosts slow the decay down and never raise the salience above its initial value.
    """
    boosts = decay_frequency_boost(access_count) * decay_recency_boost(age_days)
    return min(initial, initial * recency_score(age_days) * boosts)


def decayed_confidence(initial: float, *, age_days: float) -> float:
    """Return initial * 0.95 ^ whole weeks, in [0, initial], for inferred confidence: halved in 14 weeks."""
    return initial * math.pow(DAILY_DECAY, max(age_days, 0.0) // WEEK_DAYS)


def staleness(*, age_days: float, access_count: int, importance: float, is_superseded: bool) -> float:
    """Return the staleness of a context entry, in [0, 1]: 1 - 0.95 ^ (days / scale), the complement of its recency.

    The scale slows its days down: (1 + ln(1 + reads)) * (0.5 + importance), a quarter of that if another entry
    supersedes it. `age_days` counts from the last read or write. Days until 0.9:

        reads   importance 0   importance 0.5   importance 1   superseded, 0.5
            0           22.4             44.9           67.3              11.2
            3           53.6            107.1          160.7              26.8
           10           76.3            152.5          228.8              38.1
    """
    scale = (1 + math.log1p(access_count)) * (MIN_STALENESS_SCALE + importance)
    return 1 - recency_score(age_days / (scale * SUPERSEDED_SCALE if is_superseded else scale))


def days_until_stale(share: float) -> float:
    """Return the days of scale 1 after which `staleness` is `share`, in [0, 1]: 44.9 for 0.9, infinity for 1."""
    return math.inf if share >= 1 else math.log(1 - share) / math.log(DAILY_DECAY)


POSSIBLE_REPLACEMENT = 0.02
"""Least probability, that one statement replaces another, which is kept; it orders what a question finds together."""
PROBABLE_REPLACEMENT = 0.2
"""Probability from which on a pair counts as probably replaced."""
SURE_REPLACEMENT = 0.6
"""Least probability at which the earlier statement is marked as superseded."""
COMPETING_REPLACEMENT = 0.3
"""Probability from which on the likeliest replacement of a later statement competes with its others."""
COMPETING_MARGIN = 0.2
"""Others that are less probable by more than this count for nothing: one statement rarely replaces two others."""
MAX_STATEMENT_CHARACTERS = 250
"""A longer text says more than what one later statement replaces."""
SUPERSEDED_FACTOR = 0.5
"""Factor on the score of a superseded statement whose successor is among the results."""
