"""Weights of the ranker: learnt from recorded questions, and judged on others than they were learnt from."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from memory.management.evaluation.learning import Choice, Numbers, cross_entropy, learn
from memory.management.evaluation.recording import LEARNED, Recorded
from memory.retrieval.plans import Plan
from memory.retrieval.ranking import Weights, learnt_weights, rank_by
from memory.retrieval.ranking.signals import SIGNALS

L2 = 0.3
"""How much large weights cost, unless it is said."""
PLACES = 10
PARTS = 5
"""Into which questions are dealt out where there is one sample only."""
ALL = tuple(SIGNALS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Weights by signal, and from how many questions they are; their cross entropy there, in nats a question.

    Without any question the weights are the shipped ones.
    """

    weights: Mapping[str, float]
    questions: int = 0
    nll: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    turns: Lesson
    others: Lesson

    @property
    def weights(self) -> Weights:
        return Weights(turns=self.turns.weights, others=self.others.weights)


def learn_weights(recorded: Sequence[Recorded], *, l2: float = L2, names: Collection[str] = ALL) -> Learnt:
    """Weights of these signals alone: of turns where there was nothing else to choose from, then of all else.

    So that what turns are worth among themselves is not bent by what they were compared with.
    """
    useful = [each for each in recorded if each.can_teach]
    columns = [name for name in SIGNALS if name in names]
    shipped = learnt_weights()
    turns = learn_some([turns_of(each, columns) for each in useful if each.is_of_turns], columns, shipped.turns, l2=l2)
    mixed = [others_of(each, columns, turns.weights) for each in useful if not each.is_of_turns]
    return Learnt(turns=turns, others=learn_some(mixed, columns, shipped.others, l2=l2))


def learn_some(choices: Sequence[Choice], names: Sequence[str], shipped: Mapping[str, float], *, l2: float) -> Lesson:
    if not choices:
        return Lesson(weights={name: shipped[name] for name in names if name in shipped})
    weights = learn(choices, l2=l2)
    return Lesson(
        weights=dict(zip(names, weights.tolist(), strict=True)),
        questions=len(choices),
        nll=cross_entropy(choices, weights),
    )


def turns_of(recorded: Recorded, names: Sequence[str]) -> Choice:
    return Choice(signals=recorded.signals[:, columns_of(names)], wanted=wanted_of(recorded), offset=recorded.offset)


def others_of(recorded: Recorded, names: Sequence[str], turns: Mapping[str, float]) -> Choice:
    """With the turns among the candidates as they stand already."""
    signals = recorded.signals[:, columns_of(names)]
    standing = np.where(recorded.is_turn, signals @ vector_of(turns, names), 0.0)
    return Choice(
        signals=np.where(recorded.is_turn[:, None], 0.0, signals),
        wanted=wanted_of(recorded),
        offset=recorded.offset + standing,
    )


def wanted_of(recorded: Recorded) -> Numbers:
    wanted = recorded.is_answer.astype(np.float64)
    shares: Numbers = wanted / wanted.sum()
    return shares


def columns_of(names: Sequence[str]) -> list[int]:
    return [ALL.index(name) for name in names]


def vector_of(weights: Mapping[str, float], names: Sequence[str]) -> Numbers:
    return np.array([weights.get(name, 0.0) for name in names])


def with_weights(plan: Plan, weights: Weights) -> Plan:
    """The plan with the ranker as its fusion, and with these weights."""
    return replace(plan, fusion=LEARNED, fuse=partial(rank_by, weights))


def found_by(weights: Weights, recorded: Recorded) -> float:
    """The share of the answers that is among the first ten, as far as weights and scorers decide: before selectors."""
    turns, others = (recorded.signals @ vector_of(each, ALL) for each in (weights.turns, weights.others))
    sums = np.where(recorded.is_turn, turns, others) + recorded.offset
    best = np.argsort(-sums, kind="stable")[:PLACES]
    return float(recorded.is_answer[best].sum()) / recorded.answers


def found_when_held_out(
    recorded: Sequence[Recorded], *, l2: float = L2, names: Collection[str] = ALL
) -> list[tuple[Recorded, float]]:
    """Each question, judged by weights that were learnt without its part."""
    judged = []
    for part in parts_of(recorded):
        held = set(map(id, part))
        weights = learn_weights([each for each in recorded if id(each) not in held], l2=l2, names=names).weights
        judged += [(each, found_by(weights, each)) for each in part]
    return judged


def parts_of(recorded: Sequence[Recorded]) -> Iterator[list[Recorded]]:
    """By sample; where one sample only teaches the same weights, every fifth of its questions."""
    for group in ([each for each in recorded if each.is_of_turns], [each for each in recorded if not each.is_of_turns]):
        samples = list(dict.fromkeys(each.sample for each in group))
        if len(samples) > 1:
            yield from split(group, samples, lambda _place, each: each.sample)
        else:
            yield from split(group, range(PARTS), lambda place, _each: place % PARTS)


def split(
    group: Sequence[Recorded], keys: Collection[Hashable], key_of: Callable[[int, Recorded], Hashable]
) -> Iterator[list[Recorded]]:
    """None of the parts is empty."""
    for key in keys:
        if part := [each for place, each in enumerate(group) if key_of(place, each) == key]:
            yield part
