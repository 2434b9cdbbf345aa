"""Answers added up: how good they were on average, of all questions, of each type, of each sample."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lab.evaluation.asking import CONTEXT_TOKENS, WORDS, QuestionResult
from lab.evaluation.datasets import ADVERSARIAL
from lab.evaluation.metrics import bootstrap_interval, hit_at, is_before, ndcg_at, recall_at, reciprocal_rank

Measures = Mapping[str, Callable[[QuestionResult], float]]

MEASURES: Measures = {
    "recall@5": lambda answer: recall_at(answer.ranked, answer.answers, 5),
    "recall@10": lambda answer: recall_at(answer.ranked, answer.answers, 10),
    "recall@20": lambda answer: recall_at(answer.ranked, answer.answers, 20),
    "hit@10": lambda answer: hit_at(answer.ranked, answer.answers, 10),
    "MRR": lambda answer: reciprocal_rank(answer.ranked, answer.answers),
    "nDCG@10": lambda answer: ndcg_at(answer.ranked, answer.answers, 10),
    f"{WORDS} words": lambda answer: recall_at(answer.within_words, answer.answers, len(answer.within_words)),
    f"{CONTEXT_TOKENS:,} tokens": lambda answer: recall_at(
        answer.within_context, answer.answers, len(answer.within_context)
    ),
}
"""Each the share of a question, by the name under which it is shown."""

STALE_PLACES = 3

UPDATE_MEASURES: Measures = {
    "new first": lambda answer: hit_at(answer.ranked, answer.answers, 1),
    "new before old": lambda answer: is_before(answer.ranked, answer.answers, answer.replaced),
    f"old in first {STALE_PLACES}": lambda answer: hit_at(answer.ranked, answer.replaced, STALE_PLACES),
    f"old in {CONTEXT_TOKENS:,} tokens": lambda answer: hit_at(
        answer.within_context, answer.replaced, len(answer.within_context)
    ),
}
"""Measures of questions with stale answers: the first two should be high, the others low."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Over questions, with its bootstrap interval (95 %)."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Questions that have something in common, and how they were answered, by measure."""

    name: str
    questions: int
    figures: Mapping[str, Mean]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Milliseconds of a recall: in all, and without embedding the question."""

    p50_ms: float
    p95_ms: float
    search_p50_ms: float
    search_p95_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """The figures of an evaluation. `apart` are adversarial questions, which no other figure includes."""

    all: Group | None
    types: Sequence[Group]
    samples: Sequence[Group]
    apart: Group | None
    updates: Sequence[Group]
    """Questions with stale answers: all of them, then by type. Empty if there is none."""
    pace: Pace
    degraded: Mapping[str, int]
    """Recalls, by what kept them from being better."""


def report_on(answers: Sequence[QuestionResult]) -> EvaluationReport:
    """Return the figures of the answers, of which there is at least one."""
    counted = [answer for answer in answers if answer.question.type != ADVERSARIAL]
    apart = [answer for answer in answers if answer.question.type == ADVERSARIAL]
    updates = [answer for answer in counted if answer.replaced]
    return EvaluationReport(
        all=group_of("all", counted) if counted else None,
        types=groups_of(counted, type_of),
        samples=groups_of(counted, lambda answer: answer.sample),
        apart=group_of(ADVERSARIAL, apart) if apart else None,
        updates=[group_of("all", updates, UPDATE_MEASURES), *groups_of(updates, type_of, UPDATE_MEASURES)]
        if updates
        else [],
        pace=pace_of(answers),
        degraded=Counter(code for answer in answers for code in answer.degraded),
    )


def type_of(answer: QuestionResult) -> str:
    return answer.question.type


def groups_of(
    answers: Sequence[QuestionResult], name_of: Callable[[QuestionResult], str], measures: Measures = MEASURES
) -> list[Group]:
    """Return the groups in the order of their names."""
    names = sorted({name_of(answer) for answer in answers})
    return [group_of(name, [answer for answer in answers if name_of(answer) == name], measures) for name in names]


def group_of(name: str, answers: Sequence[QuestionResult], measures: Measures = MEASURES) -> Group:
    figures = {measure: mean_of([score(answer) for answer in answers]) for measure, score in measures.items()}
    return Group(name=name, questions=len(answers), figures=figures)


def mean_of(values: Sequence[float]) -> Mean:
    low, high = bootstrap_interval(values)
    return Mean(mean=sum(values) / len(values), low=low, high=high)


def pace_of(answers: Sequence[QuestionResult]) -> Pace:
    took = [(answer.took_ms, answer.took_ms - answer.embedding_ms) for answer in answers]
    (p50, search_p50), (p95, search_p95) = np.percentile(took, (50, 95), axis=0)
    return Pace(p50_ms=float(p50), p95_ms=float(p95), search_p50_ms=float(search_p50), search_p95_ms=float(search_p95))


def json_of(report: EvaluationReport, answers: Sequence[QuestionResult], keys: Mapping[Any, str]) -> dict[str, Any]:
    """Serialize the report, and every question with the ranks of its answers: None for those not among the results."""
    return asdict(report) | {"questions": [serialize_answer(answer, keys) for answer in answers]}


def serialize_answer(answer: QuestionResult, keys: Mapping[Any, str]) -> dict[str, Any]:
    ranks = {memory: rank for rank, memory in enumerate(answer.ranked, start=1)}
    return {
        "sample": answer.sample,
        "type": answer.question.type,
        "text": answer.question.text,
        "ranks": {keys[memory]: ranks.get(memory) for memory in sorted(answer.answers, key=lambda each: keys[each])},
        "found": [keys.get(memory, "") for memory in answer.ranked[:10]],
    }
