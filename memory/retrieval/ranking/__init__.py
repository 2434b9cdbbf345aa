"""Ranking: fusion of what retrievers found into one relevance in [0, 1] per candidate, whatever its kind.

Relevance is relative to the candidates of one question; the best one has the most. Whether anything is near at all is
in the signals `bm25` and `similarity`. Three fusions are available; the first is the default:

- `learned`: s = sum over the signals of weight * value (`signals`, `weights.json`), relevance = e^((s - best) / 2).
  Each `ranked.<signal>` in `Candidate.signals` is one weight * value. Turns have weights of their own, by the register
  of the conversations (`registers.REGISTERS`): the turns around them count as well, while all other kinds stand alone.
- `standardized`: words and meaning alone.
- `rrf`: reciprocal rank fusion of the two.

To add a fusion, write a function `(Sequence[Candidate], ScoringContext) -> None` that sets each `score`, and add its
line to FUSIONS.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import IS_PINNED, Candidate, Fused
from memory.retrieval.plans import Fusion, ScoringContext
from memory.retrieval.ranking.registers import REGISTERS
from memory.retrieval.ranking.signals import SIGNALS
from memory.retrieval.ranking.table import (
    MIN_MEANING_DEVIATION,
    MIN_WORDS_DEVIATION,
    Scores,
    Table,
    bm25_scores,
    make_table,
    similarity_scores,
    standard_scores,
)

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
SIGNAL_PREFIX = "ranked."
MAX_WEIGHT = 1e6
"""Limit of a weight in either direction. Sums of larger ones might overflow."""

RRF_K = 60

NO_COLUMNS: Mapping[str, Scores] = MappingProxyType({})

DEVIATIONS_PER_E_FOLD = 2.0
"""Standard deviations that multiply the relevance by e. A scorer's factor f moves a candidate by 2 ln f of them,
whatever its rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of signals by name, for turns of each register, for what was extracted from turns, and for all others.

    A signal without a weight does not count. Raises ValueError for unknown signals, whose weights would silently never
    be used, and for weights that are not numbers, which would leave no order.
    """

    turns: Mapping[str, Mapping[str, float]]
    """By register; those of a register that is missing are zero."""
    others: Mapping[str, float]
    extracted: Mapping[str, float] | None = None
    """For facts and entities that were learned from turns. Those turns are candidates, too, so the other weights, which
    put what stands for itself before what was said about it, would prefer any fact to the turn that answers. None: they
    have the weights of `others`."""

    def __post_init__(self) -> None:
        if strange := sorted(self.turns.keys() - set(REGISTERS)):
            raise ValueError(f"Not registers: {', '.join(strange)}. Allowed: {', '.join(REGISTERS)}.")
        for weights in (*self.turns.values(), self.others, self.of_extracted):
            if unknown := sorted(weights.keys() - SIGNALS.keys()):
                raise ValueError(f"Not signals: {', '.join(unknown)}. Allowed: {', '.join(SIGNALS)}.")
            for name, weight in weights.items():
                if not is_weight(weight):
                    raise ValueError(f"The weight of {name} must be a number from {-MAX_WEIGHT:g} to {MAX_WEIGHT:g}.")

    def of_turns(self, register: str) -> Mapping[str, float]:
        return self.turns.get(register, {})

    @property
    def of_extracted(self) -> Mapping[str, float]:
        return self.others if self.extracted is None else self.extracted

    def of_candidates(
        self, names: Sequence[str], *, register: str, is_turn: NDArray[np.bool_], is_extracted: NDArray[np.bool_]
    ) -> Scores:
        """Return the weights of these signals with a row for each candidate."""
        groups = (self.others, self.of_turns(register), self.of_extracted)
        by_group = np.array([[each.get(name, 0.0) for name in names] for each in groups])
        rows: Scores = by_group[np.select([is_turn, is_extracted], [1, 2], 0)]
        return rows


def is_weight(value: object) -> bool:
    """Return True for a number within the limit, from JSON too: not NaN, not a text, not `true`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -MAX_WEIGHT <= value <= MAX_WEIGHT


@lru_cache(maxsize=1)
def learned_weights() -> Weights:
    """Return the shipped weights, read once per process. Raises ValueError, as `read_weights` does."""
    return read_weights(WEIGHTS_FILE)


