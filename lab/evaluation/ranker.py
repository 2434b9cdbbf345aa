"""Weights of the ranker: learned from recorded questions, and judged on others than they were learned from."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from lab.evaluation.learning import Numbers, RankingChoice, cross_entropy, learn
from lab.evaluation.recording import LEARNED, RecordedQuestion
from memory.retrieval.plans import Plan
from memory.retrieval.ranking import Weights, learned_weights, rank_by_weights
from memory.retrieval.ranking.registers import REGISTERS
from memory.retrieval.ranking.signals import OF_REGISTERS, SIGNALS

L2 = 0.0075
"""Default penalty of large weights (of the sum of their squares), for each question: it is compared with a mean."""
PLACES = 10
LEAST_TAUGHT = 0.1
"""Share of the questions in which a signal must vary; below it, it keeps its weight."""
PARTS = 5
"""Number of parts into which the questions of a single sample are split."""
ALL = tuple(SIGNALS)
OF_OTHERS = ("words", "meaning", "covers", "of_time", "parent", "quoted", "no_turn")
"""Signals learned for kinds other than turns: the rest would only reflect how these samples are written."""
OF_EXTRACTED = ("words", "meaning", "covers", "of_time", "quoted", "no_turn", "length")
"""Signals learned for what was extracted from turns. It has names as well as sentences, hence the length."""
NOTHING = Weights(turns={}, others={})


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSet:
    """Weights by signal, and from how many questions they are; their cross entropy there, in nats a question.

    Of `kept` signals they are what they were: nothing taught anything about them.
    """

    weights: Mapping[str, float]
    questions: int = 0
    nll: float | None = None
    kept: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedWeights:
    turns: Mapping[str, LearningSet]
    """By register."""
    others: LearningSet
    extracted: LearningSet

    @property
    def weights(self) -> Weights:
        turns = {register: learned.weights for register, learned in self.turns.items()}
        return Weights(turns=turns, others=self.others.weights, extracted=self.extracted.weights)

    @property
    def sets(self) -> dict[str, LearningSet]:
        """Return all learned weights by the names that they have in `weights.json`."""
        return {**self.turns, "others": self.others, "extracted": self.extracted}


def learn_weights(
    recorded: Sequence[RecordedQuestion], *, l2: float = L2, names: Collection[str] = ALL, kept: Weights | None = None
) -> LearnedWeights:
    """Learn the weights of these signals: from choices among turns alone, then with others, then with extracted ones.

    So that what turns are worth among themselves is not bent by what they were compared with. `kept` (the shipped ones)
    stay where nothing is taught. For extracted ones files count alike, as rules find much in one and little in another.
    """
    kept = kept or learned_weights()
    useful = [each for each in recorded if each.can_teach]
    columns = [name for name in SIGNALS if name in names]
    turns = learn_registers([each for each in useful if each.is_of_turns], columns, kept, l2=l2)
    known = Weights(turns={register: learned.weights for register, learned in turns.items()}, others={})
    own = [name for name in columns if name in OF_OTHERS]
    mixed = [each for each in useful if not (each.is_of_turns or each.has_extracted)]
    others = learn_some([choice_among(each, own, each.is_other, known) for each in mixed], own, kept.others, l2=l2)
    known = replace(known, others=others.weights)
    own = [name for name in columns if name in OF_EXTRACTED]
    mixed = [each for each in useful if each.has_extracted]
    times = Counter(each.file for each in mixed)
    choices = [
        replace(choice_among(each, own, each.is_extracted, known), times=len(mixed) / (len(times) * times[each.file]))
        for each in mixed
    ]
    return LearnedWeights(turns=turns, others=others, extracted=learn_some(choices, own, kept.of_extracted, l2=l2))


def learn_registers(
    recorded: Sequence[RecordedQuestion], names: Sequence[str], kept: Weights, *, l2: float
) -> dict[str, LearningSet]:
    """Learn weights that all registers share, and what each register adds to them.

    Both are kept small (Evgeniou and Pontil 2004), so a register that nothing was recorded of has the shared weights.
    Registers count alike, however many questions they have.
    """
    times = Counter(each.register for each in recorded)
    choices = [
        choice_of_register(each, names, times=len(recorded) / (len(times) * times[each.register])) for each in recorded
    ]
    telling = telling_columns(choices, (1 + len(REGISTERS)) * len(names))
    parts = np.zeros(telling.size)
    if telling.any():
        some = [each.limited_to(telling) for each in choices]
        parts[telling] = learn(some, l2=l2 * len(some), start=np.zeros(int(telling.sum())))
    shared, *own = parts.reshape(-1, len(names))
    is_common, *is_own = telling.reshape(-1, len(names))
    learned = {}
    for place, register in enumerate(REGISTERS):
        is_taught = is_common | is_own[place]
        weights = np.where(is_taught, shared + own[place], vector_of(kept.of_turns(register), names))
        some = [
            replace(choice, signals=each.signals[:, columns_of(names)], times=1.0, columns=None)
            for choice, each in zip(choices, recorded, strict=True)
            if each.register == register
        ]
        learned[register] = LearningSet(
            weights=dict(zip(names, weights.tolist(), strict=True)),
            questions=len(some),
            nll=cross_entropy(some, weights) if some else None,
            kept=list(compress(names, ~is_taught)),
        )
    return learned


def choice_of_register(recorded: RecordedQuestion, names: Sequence[str], *, times: float) -> RankingChoice:
    """Return the choice with the signals twice: those that all registers share, then all for its own register.

    The weights are those that are shared, then those of each register.
    """
    signals, shared = recorded.signals[:, columns_of(names)], np.flatnonzero(is_shared(names))
    own = len(names) * (1 + REGISTERS.index(recorded.register)) + np.arange(len(names))
    return RankingChoice(
        signals=np.hstack([signals[:, shared], signals]),
        wanted=wanted_candidates(recorded),
        offset=recorded.offset,
        times=times,
        columns=np.concatenate([shared, own]),
    )


def is_shared(names: Sequence[str]) -> NDArray[np.bool_]:
    return np.array([name not in OF_REGISTERS for name in names], dtype=np.bool_)


def learn_some(
    choices: Sequence[RankingChoice], names: Sequence[str], kept: Mapping[str, float], *, l2: float
) -> LearningSet:
    telling = telling_columns(choices, len(names))
    weights = vector_of(kept, names)
    if telling.any():
        weights[telling] = learn([each.limited_to(telling) for each in choices], l2=l2 * len(choices))
    return LearningSet(
        weights=dict(zip(names, weights.tolist(), strict=True)),
        questions=len(choices),
        nll=cross_entropy(choices, weights) if choices else None,
        kept=[name for name, is_telling in zip(names, telling, strict=True) if not is_telling],
    )


def telling_columns(choices: Sequence[RankingChoice], count: int) -> NDArray[np.bool_]:
    """Return the signals that distinguish candidates of enough questions: from a handful nothing can be learned.

    Enough is a share of the questions that have the signal: a register's own signals exist in its questions alone.
    """
    times, asked = np.zeros(count), np.zeros(count)
    for choice in choices:
        times[choice.places] += (choice.signals != choice.signals[0]).any(axis=0)
        asked[choice.places] += 1
    telling: NDArray[np.bool_] = (times > 0) & (times >= LEAST_TAUGHT * asked)
    return telling


def choice_among(
    recorded: RecordedQuestion, names: Sequence[str], is_learned: NDArray[np.bool_], known: Weights
) -> RankingChoice:
    """Return the choice with the signals of some candidates, while known weights keep the others in their order."""
    signals = recorded.signals[:, columns_of(names)]
    return RankingChoice(
        signals=np.where(is_learned[:, None], signals, 0.0),
        wanted=wanted_candidates(recorded),
        offset=recorded.offset + np.where(is_learned, 0.0, weighted_sums(known, recorded)),
    )


def wanted_candidates(recorded: RecordedQuestion) -> Numbers:
    wanted = recorded.is_answer.astype(np.float64)
    shares: Numbers = wanted / wanted.sum()
    return shares


def columns_of(names: Sequence[str]) -> list[int]:
    return [ALL.index(name) for name in names]


def vector_of(weights: Mapping[str, float], names: Sequence[str]) -> Numbers:
    return np.array([weights.get(name, 0.0) for name in names])


def with_weights(plan: Plan, weights: Weights) -> Plan:
    """Return the plan with the ranker as its fusion, and with these weights."""
    return replace(plan, fusion=LEARNED, fuse=partial(rank_by_weights, weights))


def found_by(weights: Weights, recorded: RecordedQuestion) -> float:
    """Return the share of the answers among the first ten, as weights and scorers rank them, before selectors."""
    sums = weighted_sums(weights, recorded) + recorded.offset
    best = np.argsort(-sums, kind="stable")[:PLACES]
    return min(1.0, float(recorded.is_answer[best].sum()) / recorded.answers)


def weighted_sums(weights: Weights, recorded: RecordedQuestion) -> Numbers:
    """Return the weighted sum of signals of each candidate, without what scorers add."""
    of_candidates = weights.of_candidates(
        ALL, register=recorded.register, is_turn=recorded.is_turn, is_extracted=recorded.is_extracted
    )
    sums: Numbers = (recorded.signals * of_candidates).sum(axis=1)
    return sums


def found_when_held_out(
    recorded: Sequence[RecordedQuestion], *, l2: float = L2, names: Collection[str] = ALL
) -> list[tuple[RecordedQuestion, float]]:
    """Judge each question by weights that were learned without its part.

    What nothing else teaches counts for nothing: shipped weights may know the part.
    """
    judged = []
    for part in cross_validation_parts(recorded):
        weights = learn_weights(without(part, recorded), l2=l2, names=names, kept=NOTHING).weights
        judged += [(each, found_by(weights, each)) for each in part]
    return judged


def without(part: Sequence[RecordedQuestion], recorded: Sequence[RecordedQuestion]) -> list[RecordedQuestion]:
    held = set(map(id, part))
    return [each for each in recorded if id(each) not in held]


def untaught_when_held_out(recorded: Sequence[RecordedQuestion]) -> int:
    """Count the questions of `found_when_held_out` that were judged by fewer weights than there are to learn."""
    return sum(count_untaught(part, without(part, recorded)) for part in cross_validation_parts(recorded))


def count_untaught(recorded: Sequence[RecordedQuestion], others: Sequence[RecordedQuestion]) -> int:
    """Count the questions with candidates, turns or others, whose weights no other question teaches."""
    taught = {each.is_of_turns for each in others if each.can_teach}
    return sum(not taught.issuperset(each.is_turn.tolist()) for each in recorded)


def cross_validation_parts(recorded: Sequence[RecordedQuestion]) -> Iterator[list[RecordedQuestion]]:
    """Split the questions by file; by sample, or else into five parts, if only one of them teaches these weights."""
    for group in ([each for each in recorded if each.is_of_turns], [each for each in recorded if not each.is_of_turns]):
        files = list(dict.fromkeys(each.file for each in group))
        samples = list(dict.fromkeys(each.sample for each in group))
        if len(files) > 1:
            yield from split_evenly(group, files, lambda _place, each: each.file)
        elif len(samples) > 1:
            yield from split_evenly(group, samples, lambda _place, each: each.sample)
        else:
            yield from split_evenly(group, range(PARTS), lambda place, _each: place % PARTS)


def split_evenly(
    group: Sequence[RecordedQuestion], keys: Collection[Hashable], key_of: Callable[[int, RecordedQuestion], Hashable]
) -> Iterator[list[RecordedQuestion]]:
    """Split the questions into parts, none of which is empty."""
    for key in keys:
        if part := [each for place, each in enumerate(group) if key_of(place, each) == key]:
            yield part
