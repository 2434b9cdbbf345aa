"""Learning and judging the weights by which a fact ends when its statement was replaced.

Questions that name what their answers `replaced` say which turns replace which. Facts are extracted from the turns of a
sample, without any of them ending; each fact and later turn that the service compares is a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from lab.evaluation.learning import Numbers
from lab.evaluation.loading import Loaded
from lab.evaluation.logistic import fit_logistic
from memory.extraction.fact_endings import (
    ENDING_FLOOR,
    FEATURES,
    EndingWeights,
    FactEnding,
    ending_features,
    ending_probability,
)
from memory.models import Turn
from memory.services.facts.outdate import find_replaced_facts

L2 = 0.003
"""Ridge on every weight but the intercept, for features of deviation 1, as a share of the loss of one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEndings:
    """Facts of one file that may end: the number of the fact of each row, its features, and whether it ends."""

    file: str
    facts: list[int]
    features: Numbers
    is_ended: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingFigures:
    """Numbers of facts of a file that the floor ends, by weights that were learned without the file."""

    file: str
    replaced: int
    ended: int
    wrongly: int


def read_endings(file: str, loaded: Sequence[Loaded]) -> FactEndings:
    """Return the facts of loaded and extracted samples that the service may end."""
    numbers: dict[UUID, int] = {}
    rows, ended = [], []
    for sample in loaded:
        replaced = sample.replacements
        turns = Turn.objects.filter(account_id=sample.owner.account_id, agent_id=sample.owner.agent_id)
        for found in find_replaced_facts(sample.owner, list(turns.values_list("id", flat=True))):
            ending = FactEnding(found.claim, found.statement, found.replacing, found.weight)
            if found.is_what_was_replaced and ending_probability(ending):
                numbers.setdefault(found.fact_id, len(numbers))
                rows.append((numbers[found.fact_id], ending_features(ending)))
                ended.append((found.turn_id, found.older_id) in replaced)
    return FactEndings(
        file=file,
        facts=[number for number, _features in rows],
        features=np.array([features for _number, features in rows]).reshape(-1, len(FEATURES)),
        is_ended=np.array(ended, dtype=np.float64),
    )


def learn_fact_endings(files: Sequence[FactEndings]) -> EndingWeights:
    """Learn weights from all files, of which each row counts alike."""
    features = np.concatenate([each.features for each in files])
    ended = np.concatenate([each.is_ended for each in files])
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-6
    table = np.c_[(features - mean) / deviation, np.ones(len(features))]
    ridge = np.array([L2] * len(FEATURES) + [0.0])
    fitted = fit_logistic(table, ended, np.full(len(table), 1 / len(table)), ridge)
    weights = fitted[:-1] / deviation
    return EndingWeights(float(fitted[-1] - weights @ mean), weights.tolist())


def judge_files(files: Sequence[FactEndings]) -> list[EndingFigures]:
    """Judge each of several files by weights that were learned on the others."""
    return [
        judge(each, learn_fact_endings([other for other in files if other is not each]))
        for each in files
        if each.facts and len(files) > 1
    ]


def judge(endings: FactEndings, weights: EndingWeights) -> EndingFigures:
    rows = zip(endings.facts, endings.features.tolist(), endings.is_ended.tolist(), strict=True)
    ends = [(number, bool(is_ended), weights.probability(row) >= ENDING_FLOOR) for number, row, is_ended in rows]
    rightly = {number for number, is_ended, is_found in ends if is_found and is_ended}
    return EndingFigures(
        file=endings.file,
        replaced=len({number for number, is_ended, _is_found in ends if is_ended}),
        ended=len(rightly),
        wrongly=len({number for number, _is_ended, is_found in ends if is_found} - rightly),
    )
