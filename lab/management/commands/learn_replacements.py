"""`manage.py learn_replacements`: weights by which a later statement is taken to replace an earlier one."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from lab.benchmarks.scratch import scratch_account
from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.files import open_file
from lab.evaluation.loading import load_samples, steps_of
from lab.evaluation.progress import open_bar
from lab.evaluation.replacing import (
    OTHERS_SHARE,
    ComparedPairs,
    compare_sample,
    join_pairs,
    judge_held_out,
    learn_replacements,
    small_samples,
)
from lab.management.learning import PURPOSE, LearnCommand, LearningReport
from memory.extraction.replacement import FEATURES, WEIGHTS_FILE
from memory.scoring import POSSIBLE_REPLACEMENT, PROBABLE_REPLACEMENT, SURE_REPLACEMENT

DIGITS = 3
EPILOG = f"""
Every file is loaded into a scratch account; nothing of it stays. The questions of FILE say which statements were
replaced. Each is learned from twice: among all turns of its sample, and among a few. Pairs of the samples in --others
count as no replacements, each with a share of {OTHERS_SHARE}.

Precision and recall are those of samples that were left out of the learning.

  manage.py learn_replacements docs/sample/updates.json docs/sample/plain-updates.json
"""


class Command(LearnCommand):
    help = "Learn when a later statement replaces an earlier one, and say how good the weights are."
    epilog = EPILOG
    weights_file = WEIGHTS_FILE

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--others", type=Path, nargs="*", default=[], metavar="FILE", help="further conversations")

    def learn(self, options: dict[str, Any]) -> LearningReport:
        pairs = [each for path in options["files"] for each in compare_file(open_file(path))]
        if not any(each.is_replacement.any() for each in pairs):
            raise CommandError("No question names what its answers replaced: there is nothing to learn from.")
        others = [each for path in options["others"] for each in compare_file(open_file(path), share=OTHERS_SHARE)]
        learned = learn_replacements([*pairs, *others])
        figures = judge_held_out(
            [*pairs, *others], least=(POSSIBLE_REPLACEMENT, PROBABLE_REPLACEMENT, SURE_REPLACEMENT)
        )
        document = {
            "intercept": round(learned.intercept, DIGITS),
            "weights": dict(zip(FEATURES, learned.weights.round(DIGITS).tolist(), strict=True)),
            "learned": {
                "date": timezone.now().date().isoformat(),
                "samples": len(pairs),
                "other_samples": len(others),
                "replacements": int(sum(each.is_replacement.sum() + each.missed for each in pairs)),
                "held_out": [
                    {"least": each.least, "precision": round(each.precision, 2), "recall": round(each.recall, 2)}
                    for each in figures
                ],
            },
        }
        return LearningReport(document=document, figures=figures, shown=[json.dumps(document, indent=1)])


def compare_file(samples: list[EvaluationSample], *, share: float = 1.0) -> list[ComparedPairs]:
    """Compare the turns of each of a file's samples, whole and in small parts, in an account of its own."""
    groups = [[each, *small_samples(each)] for each in samples]
    with scratch_account(PURPOSE) as scratch:
        with open_bar("loading", sum(steps_of(group) for group in groups)) as advance:
            loaded = [
                list(load_samples(group, scratch.account, now=timezone.now(), advance=advance)) for group in groups
            ]
        return [join_pairs([compare_sample(each, share=share) for each in group]) for group in loaded]
