"""`manage.py evaluate_recall`: how well recall finds what answers the questions of a file."""

import json
import random
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memory.errors import Unprocessable
from memory.management.benchmarks.scratch import scratch_account
from memory.management.evaluation.asking import Answer, Way, ask_all
from memory.management.evaluation.datasets import BadDatasetError, Sample
from memory.management.evaluation.figures import json_of, report_on
from memory.management.evaluation.files import FORMATS, read_file
from memory.management.evaluation.loading import load_samples, steps_of
from memory.management.evaluation.tables import draw
from memory.retrieval.techniques import choose_plan

INTERRUPTED = 130
WIDTH = 120
SEED = 17
PURPOSE = "evaluation"

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
           "questions": [{"text", "answers": [keys], "type", "asked_at"?}]}]}

  manage.py evaluate_recall questions.json
  manage.py evaluate_recall locomo10.json --techniques lexical,-diversity --questions 100
"""


def positive(text: str) -> int:
    """Argparse's type."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


class Command(BaseCommand):
    help = "Load a set of questions into a scratch account, ask them, and say how many of their answers were found."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EPILOG
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--format", choices=sorted(FORMATS), default="", help="default: by what is in the file")
        parser.add_argument("--techniques", default="", help="as in a request, with commas between: lexical,-diversity")
        parser.add_argument("--questions", type=positive, help="ask no more than so many, drawn from all of them")
        parser.add_argument("--json", action="store_true", help="print one JSON object, with the ranks of all answers")

    def handle(self, *args: Any, **options: Any) -> None:
        way = way_of(options["techniques"])
        samples = thin_out(read_samples(options["file"], options["format"]), options["questions"])
        try:
            answers = evaluate(samples, way)
        except KeyboardInterrupt:
            self.stderr.write("Interrupted; what was loaded is deleted.")
            sys.exit(INTERRUPTED)
        self.report(samples, answers, is_json=options["json"])

    def report(self, samples: Sequence[Sample], answers: Sequence[Answer], *, is_json: bool) -> None:
        report = report_on(answers)
        if is_json:
            keys = {memory: key for sample in samples for key, memory in sample.ids.items()}
            self.stdout.write(json.dumps(json_of(report, answers, keys)))
            return
        console = Console(width=WIDTH, highlight=False)
        with console.capture() as capture:
            for part in draw(report):
                console.print(part)
        self.stdout.write(capture.get())


def way_of(techniques: str) -> Way:
    """Raises CommandError for techniques that there are not."""
    names = [name.strip() for name in techniques.split(",") if name.strip()]
    try:
        choose_plan(names)
    except Unprocessable as err:
        raise CommandError(str(err)) from err
    return Way(techniques=names)


def read_samples(path: Path, file_format: str) -> list[Sample]:
    try:
        return read_file(path, file_format)
    except OSError as err:
        raise CommandError(f"{path} cannot be read: {err.strerror}") from err
    except BadDatasetError as err:
        raise CommandError(f"{path}: {err}") from err


def thin_out(samples: list[Sample], most: int | None) -> list[Sample]:
    """With no more than `most` questions, the same ones every time."""
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


def evaluate(samples: list[Sample], way: Way) -> list[Answer]:
    """Load, ask, and delete again, whatever happens."""
    questions = sum(len(sample.questions) for sample in samples)
    with scratch_account(PURPOSE) as scratch:
        with open_bar("loading", steps_of(samples)) as advance:
            loaded = list(load_samples(samples, scratch.account, now=timezone.now(), advance=advance))
        answers = []
        with open_bar("asking", questions) as advance:
            for answer in ask_all(loaded, way):
                answers.append(answer)
                advance(1)
    return answers


@contextmanager
def open_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's standard error; elsewhere nothing is drawn."""
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)
        yield lambda steps: progress.advance(task, steps)
