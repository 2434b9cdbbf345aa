"""`manage.py learn_worth`: weights of the worth of claims, learned from talk in which readers judged them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import RenderableType

from lab.evaluation.progress import collect
from lab.evaluation.tables import open_table
from lab.evaluation.worth import (
    FOLDS,
    L2,
    JudgedTalk,
    WorthFigures,
    judge_files,
    learn_worth,
    read_judged,
)
from lab.management.learning import LearnCommand, LearningReport
from memory.extraction.worth import WORDS, WORTH_FILE, Worth
from memory_project.embedded.models import BUNDLED_MODEL

DIGITS = 4
EPILOG = f"""
A file has a line '@ ID KIND NAME TIME' for each conversation, then a line 'U: ...' or 'A: ...' for each turn of the
user or the assistant. After a user's turn, it has a line for each claim that a reader judged: '+ claim' if it is right,
understood alone and of use a month later, '- claim' if it is wrong or not understood, '~ claim' if it is of the moment.

Each of {FOLDS} groups of files is judged by weights that were learned on the other groups; a single file by its own.

  manage.py learn_worth docs/sample/judged-talk/*.txt
  manage.py learn_worth docs/sample/judged-talk/*.txt mine.txt --write
"""


class Command(LearnCommand):
    help = "Learn which claims of extraction are worth keeping, and say how well that is told."
    epilog = EPILOG
    advice = ""
    weights_file = WORTH_FILE
    readers = "the workers that run"
    indent = None

    def learn(self, options: dict[str, Any]) -> LearningReport:
        judged = collect("reading", len(options["files"]), map(read_file, options["files"]))
        judged = [each for each in judged if each.claims]
        if not 0 < sum(each.is_good.sum() for each in judged) < sum(len(each.claims) for each in judged):
            raise CommandError(
                "The files have to hold claims that are good ('+ ') and claims that are not ('- ', '~ ')."
            )
        figures = judge_files(judged)
        document = document_of(learn_worth(judged), judged)
        return LearningReport(document=document, figures=figures, shown=render_figures(figures))


def read_file(path: Path) -> JudgedTalk:
    try:
        return read_judged(path)
    except (OSError, UnicodeDecodeError, ValueError) as err:
        raise CommandError(f"{path} cannot be read: {err}") from err


def document_of(worth: Worth, judged: Sequence[JudgedTalk]) -> dict[str, Any]:
    """Return the content of `worth.json`."""
    weights = np.round(worth.linear, DIGITS).tolist()
    width = len(weights) - len(WORDS)
    return {
        "intercept": round(worth.intercept, DIGITS),
        "words": dict(zip(WORDS, weights[width:], strict=True)),
        "vector": weights[:width],
        "directions": np.round(worth.directions, DIGITS).tolist(),
        "pairs": np.round(worth.pairs[np.triu_indices(len(worth.pairs))], DIGITS).tolist(),
        "learned": {
            "date": timezone.now().date().isoformat(),
            "model": BUNDLED_MODEL,
            "files": len(judged),
            "claims": sum(len(each.claims) for each in judged),
            "good": int(sum(each.is_good.sum() for each in judged)),
            "l2": L2,
        },
    }


def render_figures(figures: Sequence[WorthFigures]) -> Iterator[RenderableType]:
    columns = (
        "file",
        "claims are",
        "weights",
        "turns",
        "without verdict",
        "claims",
        "good",
        "AUROC",
        "kept",
        "good of these",
    )
    table = open_table("Claims that are worth keeping", *columns)
    for each in figures:
        counts = map(str, (each.turns, each.unjudged, each.claims, each.good))
        weights = "held out" if each.is_held_out else "fitted"
        share = f"{each.right} ({each.right / each.kept:.0%})" if each.kept else "0"
        source = "by rules" if each.by_rule else "own words"
        table.add_row(each.file, source, weights, *counts, f"{each.auroc:.3f}", str(each.kept), share)
    yield table
