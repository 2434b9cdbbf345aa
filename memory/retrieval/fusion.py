"""Fusion: one relevance in [0, 1] out of what words and meaning say of a candidate, whatever its kind."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Fusion

RRF_K = 60


def standardized(candidates: Sequence[Candidate]) -> None:
    """The logistic function of the sum of standard scores, over these candidates, of BM25 and similarity.

    A candidate without a vector has the average similarity: words alone decide on it.
    """
    words = standard_scores([candidate.bm25 for candidate in candidates])
    meaning = standard_scores([candidate.similarity for candidate in candidates])
    for candidate, by_words, by_meaning in zip(candidates, words, meaning, strict=True):
        tell(candidate)
        candidate.score = 1 / (1 + math.exp(-(by_words + by_meaning)))
        candidate.signals["relevance"] = candidate.score


def standard_scores(values: Sequence[float | None]) -> list[float]:
    """(x - mean) / standard deviation; 0 for None, and for all where they do not differ."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not known.size or (spread := float(known.std())) < 1e-9:
        return [0.0] * len(values)
    mean = float(known.mean())
    return [0.0 if value is None else (value - mean) / spread for value in values]


def reciprocal_rank_fusion(candidates: Sequence[Candidate]) -> None:
    """Merge the two rankings: score(d) = sum over both of 1 / (60 + rank), over its largest. Cormack et al. 2009."""
    totals = dict.fromkeys((candidate.id for candidate in candidates), 0.0)
    for value_of in (by_words, by_meaning):
        present = [candidate for candidate in candidates if value_of(candidate) is not None]
        ranked = sorted(present, key=lambda candidate: (-(value_of(candidate) or 0.0), candidate.id))
        for rank, candidate in enumerate(ranked, start=1):
            totals[candidate.id] += 1 / (RRF_K + rank)
    for candidate in candidates:
        tell(candidate)
        candidate.score = totals[candidate.id] * (RRF_K + 1) / 2
        candidate.signals["relevance"] = candidate.score


def by_words(candidate: Candidate) -> float | None:
    return candidate.bm25 or None


def by_meaning(candidate: Candidate) -> float | None:
    return candidate.similarity


def tell(candidate: Candidate) -> None:
    """What the recallers say, for `explain`."""
    candidate.signals["bm25"] = candidate.bm25
    if candidate.similarity is not None:
        candidate.signals["similarity"] = candidate.similarity
    if candidate.hops is not None:
        candidate.signals["hops"] = float(candidate.hops)


FUSIONS: Mapping[str, Fusion] = {"standardized": standardized, "rrf": reciprocal_rank_fusion}
"""By name; the first is the default: sums of standard scores find more than ranks do (`docs/recall.md`)."""

ValueOf = Callable[[Candidate], float | None]
