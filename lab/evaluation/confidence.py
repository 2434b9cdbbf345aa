"""Learning and judging confidence: how likely each result helps, and whether any does.

Samples are asked their own questions and questions of the other samples of their file, which nothing answers
(`foreign`). Logistic regression over `memory.retrieval.confidence.FEATURES`, ridge regularization, Newton's method.
Every file counts the same, and in it every question.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from uuid import UUID

import numpy as np

from lab.evaluation.datasets import EvaluationSample, SampleQuestion
from lab.evaluation.learning import Numbers
from lab.evaluation.loading import Loaded
from lab.evaluation.logistic import fit_logistic
from memory.retrieval.candidates import Candidate
from memory.retrieval.confidence import (
    FEATURES,
    FLOOR,
    MAX_JUDGED,
    Calibration,
    Calibrations,
    confidence_features,
    weigh_words_by,
)
from memory.retrieval.plans import Plan, ScoringContext
from memory.retrieval.queries import Query
from memory.retrieval.tasks import names_what_is_known
from memory.services.recall.recall import RecallRequest, recall

FEATURES_OF_WORDS = [name for name in FEATURES if name != "similarity"]
OWN_SHARE = 0.7
"""Weight of a file's own questions; the foreign ones have the rest."""
L2 = 1e-3
MAX_FOREIGN = 180
"""Foreign questions of a file, unless its samples are too many for `MIN_FOREIGN` each."""
MIN_FOREIGN = 12
PLACES = 10
BINS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResults:
    """The first results of one question, best first: a row of FEATURES each, and whether it is an answer.

    `answers` is the number of answers, found or not; 0 for foreign questions. `is_apart` is True if the sample was
    asked in an account of its own, which does not know most words of foreign questions.
    """

    file: str
    is_apart: bool = False
    answers: int
    features: Numbers
    is_answer: Numbers
    has_floor: bool = True
    """False for a task that names what is known: no confidence is too low for it."""

    @property
    def is_foreign(self) -> bool:
        return not self.answers


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """Results whose confidence is within a bin: their mean confidence, and the share that are answers."""

    least: float
    results: int
    confidence: float
    answers: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceFigures:
    """The quality of confidence on one file, as shares.

    `auroc` is the probability that the best result of an own question has more confidence than that of a foreign one,
    `silent` the share of foreign questions without any result from FLOOR on, `lost` what the floor costs of recall@10.
    The first two are None if there are no foreign questions. `is_held_out` is False if the weights know the file.
    `is_apart` is as in `RecordedResults`.
    """

    file: str
    is_apart: bool
    is_held_out: bool
    questions: int
    foreign: int
    auroc: float | None
    silent: float | None
    recall: float
    lost: float
    bins: Sequence[CalibrationBin]


