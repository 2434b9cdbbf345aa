"""`manage.py learn_fact_endings`: weights by which a fact ends when its statement was replaced."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import RenderableType

from lab.benchmarks.scratch import scratch_account
from lab.evaluation.fact_endings import (
    EndingFigures,
    FactEndings,
    judge,
    judge_files,
    learn_fact_endings,
    read_endings,
)
from lab.evaluation.files import open_file
from lab.evaluation.loading import extract_samples, load_samples, steps_of
from lab.evaluation.progress import open_bar
from lab.evaluation.tables import open_table
from lab.management.learning import PURPOSE, LearnCommand, LearningReport
from memory.extraction.fact_endings import FACT_ENDINGS_FILE, FEATURES

DIGITS = 3
KEEP_ALL = "flag_review"
"""What an account does about contradictions so that no fact ends."""
EPILOG = """
Every file is loaded into a scratch account, and facts are extracted; nothing of it stays. The questions of FILE say
which statements were replaced. Each file is judged by weights that were learned on the others, files in --held-out by
weights of all FILEs.

  manage.py learn_fact_endings docs/sample/pairs.json docs/sample/notes.json --held-out docs/sample/notes-held-out.json
"""


class Command(LearnCommand):
    help = "Learn when a fact ends because its statement was replaced, and say how well that is told."
    epilog = EPILOG
    weights_file = FACT_ENDINGS_FILE
    readers = "the workers that run"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--held-out", type=Path, nargs="*", default=[], metavar="FILE", help="files to judge alone")

    def learn(self, options: dict[str, Any]) -> LearningReport:
        files = [read_file(path) for path in options["files"]]
        if not 0 < sum(each.is_ended.sum() for each in files) < sum(len(each.is_ended) for each in files):
            raise CommandError("The files need facts whose statement was replaced, as questions say, and others.")
        learned = learn_fact_endings(files)
        figures = [*judge_files(files), *(judge(read_file(path), learned) for path in options["held_out"])]
        document = {
            "intercept": round(learned.intercept, DIGITS),
            "weights": dict(zip(FEATURES, np.round(learned.weights, DIGITS).tolist(), strict=True)),
            "learned": {
                "date": timezone.now().date().isoformat(),
                "files": len(files),
                "facts": sum(len(set(each.facts)) for each in files),
            },
        }
        return LearningReport(document=document, figures=figures, shown=render_figures(figures))


def read_file(path: Path) -> FactEndings:
    """Return the facts of a file that may end. Raises CommandError for a file that is no sample."""
    samples = open_file(path)
    with scratch_account(PURPOSE) as scratch, open_bar(path.name, steps_of(samples)) as advance:
        scratch.account.contradictions = KEEP_ALL
        scratch.account.save(update_fields=["contradictions"])
        loaded = list(load_samples(samples, scratch.account, now=timezone.now(), advance=advance))
        return read_endings(path.stem, extract_samples(loaded, scratch.account, now=timezone.now()))


def render_figures(figures: Sequence[EndingFigures]) -> Iterator[RenderableType]:
    table = open_table("Facts that end", "file", "replaced", "ended", "ended wrongly")
    for each in figures:
        table.add_row(each.file, *map(str, (each.replaced, each.ended, each.wrongly)))
    yield table
