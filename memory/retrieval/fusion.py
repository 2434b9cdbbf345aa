"""Fusion: one relevance in [0, 1] out of what words and meaning say of a candidate, whatever its kind.

Relevance is relative: to the candidates of this question, among which the best has the most. Whether anything is near
at all is in the signals `bm25` and `similarity`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting

Scores = NDArray[np.float64]

RRF_K = 60

LEAST_SPREAD_OF_WORDS = 0.25
LEAST_SPREAD_OF_MEANING = 0.02
"""Standard deviations below these are counted as these: of two candidates that hardly differ none is far ahead, and
words that nearly all memories hold decide little."""

DEVIATIONS_A_FOLD = 2.0
"""How many standard deviations make e times the relevance: a factor f of a scorer moves a candidate as far as 2 ln f
of them, wherever it stands."""


def standardized(candidates: Sequence[Candidate], _setting: Setting) -> None:
    """exp((s - the greatest s) / 2), s the sum of the standard scores, over these candidates, of BM25 and similarity.

    Exponential, so that scorers' factors count alike at the top and below: the logistic function saturates where the
    best ones are, and any factor would overrule words and meaning there. A candidate without a vector has the average
    similarity: words alone decide on it, as they do on all where there are no vectors, and meaning where no word fits.
    """
    if not candidates:
        return
    words, meaning = read_words(candidates), read_meaning(candidates)
    sums = standard_scores(words, least_spread=LEAST_SPREAD_OF_WORDS)
    sums += standard_scores(meaning, least_spread=LEAST_SPREAD_OF_MEANING)
    tell(candidates, meaning, np.exp((sums - sums.max()) / DEVIATIONS_A_FOLD))


def reciprocal_rank_fusion(candidates: Sequence[Candidate], _setting: Setting) -> None:
    """Merge the two rankings: score(d) = sum over both of 1 / (60 + rank), over the most there is. Cormack et al. 2009.

    Draws share their rank. What is in neither ranking has 0.
    """
    if not candidates:
        return
    words, meaning = read_words(candidates), read_meaning(candidates)
    words[words <= 0] = np.nan
    rankings = [values for values in (words, meaning) if not np.isnan(values).all()]
    totals = sum((1 / (RRF_K + ranks(values)) for values in rankings), np.zeros(len(candidates)))
    tell(candidates, meaning, totals * (RRF_K + 1) / max(len(rankings), 1))


def read_words(candidates: Sequence[Candidate]) -> Scores:
    return known(np.array([candidate.bm25 for candidate in candidates], dtype=np.float64))


def read_meaning(candidates: Sequence[Candidate]) -> Scores:
    """NaN for None."""
    return known(np.array([candidate.similarity for candidate in candidates], dtype=np.float64))


def known(values: Scores) -> Scores:
    """NaN for what is no finite number."""
    values[~np.isfinite(values)] = np.nan
    return values


def standard_scores(values: Scores, *, least_spread: float) -> Scores:
    """(x - mean) / standard deviation, the latter at least `least_spread`; 0, the average, for NaN."""
    told = values[~np.isnan(values)]
    if not told.size:
        return np.zeros(values.size)
    scores: Scores = np.nan_to_num((values - told.mean()) / max(float(told.std()), least_spread))
    return scores


def ranks(values: Scores) -> Scores:
    """1 for the greatest; equal ones share the better rank, NaN is infinitely far behind."""
    told = np.sort(values[~np.isnan(values)])
    places = (1 + told.size - np.searchsorted(told, values, side="right")).astype(np.float64)
    places[np.isnan(values)] = np.inf
    return places


def tell(candidates: Sequence[Candidate], meaning: Scores, relevance: Scores) -> None:
    """Give each candidate its score, and say what the recallers say of it."""
    average = np.nanmean(meaning) if not np.isnan(meaning).all() else np.inf
    for candidate, score, is_near in zip(candidates, relevance.tolist(), (meaning >= average).tolist(), strict=True):
        candidate.score = score
        candidate.signals["relevance"] = score
        candidate.signals["bm25"] = candidate.bm25
        if candidate.similarity is not None:
            candidate.signals["similarity"] = candidate.similarity
        if candidate.hops is not None:
            candidate.signals["hops"] = float(candidate.hops)
        candidate.tell_ways(is_near=is_near)
