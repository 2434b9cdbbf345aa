"""The ranker: relevance as a weighted sum of a few signals, whose weights were learnt (`weights.json`).

s = sum over the signals of weight * value; relevance is e^((s - best) / 2), as of `standardized` sums. So a candidate's
`ranked.<signal>` in its signals, weight * value, tell how it came to its place. Turns have weights of their own: what
stands around them speaks for them, and all else stands alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from memory.retrieval.candidates import Candidate
from memory.retrieval.fusion import DEVIATIONS_A_FOLD, Scores, read_meaning, tell
from memory.retrieval.plans import Setting
from memory.retrieval.ranking.signals import SIGNALS
from memory.retrieval.ranking.tables import Table, make_table, read_content, read_gist

WEIGHTS = Path(__file__).with_name("weights.json")
PREFIX = "ranked."
LARGEST = 1e6
"""Of a weight, either way: sums of larger ones may be no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """By signal; a signal without a weight counts for nothing. `turns` are those of turns, `others` of all else.

    Raises ValueError for signals that there are not, as a weight that is never used would go unnoticed, and for weights
    that are no numbers, by any of which no order would be left.
    """

    turns: Mapping[str, float]
    others: Mapping[str, float]

    def __post_init__(self) -> None:
        if unknown := sorted({*self.turns, *self.others} - SIGNALS.keys()):
            raise ValueError(f"there is no signal {', '.join(unknown)} to weigh: there are {', '.join(SIGNALS)}")
        for name, weight in (*self.turns.items(), *self.others.items()):
            if not is_weight(weight):
                raise ValueError(f"the weight of {name} has to be a number from {-LARGEST:g} to {LARGEST:g}")

    @property
    def names(self) -> list[str]:
        """Of the signals that count."""
        return [name for name in SIGNALS if self.turns.get(name) or self.others.get(name)]

    def of(self, names: Sequence[str], *, is_turn: bool) -> Scores:
        weights = self.turns if is_turn else self.others
        return np.array([weights.get(name, 0.0) for name in names])


def is_weight(told: object) -> bool:
    """Also of what a file tells: neither NaN, nor a text, nor true."""
    return isinstance(told, int | float) and not isinstance(told, bool) and -LARGEST <= told <= LARGEST


@lru_cache(maxsize=1)
def learnt_weights() -> Weights:
    """Read once a process. Raises ValueError, as `read_weights`."""
    return read_weights(WEIGHTS)


def read_weights(path: Path) -> Weights:
    """Raises ValueError with the file and what is wrong with it, in a sentence."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Weights(turns=part_of(told, "turns"), others=part_of(told, "others"))
    except OSError as err:
        raise ValueError(f"{path} cannot be read: {err.strerror}") from err
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from err


def part_of(told: Any, name: str) -> dict[str, float]:
    part = told.get(name) if isinstance(told, dict) else None
    if not isinstance(part, dict):
        raise ValueError(f'"{name}" has to be an object: the weight of each signal by its name')
    return part


def learned(candidates: Sequence[Candidate], setting: Setting) -> None:
    rank_by(learnt_weights(), candidates, setting)


def rank_by(weights: Weights, candidates: Sequence[Candidate], setting: Setting) -> None:
    """Give each candidate its first score by these weights of signals."""
    if not candidates:
        return
    names = weights.names
    table = make_table(candidates, setting)
    weighed = np.where(table.is_turn[:, None], weights.of(names, is_turn=True), weights.of(names, is_turn=False))
    parts = compute_signals(table, names) * weighed
    sums: Scores = parts.sum(axis=1)
    tell(candidates, read_compared(table), np.exp((sums - sums.max()) / DEVIATIONS_A_FOLD))
    told = [f"{PREFIX}{name}" for name in names]
    tell_inputs(table)
    for candidate, row in zip(candidates, parts.tolist(), strict=True):
        candidate.signals.update(compress(zip(told, row, strict=True), row))


def tell_inputs(table: Table) -> None:
    """What words and meaning were told by, beside BM25 and similarity."""
    content = read_content(table.candidates, table.speakers).tolist()
    for candidate, score, is_gist in zip(table.candidates, content, table.by_gist.tolist(), strict=True):
        candidate.signals["content"] = score
        if is_gist and candidate.gist is not None:
            candidate.signals["gist"] = candidate.gist


def read_compared(table: Table) -> Scores:
    """What meaning was compared by."""
    compared: Scores = np.where(table.by_gist, read_gist(table.candidates), read_meaning(table.candidates))
    return compared


def compute_signals(table: Table, names: Sequence[str]) -> Scores:
    """One row a candidate, one column a signal."""
    columns = [SIGNALS[name](table) for name in names]
    return np.stack(columns, axis=1) if columns else np.zeros((table.size, 0))
