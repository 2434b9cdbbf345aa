"""Recordings of what the ranker chooses from: the signals of all candidates of each question, taken during a recall.

From them weights can be learned and judged without asking again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lab.evaluation.asking import AskingMode, ask
from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.learning import Numbers
from lab.evaluation.loading import Loaded
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Plan, ScoringContext
from memory.retrieval.ranking import DEVIATIONS_PER_E_FOLD, compute_signals, fuse_learned
from memory.retrieval.ranking.registers import NOTES
from memory.retrieval.ranking.signals import SIGNALS
from memory.retrieval.ranking.table import make_table

LEARNED = "learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedQuestion:
    """One question and its candidates, one row each: newest first, which is what a recall makes of draws.

    `signals` has the columns of SIGNALS; `offset` is what scorers' factors add to the weighted sum of them.
    """

    sample: str
    question: SampleQuestion
    answers: int
    """Number of answers, found or not."""
    signals: Numbers
    offset: Numbers
    is_turn: NDArray[np.bool_]
    is_extracted: NDArray[np.bool_]
    is_answer: NDArray[np.bool_]
    register: str = NOTES
    """The register of the turns among the candidates."""
    file: str = ""
    """The file of the sample, where several are recorded."""

    @property
    def is_of_turns(self) -> bool:
        """Return whether all candidates were turns."""
        return bool(self.is_turn.all())

    @property
    def is_other(self) -> NDArray[np.bool_]:
        """Return the candidates that are neither turns nor extracted from them."""
        others: NDArray[np.bool_] = ~(self.is_turn | self.is_extracted)
        return others

    @property
    def has_extracted(self) -> bool:
        return bool(self.is_extracted.any())

    @property
    def can_teach(self) -> bool:
        return bool(self.is_answer.any())


@dataclass(slots=True)
class Recorder:
    """The shipped fusion, which keeps what it was given."""

    candidates: Sequence[Candidate] = ()
    signals: Numbers = field(default_factory=lambda: np.zeros((0, len(SIGNALS))))
    is_turn: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    is_extracted: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    register: str = NOTES

    def fuse(self, candidates: Sequence[Candidate], setting: ScoringContext) -> None:
        self.candidates = candidates
        if candidates:
            table = make_table(candidates, setting)
            self.signals = compute_signals(table, list(SIGNALS))
            self.is_turn, self.is_extracted = table.is_turn, table.is_extracted
            self.register = table.speakers.register
        fuse_learned(candidates, setting)


def record_all(loaded: Sequence[Loaded], plan: Plan) -> Iterator[RecordedQuestion]:
    """Ask every counted question once, in order, through the plan with the learned ranker as its fusion."""
    for each in loaded:
        for question in counted(each):
            yield record(each, question, plan)


def counted(loaded: Loaded) -> list[SampleQuestion]:
    return loaded.sample.counted


def record(loaded: Loaded, question: SampleQuestion, plan: Plan) -> RecordedQuestion:
    recorder = Recorder()
    # a reranker would have the last word, and teach nothing about the signals
    plan = replace(plan, fusion=LEARNED, fuse=recorder.fuse, reranks=False)
    ask(loaded, question, AskingMode(plan=plan, context_tokens=0))
    answers = loaded.sample.ids_of(question.answers)
    rows = newest_first(recorder.candidates)
    return RecordedQuestion(
        sample=loaded.sample.name,
        question=question,
        answers=len(answers),
        signals=recorder.signals[rows],
        offset=factors_of(recorder.candidates, plan)[rows],
        is_turn=recorder.is_turn[rows],
        is_extracted=recorder.is_extracted[rows],
        is_answer=np.array(
            [not answers.isdisjoint(loaded.turns_behind([candidate.id])) for candidate in recorder.candidates],
            dtype=np.bool_,
        )[rows],
        register=recorder.register,
    )


def newest_first(candidates: Sequence[Candidate]) -> NDArray[np.intp]:
    def moment(row: int) -> tuple[object, UUID]:
        return candidates[row].event_time, candidates[row].id

    return np.array(sorted(range(len(candidates)), key=moment, reverse=True), dtype=np.intp)


def factors_of(candidates: Sequence[Candidate], plan: Plan) -> Numbers:
    """Return the logarithm of the product of each candidate's scorers, on the scale of the weighted sums.

    The scale is `DEVIATIONS_PER_E_FOLD`.
    """
    factors = [[candidate.signals.get(name, 1.0) for name in plan.scorers] for candidate in candidates]
    log_factors: Numbers = DEVIATIONS_PER_E_FOLD * np.log(
        np.array(factors).reshape(len(candidates), len(plan.scorers))
    ).sum(axis=1)
    return log_factors
