"""`manage.py learn_confidence`: weights of the confidence of results, learned from questions and their answers."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import RenderableType

from lab.evaluation.calibration_charts import render_calibration
from lab.evaluation.confidence import (
    L2,
    OWN_SHARE,
    PLACES,
    ConfidenceFigures,
    RecordedResults,
    count_questions,
    judge_files,
    learn_calibrations,
    record_results,
)
from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.files import open_file
from lab.evaluation.loading import load_in_scratch
from lab.evaluation.progress import collect
from lab.evaluation.tables import open_table
from lab.management.learning import PURPOSE, LearnCommand, LearningReport, add_format_argument
from memory.providers.embeddings import embedding_provider
from memory.retrieval.confidence import CONFIDENCE_FILE, FLOOR, Calibrations
from memory.retrieval.techniques import choose_plan
from memory_project.embedded.models import BUNDLED_MODEL

DIGITS = 3
EPILOG = """
Every file is loaded into a scratch account, and each of its samples into another; nothing of it stays. Each sample is
asked its own questions, and some of the other samples of its file, of which it must know nothing: leave out files whose
samples tell the same. In an account of its own it does not know most words of these.

--write replaces the shipped weights, which are for the bundled model. With any other model, use --to, and name
that file in MEMORY_CONFIDENCE_WEIGHTS.

Figures of a file are by weights that were learned on the other files, if there are any.

  manage.py learn_confidence docs/sample/updates.json docs/sample/plain-updates.json
  manage.py learn_confidence docs/sample/updates.json docs/sample/recall.json --to /etc/agent-memory/confidence.json
"""


class Command(LearnCommand):
    help = "Learn how likely the results of a recall help, and say how well that tells questions without an answer."
    epilog = EPILOG
    weights_file = CONFIDENCE_FILE

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add_format_argument(parser)
        parser.add_argument("--plot", type=Path, metavar="SVG", help="where to draw the calibration")

    def learn(self, options: dict[str, Any]) -> LearningReport:
        model = embedding_provider().model
        if options["write"] and model != BUNDLED_MODEL:
            raise CommandError(
                f"--write replaces the shipped weights, which are for the model {BUNDLED_MODEL}; this is {model}. Write"
                " yours with --to FILE, and name the file in MEMORY_CONFIDENCE_WEIGHTS."
            )
        recorded = [each for path in options["files"] for each in record_file(path, options["format"])]
        if not any(each.is_answer.any() for each in recorded):
            raise CommandError("No answer was among the results of any question: there is nothing to learn from.")
        figures = judge_files(recorded)
        document = document_of(learn_calibrations(recorded, model=model), recorded)
        if options["plot"] is not None:
            options["plot"].write_text(render_calibration(figures), encoding="utf-8")
        shown = [json.dumps(document, indent=1), *render_figures(figures)]
        return LearningReport(document=document, figures=figures, shown=shown)


def record_file(path: Path, file_format: str) -> list[RecordedResults]:
    """Record the results of a file's questions, with its samples in one account, and with one account for each."""
    samples = open_file(path, file_format)
    recorded = record_in_account(samples, samples, file=path.stem, is_apart=False)
    for sample in samples if len(samples) > 1 else ():
        recorded += record_in_account([sample], samples, file=path.stem, is_apart=True)
    return recorded


def record_in_account(
    stored: list[EvaluationSample], samples: Sequence[EvaluationSample], *, file: str, is_apart: bool
) -> list[RecordedResults]:
    """Ask these samples of a file, in an account that holds nothing else."""
    with load_in_scratch(PURPOSE, stored) as loaded:
        plan = choose_plan(())
        asked = (record_results(each, samples, plan, file=file, is_apart=is_apart) for each in loaded)
        return collect("asking", count_questions(stored, samples), chain.from_iterable(asked))


def document_of(learned: Calibrations, recorded: Sequence[RecordedResults]) -> dict[str, Any]:
    """Return the content of `confidence.json`; no sample is named."""
    parts = {"with_meaning": learned.with_meaning, "with_words": learned.with_words}
    weights = {
        name: {key: round(weight, DIGITS) for key, weight in asdict(part).items()} for name, part in parts.items()
    }
    foreign = sum(each.is_foreign for each in recorded)
    return weights | {
        "learned": {
            "date": timezone.now().date().isoformat(),
            "model": learned.model,
            "files": len({each.file for each in recorded}),
            "questions": len(recorded) - foreign,
            "foreign": foreign,
            "own_share": OWN_SHARE,
            "l2": L2,
        }
    }


def render_figures(figures: Sequence[ConfidenceFigures]) -> Iterator[RenderableType]:
    floor = f"Foreign questions without a result from {FLOOR} on, and what that costs of recall@{PLACES}, %"
    table = open_table(
        floor, "file", "samples", "weights", "questions", "foreign", "AUROC", "silent", f"recall@{PLACES}", "lost"
    )
    for each in figures:
        auroc = "" if each.auroc is None else f"{each.auroc:.3f}"
        silent = "" if each.silent is None else f"{each.silent * 100:.1f}"
        weights = "held out" if each.is_held_out else "fitted"
        counts = (str(each.questions), str(each.foreign))
        samples = "apart" if each.is_apart else "together"
        table.add_row(
            each.file, samples, weights, *counts, auroc, silent, f"{each.recall * 100:.1f}", f"{each.lost * 100:.1f}"
        )
    yield table
    title = f"Calibration: the first {PLACES} results of own questions by their confidence"
    bins = open_table(title, "file", "samples", "from", "results", "mean confidence", "share of answers")
    for each in figures:
        for one in each.bins:
            shares = (f"{one.confidence:.3f}", f"{one.answers:.3f}")
            samples = "apart" if each.is_apart else "together"
            bins.add_row(each.file, samples, f"{one.least:.2f}", str(one.results), *shares)
        bins.add_section()
    yield bins
