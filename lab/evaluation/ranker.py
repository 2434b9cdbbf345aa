"""Weights of the ranker: learnt from recorded questions, and judged on others than they were learnt from."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lab.evaluation.learning import Choice, Numbers, cross_entropy, learn
from lab.evaluation.recording import LEARNED, Recorded
from memory.retrieval.plans import Plan
from memory.retrieval.ranking import Weights, learnt_weights, rank_by
from memory.retrieval.ranking.signals import SIGNALS

L2 = 0.3
"""How much large weights cost, unless it is said."""
PLACES = 10
LEAST_TAUGHT = 0.05
"""Of the questions: a signal that tells anything in fewer keeps its weight."""
PARTS = 5
"""Into which questions are dealt out where there is one sample only."""
ALL = tuple(SIGNALS)
OF_OTHERS = ("words", "meaning", "covers", "of_time", "parent", "quoted", "no_turn")
"""What is learnt of what is no turn: the rest would only tell how the kinds of these very samples are written."""
NOTHING = Weights(turns={}, others={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Weights by signal, and from how many questions they are; their cross entropy there, in nats a question.

    Of `kept` signals they are what they were: nothing taught anything about them.
    """

    weights: Mapping[str, float]
    questions: int = 0
    nll: float | None = None
    kept: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    turns: Lesson
    others: Lesson

    @property
    def weights(self) -> Weights:
        return Weights(turns=self.turns.weights, others=self.others.weights)


def learn_weights(
    recorded: Sequence[Recorded], *, l2: float = L2, names: Collection[str] = ALL, kept: Weights | None = None
) -> Learnt:
    """Weights of these signals alone: of turns where there was nothing else to choose from, then of all else.

    So that what turns are worth among themselves is not bent by what they were compared with. `kept` (the shipped ones)
    stay where nothing is taught.
    """
    kept = kept or learnt_weights()
    useful = [each for each in recorded if each.can_teach]
    columns = [name for name in SIGNALS if name in names]
    turns = learn_some([turns_of(each, columns) for each in useful if each.is_of_turns], columns, kept.turns, l2=l2)
    columns = [name for name in columns if name in OF_OTHERS]
    mixed = [others_of(each, columns, turns.weights) for each in useful if not each.is_of_turns]
    return Learnt(turns=turns, others=learn_some(mixed, columns, kept.others, l2=l2))


def learn_some(choices: Sequence[Choice], names: Sequence[str], kept: Mapping[str, float], *, l2: float) -> Lesson:
    telling = telling_columns(choices, len(names))
    weights = vector_of(kept, names)
    if telling.any():
        weights[telling] = learn([replace(each, signals=each.signals[:, telling]) for each in choices], l2=l2)
    return Lesson(
        weights=dict(zip(names, weights.tolist(), strict=True)),
        questions=len(choices),
        nll=cross_entropy(choices, weights) if choices else None,
        kept=[name for name, tells in zip(names, telling, strict=True) if not tells],
    )


def telling_columns(choices: Sequence[Choice], count: int) -> NDArray[np.bool_]:
    """Those of signals that tell candidates of enough questions from each other: from a handful nothing is learnt."""
    times = np.zeros(count)
    for choice in choices:
        times += (choice.signals != choice.signals[0]).any(axis=0)
    telling: NDArray[np.bool_] = (times > 0) & (times >= LEAST_TAUGHT * len(choices))
    return telling


def turns_of(recorded: Recorded, names: Sequence[str]) -> Choice:
    return Choice(signals=recorded.signals[:, columns_of(names)], wanted=wanted_of(recorded), offset=recorded.offset)


def others_of(recorded: Recorded, names: Sequence[str], turns: Mapping[str, float]) -> Choice:
    """With the turns among the candidates as they stand already."""
    signals = recorded.signals[:, columns_of(names)]
    standing = np.where(recorded.is_turn, recorded.signals @ vector_of(turns, ALL), 0.0)
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
    """Each question, judged by weights that were learnt without its part.

    What nothing else teaches counts for nothing: shipped weights may know the part.
    """
    judged = []
    for part in parts_of(recorded):
        weights = learn_weights(without(part, recorded), l2=l2, names=names, kept=NOTHING).weights
        judged += [(each, found_by(weights, each)) for each in part]
    return judged


def without(part: Sequence[Recorded], recorded: Sequence[Recorded]) -> list[Recorded]:
    held = set(map(id, part))
    return [each for each in recorded if id(each) not in held]


def untaught_when_held_out(recorded: Sequence[Recorded]) -> int:
    """How many of `found_when_held_out` were judged by less than there is to learn."""
    return sum(count_untaught(part, without(part, recorded)) for part in parts_of(recorded))


def count_untaught(recorded: Sequence[Recorded], others: Sequence[Recorded]) -> int:
    """The questions with candidates, turns or others, whose weights none of the other questions teaches."""
    taught = {each.is_of_turns for each in others if each.can_teach}
    return sum(not taught.issuperset(each.is_turn.tolist()) for each in recorded)


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
