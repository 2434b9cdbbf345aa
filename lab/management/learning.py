"""Shared parts of the `learn_*` commands: the files to learn from, the report, and the file of weights."""

import json
from abc import abstractmethod
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import CommandError
from rich.console import RenderableType

from lab.evaluation.files import FORMATS
from lab.evaluation.tables import WIDTH
from memory.management.base import OperatorCommand, render_text

PURPOSE = "learning"
"""The scratch accounts in which samples are stored are named after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReport:
    """The content of a file of weights, figures on how good the weights are (dataclasses), and both for people."""

    document: dict[str, Any]
    figures: Sequence[Any]
    shown: Iterable[RenderableType]


class LearnCommand(OperatorCommand):
    """A command that learns weights from files, prints how good they are, and writes them where that is asked."""

    advice = "What was loaded is deleted."
    weights_file: ClassVar[Path]
    """The file of shipped weights, which --write replaces."""
    readers = "web servers and workers that run"
    """The processes that read the weights when they start."""
    indent: int | None = 1
    """Spaces of indentation in the file of weights; None writes it on one line."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
        target = parser.add_mutually_exclusive_group()
        target.add_argument("--write", action="store_true", help="replace the shipped weights")
        target.add_argument("--to", "--write-to", type=Path, metavar="FILE", help="write the weights to this file")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        report = self.learn(options)
        figures = [asdict(each) for each in report.figures]
        self.print_figures(report.document | {"figures": figures}, render_text(report.shown, width=WIDTH), options)
        if path := self.weights_file if options["write"] else options["to"]:
            write_weights(path, report.document, indent=self.indent)
            # not into what may be JSON
            self.stderr.write(f"The weights are written: restart {self.readers}, which go by what they read at start.")

    @abstractmethod
    def learn(self, options: dict[str, Any]) -> LearningReport:
        """Learn from the files. Raises CommandError where they teach nothing."""


def add_format_argument(parser: ArgumentParser) -> None:
    """Add the option that names the format of files of questions."""
    parser.add_argument("--format", choices=sorted(FORMATS), default="", help="default: by what is in each file")


def write_weights(path: Path, document: dict[str, Any], *, indent: int | None = 1) -> None:
    """Write a file of weights. Raises CommandError."""
    try:
        path.write_text(json.dumps(document, indent=indent) + "\n", encoding="utf-8")
    except OSError as err:
        raise CommandError(f"{path} cannot be written: {err.strerror}") from err
