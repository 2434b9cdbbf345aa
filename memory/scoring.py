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

EPISODIC_WEIGHT = 0.3
FACT_WEIGHT = 0.25
ENTITY_WEIGHT = 0.2
PROCEDURAL_WEIGHT = 0.15
RECENCY_BOOST = 0.1
"""The documented weights of retrieval."""

TEMPORAL_BOOSTS = {"current": 1.2, "past": 0.7, "future": 1.0}
"""The documented boosts of facts by what they are about; of what is to come, nothing is documented."""

SPEAKER_BOOST = 1.5
"""Of turns by whom a question asks about: as much as any factor may be, since it says nearly as much as words do."""

SALIENCE_SPAN = 0.2
WINDOW_BOOST = 0.3
WORK_BOOST = 0.3
RELATIONSHIP_BOOST = 0.3
LEFT_A_PLACE = 0.9
"""What the next goal in the order of urgency leaves of the one before."""

TRUST_SHARE = 0.35
CONFIDENCE_SHARE = 0.2
EVIDENCE_BOOST = 0.05
PIN_BOOST = 0.2

SHARE_OF_A_WINDOW = 0.25
LEAST_FADING_SECONDS = 6 * 3_600.0
MOST_FADING_SECONDS = 30 * 86_400.0
FADING_OF_OPEN_SECONDS = 86_400.0

FADES_AFTER_DAYS = 1.0
"""Days without a read or a write until salience fades, as documented."""
FADING_FREQUENCY_BOOST = 0.1
FADING_RECENCY_BOOST = 0.1
WEEK_DAYS = 7.0
FADING_STEP = 0.01
"""What fades is written when it has moved by this much at least: from 0.5 that is 32 times, from 1 it is 47, ever."""
OLDEST_FADING_DAYS = 700.0
"""What is older counts as this old in SQL: 0.95 ^ 700 is 3e-16, and PostgreSQL refuses powers that are near zero."""

LEAST_STALE_STRETCH = 0.5
SUPERSEDED_STRETCH = 0.25


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


def kind_factor(weight: float) -> float:
    """A documented weight over the largest one, in [0.5, 1]: 1, 0.83, 0.67, 0.5."""
    return weight / EPISODIC_WEIGHT


def recency_factor(age_days: float) -> float:
    """1 + 0.1 recency, in (1, 1.1]: the documented weight. `age_days` since it happened or was last read."""
    return 1 + RECENCY_BOOST * recency(age_days)


def salience_factor(salience: float) -> float:
    """0.8 + 0.4 salience, in [0.8, 1.2]: 1 at 0.5, which everything begins with."""
    return 1 + SALIENCE_SPAN * (2 * salience - 1)


def fading_seconds(length_seconds: float) -> float:
    """How far outside a window of this length a memory counts for half: a quarter of it, 6 hours to 30 days.

    Of a window without a beginning or an end, a day.
    """
    if math.isinf(length_seconds):
        return FADING_OF_OPEN_SECONDS
    return min(max(SHARE_OF_A_WINDOW * length_seconds, LEAST_FADING_SECONDS), MOST_FADING_SECONDS)


def window_factor(fadings: float) -> float:
    """1 + 0.3 * 0.5 ^ fadings, in [1, 1.3]: 1.3 inside of a window, where `fadings` are 0; 1 far away.

    `fadings` are how far outside it is, in units of the window's `fading_seconds`.
    """
    return 1 + WINDOW_BOOST * math.pow(0.5, fadings)


def work_factor(closeness: float, place: int) -> float:
    """1 + 0.3 closeness * 0.9 ^ place, in [1, 1.3].

    `closeness` in [0, 1] is to an open goal; `place` is that goal's among the open ones, 0 the most urgent.
    """
    return 1 + WORK_BOOST * closeness * math.pow(LEFT_A_PLACE, place)


def relationship_factor(hops: int) -> float:
    """1 + 0.3 * 0.5 ^ hops, in (1, 1.3]; `hops` are links from what the question names, 0 is what it names."""
    return 1 + RELATIONSHIP_BOOST * math.pow(0.5, hops)


def provenance_factor(*, trust: float, confidence: float | None, has_evidence: bool, is_pinned: bool) -> float:
    """(0.65 + 0.35 trust) * (0.8 + 0.2 confidence) * 1.05 with evidence * 1.2 if pinned, in [0.52, 1.26].

    1 for what is trusted fully, with nothing else known: confidence (None: not a claim) only takes away.
    """
    factor = 1 - TRUST_SHARE * (1 - trust)
    if confidence is not None:
        factor *= 1 - CONFIDENCE_SHARE * (1 - confidence)
    if has_evidence:
        factor *= 1 + EVIDENCE_BOOST
    return factor * (1 + PIN_BOOST) if is_pinned else factor


def fading_frequency_boost(access_count: int) -> float:
    """1 + 0.1 ln(1 + reads), at least 1: the documented logarithmic boost. 10 reads are 1.24, 100 are 1.46."""
    return 1 + FADING_FREQUENCY_BOOST * math.log1p(access_count)


def fading_recency_boost(age_days: float) -> float:
    """1 + 0.1 e ^ -days, in [1, 1.1]: the documented inverse exponential boost, gone within the first week."""
    return 1 + FADING_RECENCY_BOOST * math.exp(-max(age_days, 0.0))


def decayed(initial: float, *, age_days: float, access_count: int) -> float:
    """What time leaves of a salience: initial * 0.95 ^ days * frequency boost * recency boost, in [0, initial].

    The documented curve of forgetting: halved in two weeks without a read. `age_days` since it was read or written. The
    boosts slow it down, and never raise it above what it was.
    """
    boosts = fading_frequency_boost(access_count) * fading_recency_boost(age_days)
    return min(initial, initial * recency(age_days) * boosts)


def decayed_confidence(initial: float, *, age_days: float) -> float:
    """What time leaves of an inferred confidence: 0.95 for each whole week, in [0, initial]; halved in 14 weeks."""
    return initial * math.pow(DECAY_A_DAY, max(age_days, 0.0) // WEEK_DAYS)


def staleness(*, age_days: float, access_count: int, importance: float, is_superseded: bool) -> float:
    """How stale a context entry is, in [0, 1]: 1 - 0.95 ^ (days / stretch), the other side of its recency.

    The stretch says how much slower its days pass: (1 + ln(1 + reads)) * (0.5 + importance), a quarter of that if
    another entry supersedes it. `age_days` since it was read or written. Days until 0.9:

        reads   importance 0   importance 0.5   importance 1   superseded, 0.5
            0           22.4             44.9           67.3              11.2
            3           53.6            107.1          160.7              26.8
           10           76.3            152.5          228.8              38.1
    """
    stretch = (1 + math.log1p(access_count)) * (LEAST_STALE_STRETCH + importance)
    return 1 - recency(age_days / (stretch * SUPERSEDED_STRETCH if is_superseded else stretch))


def days_until_stale(share: float) -> float:
    """After how many days of stretch 1 `staleness` is `share`, in [0, 1]: 44.9 for 0.9, never for 1."""
    return math.inf if share >= 1 else math.log(1 - share) / math.log(DECAY_A_DAY)
