"""The documented weights of the kinds (X8), relative to the largest.

Words and meaning alone compare kinds badly: of two memories that say the same the shorter one scores higher by both, so
that names and one-line strategies come before what was said. The weights set that right, and leave a strategy that
fits clearly better its place: the smallest costs it as much as 1.4 standard deviations.
"""

from collections.abc import Mapping, Sequence

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.scoring import ENTITY_WEIGHT, EPISODIC_WEIGHT, FACT_WEIGHT, PROCEDURAL_WEIGHT, kind_factor

KIND_WEIGHTS: Mapping[Kind, float] = {
    # what happened, as it was said or as it is told
    Kind.TURN: EPISODIC_WEIGHT,
    Kind.TURN_SLOT: EPISODIC_WEIGHT,
    Kind.EPISODE: EPISODIC_WEIGHT,
    Kind.WORK_EPISODE: EPISODIC_WEIGHT,
    # what is held to be so
    Kind.FACT: FACT_WEIGHT,
    Kind.CONTEXT_ENTRY: FACT_WEIGHT,
    Kind.LEARNING: FACT_WEIGHT,
    Kind.ARTIFACT: FACT_WEIGHT,
    Kind.ENTITY: ENTITY_WEIGHT,
    # how things are done, and what is to be done: open goals come beside the results anyway, and by active_work
    Kind.STRATEGY: PROCEDURAL_WEIGHT,
    Kind.GOAL: PROCEDURAL_WEIGHT,
}

FACTORS: Mapping[Kind, float] = {kind: kind_factor(weight) for kind, weight in KIND_WEIGHTS.items()}


def kind_weight(candidates: Sequence[Candidate], _setting: Setting) -> None:
    for candidate in candidates:
        candidate.multiply("kind_weight", FACTORS[candidate.kind])
