"""`manage.py evaluate_recall`: how well recall finds what answers the questions of a file."""

import json
import random
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from rich.console import RenderableType

from lab.evaluation.charts import render_chart
from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.figures import json_of, report_on
from lab.evaluation.files import open_file
from lab.evaluation.runs import Evaluation, RequestedFigures, evaluate
from lab.evaluation.tables import (
    FITTED,
    LEFT_OUT,
    WIDTH,
    format_untaught,
    render_ablation,
    render_budgets,
    render_report,
)
from lab.management.learning import add_format_argument
from memory.errors import Unprocessable
from memory.management.base import OperatorCommand, render_text
from memory.retrieval.techniques import choose_plan

SEED = 17

EPILOG = """
Every sample of the file is loaded as an agent of a scratch account, through the services that serve HTTP, and asked
through the pipeline behind /recall and /context. The account is deleted afterwards, also on Ctrl-C. The servers of
`make up` have to run; what its worker would add in the background is kept away. Vectors of the texts stay in the cache
until they expire, so that the same file is loaded faster the next time.

formats:
  locomo   LoCoMo's list of samples: every turn a memory. Adversarial questions are reported apart
  native   memories of all kinds: {"samples": [{"name", "user"?, "asked_at"?,
           "conversations"?: [{"id", "time"?, "turns": [{"key", "text", "speaker"?, "role"?, "time"?}]}],
           "memories"?: [{"key", "kind", "text", "time"?, …}],
           "questions": [{"text", "answers": [keys], "type", "asked_at"?, "replaced"?: [keys]}]}]}
           `replaced` are stale answers: reported is whether the answers come first, and how often stale ones come along

  manage.py evaluate_recall questions.json
  manage.py evaluate_recall locomo10.json --techniques lexical,-diversity --questions 100
  manage.py evaluate_recall locomo10.json --leave-one-out --ablate --plot ablation.svg
"""


def positive(text: str) -> int:
    """Parse a positive integer for argparse."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


class Command(OperatorCommand):
    help = "Load a set of questions into a scratch account, ask them, and say how many of their answers were found."
    epilog = EPILOG
    advice = "What was loaded is deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        add_format_argument(parser)
        parser.add_argument("--techniques", default="", help="as in a request, with commas between: lexical,-diversity")
        parser.add_argument(
            "--together",
            action="store_true",
            help="store all samples as one agent's, so that each distracts from others",
        )
        parser.add_argument(
            "--extract",
            action="store_true",
            help="extract knowledge from the conversations first; a fact that is found stands for the turns behind it",
        )
        parser.add_argument("--questions", type=positive, help="ask no more than so many, drawn from all of them")
        parser.add_argument(
            "--leave-one-out",
            action="store_true",
            help="ask each sample by weights learned on the others, too; and all by weights learned on all",
        )
        parser.add_argument(
            "--ablate", action="store_true", help="say what each signal brings, and each technique (asks many times)"
        )
        parser.add_argument("--plot", type=Path, metavar="SVG", help="where to draw what --ablate says of signals")
        parser.add_argument(
            "--budgets", action="store_true", help="compare fusions, words and meaning within equal numbers of tokens"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, with the ranks of all answers")

    def handle(self, *args: Any, **options: Any) -> None:
        samples = open_file(options["file"], options["format"])
        samples = thin_out([join_samples(samples)] if options["together"] else samples, options["questions"])
        wanted = requested_figures(options, samples)
        evaluation = evaluate(samples, wanted)
        if options["json"]:
            self.stdout.write(json.dumps(serialize_results(evaluation, samples)))
        else:
            self.stdout.write(render_text(render_all(evaluation), width=WIDTH))
        if options["plot"] is not None and evaluation.ablation is not None:
            options["plot"].write_text(render_chart(evaluation.ablation), encoding="utf-8")


def requested_figures(options: dict[str, Any], samples: Sequence[EvaluationSample]) -> RequestedFigures:
    """Return what to compute. Raises CommandError for options that need others, and for missing files."""
    if options["plot"] is not None and not options["ablate"]:
        raise CommandError("--plot draws what --ablate says: ask for both")
    asked = sum(bool(sample.counted) for sample in samples)
    if not asked:
        raise CommandError("there is no question but adversarial ones, which nothing answers: no average is of them")
    if options["leave_one_out"] and asked < 2:
        raise CommandError("--leave-one-out learns on the other samples: two of them have to have questions")
    return RequestedFigures(
        techniques=read_techniques(options["techniques"]),
        leaves_one_out=options["leave_one_out"],
        ablates=options["ablate"],
        spends=options["budgets"],
        extracts=options["extract"],
    )


def render_all(evaluation: Evaluation) -> Iterator[RenderableType]:
    yield from render_report(report_on(evaluation.answers))
    if evaluation.left_out:
        yield from render_report(report_on(evaluation.left_out), LEFT_OUT)
        yield from format_untaught(evaluation.untaught)
        yield from render_report(report_on(evaluation.fitted), FITTED)
    if evaluation.ablation is not None:
        yield from render_ablation(evaluation.ablation)
    if evaluation.budgets:
        yield render_budgets(evaluation.budgets)


def serialize_results(evaluation: Evaluation, samples: Sequence[EvaluationSample]) -> dict[str, Any]:
    """Return the report, and under names of their own the further figures."""
    keys = {memory: key for sample in samples for key, memory in sample.ids.items()}
    document = json_of(report_on(evaluation.answers), evaluation.answers, keys)
    if evaluation.left_out:
        left_out = json_of(report_on(evaluation.left_out), evaluation.left_out, keys)
        document["left_out"] = left_out | {"untaught": evaluation.untaught}
        document["fitted"] = json_of(report_on(evaluation.fitted), evaluation.fitted, keys)
    if evaluation.ablation is not None:
        document["ablation"] = asdict(evaluation.ablation)
    if evaluation.budgets:
        document["budgets"] = [asdict(each) for each in evaluation.budgets]
    return document


def read_techniques(value: str) -> list[str]:
    """Read the names of techniques. Raises CommandError for unknown ones."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    try:
        choose_plan(names)
    except Unprocessable as err:
        raise CommandError(str(err)) from err
    return names


def join_samples(samples: Sequence[EvaluationSample]) -> EvaluationSample:
    """Return one sample with all memories and questions, of one agent. Raises CommandError for equal keys."""
    ids = {key: memory for sample in samples for key, memory in sample.ids.items()}
    if len(ids) < sum(len(sample.ids) for sample in samples):
        raise CommandError("--together needs keys that are unique in the whole file")
    return EvaluationSample(
        name="together",
        talks=[talk for sample in samples for talk in sample.talks],
        notes=[note for sample in samples for note in sample.notes],
        questions=[question for sample in samples for question in sample.questions],
        ids=ids,
        asked_at=max((sample.asked_at for sample in samples if sample.asked_at), default=None),
    )


def thin_out(samples: list[EvaluationSample], most: int | None) -> list[EvaluationSample]:
    """Return the samples with at most `most` questions, the same ones every time."""
    places = [(sample.name, place) for sample in samples for place in range(len(sample.questions))]
    if most is None or most >= len(places):
        return samples
    drawn = set(random.Random(SEED).sample(places, most))  # noqa: S311 - nothing secret
    return [
        replace(
            sample,
            questions=[each for place, each in enumerate(sample.questions) if (sample.name, place) in drawn],
        )
        for sample in samples
    ]