@dataclass(slots=True)
class ResultRecorder:
    """A last selector, which changes nothing and keeps what confidence is computed from."""

    candidates: Sequence[Candidate] = ()
    features: Numbers = field(default_factory=lambda: np.zeros((0, len(FEATURES))))
    has_floor: bool = True

    def select(self, candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
        self.candidates = candidates[:MAX_JUDGED]
        # of all of them: any may name whom the question is about
        self.features = confidence_features(candidates, weigh_words_by(candidates, context))[:MAX_JUDGED]
        self.has_floor = not names_what_is_known(self.candidates, context.query)
        return list(candidates)


def record_results(
    loaded: Loaded, samples: Sequence[EvaluationSample], plan: Plan, *, file: str, is_apart: bool
) -> Iterator[RecordedResults]:
    """Ask a sample its own questions, and foreign ones of the other samples, in order."""
    sample = loaded.sample
    own = [(question, sample.ids_of(question.answers)) for question in sample.counted]
    foreign = [(replace(question, asked_at=None), frozenset[UUID]()) for question in foreign_questions(sample, samples)]
    for question, answers in (*own, *foreign):
        recorder = ask(loaded, question, plan)
        is_answer = np.array([float(candidate.id in answers) for candidate in recorder.candidates])
        yield RecordedResults(
            file=file,
            is_apart=is_apart,
            answers=len(answers),
            features=recorder.features,
            is_answer=is_answer,
            has_floor=recorder.has_floor,
        )


def foreign_questions(asked: EvaluationSample, samples: Sequence[EvaluationSample]) -> list[SampleQuestion]:
    """Return questions of other samples that this one is not asked itself: a bounded number, spread evenly."""
    own = {question.text for question in asked.questions}
    others = [
        question for other in samples if other is not asked for question in other.counted if question.text not in own
    ]
    count = min(len(others), max(MIN_FOREIGN, MAX_FOREIGN // len(samples)))
    return [others[len(others) * place // count] for place in range(count)]


def count_questions(asked: Sequence[EvaluationSample], samples: Sequence[EvaluationSample]) -> int:
    return sum(len(each.counted) + len(foreign_questions(each, samples)) for each in asked)


def ask(loaded: Loaded, question: SampleQuestion, plan: Plan) -> ResultRecorder:
    """Return the first candidates, a row of FEATURES for each, and whether the floor counts."""
    recorder = ResultRecorder()
    plan = replace(plan, selectors={**plan.selectors, "recorder": recorder.select}, reranks=False)
    request = RecallRequest(query=Query(text=question.text, top_k=MAX_JUDGED), plan=plan)
    recall(loaded.owner, request, now=question.asked_at or loaded.asked_at)
    return recorder


def learn_calibrations(recorded: Sequence[RecordedResults], *, model: str) -> Calibrations:
    """Learn the weights with similarities of this model and without. At least one result has to be an answer."""
    return Calibrations(
        model=model, with_meaning=learn_of(recorded, FEATURES), with_words=learn_of(recorded, FEATURES_OF_WORDS)
    )


def learn_of(recorded: Sequence[RecordedResults], names: Collection[str]) -> Calibration:
    """Learn the weights of these features; the others get 0."""
    shown = [each for each in recorded if len(each.features)]
    features = np.concatenate([each.features for each in shown]) * [name in names for name in FEATURES]
    wanted = np.concatenate([each.is_answer for each in shown])
    return learn_calibration(features, wanted, np.concatenate(shares_of_results(shown)))


def shares_of_results(recorded: Sequence[RecordedResults]) -> list[Numbers]:
    """Return the weight of each result, so that files count alike, and in them all own and all foreign questions."""
    keys = [(each.file, each.is_foreign) for each in recorded]
    counts = {key: keys.count(key) for key in set(keys)}
    of_question = [(1 - OWN_SHARE if key[1] else OWN_SHARE) / counts[key] for key in keys]
    return [
        np.full(len(each.features), share / len(each.features))
        for each, share in zip(recorded, of_question, strict=True)
    ]


def learn_calibration(features: Numbers, wanted: Numbers, shares: Numbers) -> Calibration:
    """Return the weights under which the results that are answers are the likeliest. A constant feature gets 0."""
    shares = shares / shares.sum()
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-9
    table = np.c_[(features - mean) / deviation, np.ones(len(features))]
    weights = fit_logistic(table, wanted, shares, ridge=2 * L2 * np.array([*[1.0] * len(FEATURES), 0.0]))
    own = weights[:-1] / deviation
    return Calibration(intercept=float(weights[-1] - own @ mean), **dict(zip(FEATURES, map(float, own), strict=True)))


def judge_files(recorded: Sequence[RecordedResults]) -> list[ConfidenceFigures]:
    """Judge each file by weights that were learned on the others; a single one by weights that know it.

    What was asked in accounts apart is judged apart.
    """
    figures = []
    for file in dict.fromkeys(each.file for each in recorded):
        own = [each for each in recorded if each.file == file]
        others = [each for each in recorded if each.file != file]
        can_teach = any(each.is_answer.any() for each in others)
        learned = learn_of(others if can_teach else own, FEATURES)
        for is_apart in (False, True):
            if some := [each for each in own if each.is_apart == is_apart]:
                figures.append(judge_file(some, learned, is_held_out=can_teach))
    return figures


def judge_file(recorded: Sequence[RecordedResults], by: Calibration, *, is_held_out: bool) -> ConfidenceFigures:
    own, foreign = ([each for each in recorded if each.is_foreign == wanted] for wanted in (False, True))
    best_of_own, best_of_foreign = (np.array([best_chance(each, by) for each in some]) for some in (own, foreign))
    own_is_silent, foreign_is_silent = (
        np.array([each.has_floor and best_chance(each, by) < FLOOR for each in some], dtype=float)
        for some in (own, foreign)
    )
    found = np.array([each.is_answer[:PLACES].sum() / each.answers for each in own])
    return ConfidenceFigures(
        file=recorded[0].file,
        is_apart=recorded[0].is_apart,
        is_held_out=is_held_out,
        questions=len(own),
        foreign=len(foreign),
        auroc=rank_probability(best_of_own, best_of_foreign) if foreign else None,
        silent=float(foreign_is_silent.mean()) if foreign else None,
        recall=float(found.mean()),
        lost=float((found * own_is_silent).mean()),
        bins=bins_of_results(own, by),
    )


def best_chance(recorded: RecordedResults, by: Calibration) -> float:
    return float(by.chances(recorded.features).max(initial=0.0))


def rank_probability(greater: Numbers, less: Numbers) -> float:
    """Return the probability that one of the first is greater than one of the second, ties being a half (AUROC)."""
    differences = greater[:, None] - less[None, :]
    return float((differences > 0).mean() + (differences == 0).mean() / 2)


def bins_of_results(recorded: Sequence[RecordedResults], by: Calibration) -> list[CalibrationBin]:
    """Return the bins that hold any of the first ten results of these questions."""
    chances = np.concatenate([by.chances(each.features[:PLACES]) for each in recorded])
    is_answer = np.concatenate([each.is_answer[:PLACES] for each in recorded])
    within = np.digitize(chances, BINS[1:-1])
    return [
        CalibrationBin(
            least=least,
            results=int(chosen.sum()),
            confidence=float(chances[chosen].mean()),
            answers=float(is_answer[chosen].mean()),
        )
        for place, (least, _) in enumerate(pairwise(BINS))
        if (chosen := within == place).any()
    ]