def read_weights(path: Path) -> Weights:
    """Read weights from a JSON file. Raises ValueError with a sentence that names the file and the problem."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        turns = weights_part(content, "turns")
        by_register = {name: weights_part(turns, name) for name in turns}
        extracted = weights_part(content, "extracted") if "extracted" in content else None
        return Weights(turns=by_register, others=weights_part(content, "others"), extracted=extracted)
    except OSError as err:
        raise ValueError(f"{path} cannot be read: {err.strerror}") from err
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from err


def weights_part(content: Any, name: str) -> dict[str, Any]:
    part = content.get(name) if isinstance(content, dict) else None
    if not isinstance(part, dict):
        raise ValueError(f'"{name}" must be an object with the weight of each signal by its name.')
    return part


def fuse_learned(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    rank_by_weights(learned_weights(), candidates, context)


def rank_by_weights(weights: Weights, candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Set the first score of each candidate by these weights of signals."""
    if not candidates:
        return
    table = make_table(candidates, context)
    register = table.speakers.register
    groups = (weights.others, weights.of_turns(register), weights.of_extracted)
    names = [name for name in SIGNALS if any(each.get(name) for each in groups)]
    parts = compute_signals(table, names) * weights.of_candidates(
        names, register=register, is_turn=table.is_turn, is_extracted=table.is_extracted
    )
    sums: Scores = parts.sum(axis=1)
    weighed = np.where(parts == 0, np.nan, parts)
    columns = {f"{SIGNAL_PREFIX}{name}": weighed[:, place] for place, name in enumerate(names)}
    columns["content"] = table.asked_content
    if table.by_gist.any():
        gists = np.array([each.gist for each in candidates], dtype=np.float64)
        columns["gist"] = np.where(table.by_gist, gists, np.nan)
    record_relevance(candidates, table.compared, np.exp((sums - sums.max()) / DEVIATIONS_PER_E_FOLD), columns)


def compute_signals(table: Table, names: Sequence[str]) -> Scores:
    """Return a matrix with one row per candidate and one column per signal."""
    columns = [SIGNALS[name](table) for name in names]
    return np.stack(columns, axis=1) if columns else np.zeros((table.size, 0))


def fuse_standardized(candidates: Sequence[Candidate], _context: ScoringContext) -> None:
    """Set exp((s - the greatest s) / 2), s being the sum of the standard scores of BM25 and similarity.

    Exponential, so that scorers' factors count alike at the top and below: the logistic function is nearly flat where
    the best candidates are, and any factor would overrule words and meaning there. A candidate without a vector gets
    the average similarity: words alone decide on it, as they do on all candidates if there are no vectors, and meaning
    if no word matches.
    """
    if not candidates:
        return
    words, meaning = bm25_scores(candidates), similarity_scores(candidates)
    sums = standard_scores(words, min_deviation=MIN_WORDS_DEVIATION)
    sums += standard_scores(meaning, min_deviation=MIN_MEANING_DEVIATION)
    record_relevance(candidates, meaning, np.exp((sums - sums.max()) / DEVIATIONS_PER_E_FOLD))


def reciprocal_rank_fusion(candidates: Sequence[Candidate], _context: ScoringContext) -> None:
    """Set the sum over both rankings of 1 / (60 + rank), divided by the greatest possible sum. Cormack et al. 2009.

    Ties share their rank. A candidate in neither ranking gets 0.
    """
    if not candidates:
        return
    words, meaning = bm25_scores(candidates), similarity_scores(candidates)
    words[words <= 0] = np.nan
    rankings = [values for values in (words, meaning) if not np.isnan(values).all()]
    totals = sum((1 / (RRF_K + rank_values(values)) for values in rankings), np.zeros(len(candidates)))
    record_relevance(candidates, meaning, totals * (RRF_K + 1) / max(len(rankings), 1))


def rank_values(values: Scores) -> Scores:
    """Return rank 1 for the greatest value. Equal values share the better rank; NaN gets infinity."""
    known = np.sort(values[~np.isnan(values)])
    ranks = (1 + known.size - np.searchsorted(known, values, side="right")).astype(np.float64)
    ranks[np.isnan(values)] = np.inf
    return ranks


def record_relevance(
    candidates: Sequence[Candidate], similarity: Scores, relevance: Scores, columns: Mapping[str, Scores] = NO_COLUMNS
) -> None:
    """Set the score of each candidate, and record the relevance and what else it was computed from."""
    average = np.nanmean(similarity) if not np.isnan(similarity).all() else np.inf
    fused = Fused(columns={"relevance": relevance, **columns}, is_near=similarity >= average)
    for row, (candidate, score) in enumerate(zip(candidates, relevance.tolist(), strict=True)):
        candidate.score, candidate.fused, candidate.row = score, fused, row
        if candidate.pinned:
            candidate.add_reason(IS_PINNED)


FUSIONS: Mapping[str, Fusion] = {
    "learned": fuse_learned,
    "standardized": fuse_standardized,
    "rrf": reciprocal_rank_fusion,
}
"""Fusions by name; the first is the default (`docs/recall.md`)."""
