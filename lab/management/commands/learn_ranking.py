"""`manage.py learn_ranking`: weights of the ranker's signals, learned from questions whose answers are known."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import RenderableType

from lab.evaluation.ablation import AblationRow, ablation_row
from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.files import open_file
from lab.evaluation.loading import load_in_scratch
from lab.evaluation.ranker import (
    L2,
    PLACES,
    LearnedWeights,
    LearningSet,
    found_by,
    found_when_held_out,
    learn_weights,
    untaught_when_held_out,
)
from lab.evaluation.recording import RecordedQuestion
from lab.evaluation.runs import record_each
from lab.evaluation.tables import format_untaught, render_columns, render_weights
from lab.management.learning import PURPOSE, LearnCommand, LearningReport, add_format_argument
from memory.retrieval.ranking import WEIGHTS_FILE, Weights, learned_weights

DIGITS = 3
"""Digits of a weight; more are noise."""

EPILOG = """
Every file is loaded into a scratch account and asked once, through the pipeline behind /recall, as evaluate_recall does
it; nothing of it stays. `turns` are learned from questions for which turns are all that there is to choose from,
`others` from all the rest, with the weights of turns as they are then. Where no question teaches anything about a
weight, it stays what it was; what is held out is judged without it. Of several files each is held out as a whole, of
one file each sample.

With --extract every file is loaded a second time, and knowledge extracted from its conversations. The weights of
`extracted` are learned from these questions, whose answers are the turns or what was learned from them.

Weights are read once a process: web servers and workers that run have to be restarted before they go by new ones.

  manage.py learn_ranking conversations.json
  manage.py learn_ranking conversations.json docs/sample/recall.json --write
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """The learned weights, from how many samples, and recall@10 as shipped, fitted, and held out.

    `untaught` counts held-out questions as `count_untaught` does.
    """

    learned: LearnedWeights
    samples: int
    untaught: int
    rows: Sequence[AblationRow]


class Command(LearnCommand):
    help = "Learn the weights of the ranker's signals from files of questions, and say how good they are."
    epilog = EPILOG
    weights_file = WEIGHTS_FILE

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add_format_argument(parser)
        parser.add_argument("--l2", type=cost, default=L2, help=f"cost of large weights per question (default: {L2})")
        parser.add_argument(
            "--extract", action="store_true", help="learn how extracted facts and entities compare with turns as well"
        )
        parser.add_argument("--date", type=date.fromisoformat, help="when they were learned (default: today)")

    def learn(self, options: dict[str, Any]) -> LearningReport:
        files = {str(path): open_file(path, options["format"]) for path in options["files"]}
        recorded = [each for name, samples in files.items() for each in record_file(samples, file=name)]
        if options["extract"]:
            for name, samples in files.items():
                again = record_file(samples, file=name, extracts=True)
                recorded += [each for each in again if each.has_extracted]
        lessons = learn_from(recorded, l2=options["l2"])
        document = document_of(lessons, l2=options["l2"], day=options["date"] or timezone.now().date())
        return LearningReport(document=document, figures=lessons.rows, shown=render_lessons(lessons))


def cost(text: str) -> float:
    """Parse a positive number for argparse: without a cost, weights of unobserved signals would be arbitrary."""
    if not 0 < (number := float(text)) < float("inf"):
        raise ValueError(text)
    return number


def record_file(samples: list[EvaluationSample], *, file: str, extracts: bool = False) -> list[RecordedQuestion]:
    """Record a file in an account of its own: words then count as they do where nothing else is stored.

    Statements that were replaced are about the question as well: their order is not the ranker's.
    """
    samples = [with_replaced(sample) for sample in samples]
    with load_in_scratch(PURPOSE, samples, extracts=extracts) as loaded:
        return [replace(each, file=file) for each in record_each(loaded, ())]


def with_replaced(sample: EvaluationSample) -> EvaluationSample:
    questions = [replace(each, answers=[*each.answers, *each.replaced]) for each in sample.questions]
    return replace(sample, questions=questions)


def learn_from(recorded: Sequence[RecordedQuestion], *, l2: float) -> Lessons:
    """Learn the weights. Raises CommandError if no answer is among the candidates."""
    if not any(each.can_teach for each in recorded):
        raise CommandError("No answer was among the candidates of any question: there is nothing to learn from.")
    learned = learn_weights(recorded, l2=l2)
    judged = {
        "as shipped": judge(recorded, learned_weights()),
        "fitted": judge(recorded, learned.weights),
        "held out": found_when_held_out(recorded, l2=l2),
    }
    rows = [ablation_row(name, [(each.question.type, found) for each, found in some]) for name, some in judged.items()]
    samples = len({each.sample for each in recorded})
    return Lessons(learned=learned, samples=samples, untaught=untaught_when_held_out(recorded), rows=rows)


def judge(recorded: Sequence[RecordedQuestion], weights: Weights) -> list[tuple[RecordedQuestion, float]]:
    return [(each, found_by(weights, each)) for each in recorded]


def document_of(lessons: Lessons, *, l2: float, day: date) -> dict[str, Any]:
    """Return the content of `weights.json`; weights that round to zero are left out, and no sample is named."""
    learned = lessons.learned
    return {
        "turns": {name: rounded_weight(each) for name, each in learned.turns.items()},
        "others": rounded_weight(learned.others),
        "extracted": rounded_weight(learned.extracted),
        "learnt": {
            "date": day.isoformat(),
            "samples": lessons.samples,
            "l2": l2,
            "questions": {name: each.questions for name, each in learned.sets.items()},
            "kept": {name: list(each.kept) for name, each in learned.sets.items()},
            "untaught": lessons.untaught,
            "nll": {name: None if each.nll is None else round(each.nll, DIGITS) for name, each in learned.sets.items()},
            f"recall@{PLACES}": {row.name: round(row.all, DIGITS) for row in lessons.rows},
        },
    }


def rounded_weight(lesson: LearningSet) -> dict[str, float]:
    weights = {name: round(weight, DIGITS) for name, weight in lesson.weights.items()}
    return {name: weight for name, weight in weights.items() if weight}


def render_lessons(lessons: Lessons) -> list[RenderableType]:
    title = f"recall@{PLACES}, as far as weights and scorers decide"
    tables = [render_weights(lessons.learned), render_columns(title, lessons.rows)]
    return [*tables, *format_untaught(lessons.untaught)]
