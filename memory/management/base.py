"""Parts that commands share: help, refusals, the end by Ctrl-C, reports, accounts, encryption keys, progress bars."""

import json
import sys
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from memory.errors import MemoryServiceError, NotFound
from memory.models import Account
from memory.services.accounts import register
from memory.services.operations.canary import require_keys as require_keys

INTERRUPTED = 130
"""Exit status after Ctrl-C."""
PERCENTAGE = "[progress.percentage]{task.percentage:>3.0f} %"


class OperatorCommand(BaseCommand):
    """A command whose help ends with an epilog, and whose refusals and interruptions are sentences."""

    epilog = ""
    refusals: ClassVar[tuple[type[Exception], ...]] = ()
    """Errors whose texts are whole sentences. Those of services and settings get a full stop where they have none."""
    advice = ""
    """A sentence on what is done and how to go on, printed after Ctrl-C."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        if self.epilog:
            kwargs |= {"epilog": self.epilog, "formatter_class": RawDescriptionHelpFormatter}
        return super().create_parser(prog_name, subcommand, **kwargs)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except self.refusals as err:
            raise CommandError(str(err)) from err
        except (MemoryServiceError, ImproperlyConfigured) as err:
            raise CommandError(f"{str(err).removesuffix('.')}.") from err
        except KeyboardInterrupt:
            end_interrupted(self, self.advice)

    def print_figures(self, figures: Mapping[str, Any], sentence: str, options: Mapping[str, Any]) -> None:
        """Print the figures as one JSON object if --json was given, else the sentence that tells them."""
        self.stdout.write(json.dumps(figures) if options["json"] else sentence)


def find_account(name: str) -> Account:
    """Return the account that a command's user named. Raises CommandError."""
    try:
        return register.find_account(name)
    except NotFound as err:
        raise CommandError(f"There is no account {name!r}.") from err


def zoned_time(text: str) -> datetime:
    """Parse an ISO 8601 time with a zone. Raises ArgumentTypeError."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} is not a time with a zone, such as 2030-01-01T00:00:00Z")
    return moment


def count_until_interrupted(
    batches: Iterable[int], advance: Callable[[int], None] = lambda _rows: None
) -> tuple[int, bool]:
    """Do the batches, each of which returns its rows; return how many were done, and whether Ctrl-C ended it."""
    rows = 0
    try:
        for done in batches:
            rows += done
            advance(rows)
    except KeyboardInterrupt:
        return rows, True
    return rows, False


def render_text(parts: Iterable[RenderableType], *, width: int) -> str:
    """Render tables and lines as plain text of at most `width` columns."""
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def end_interrupted(command: BaseCommand, advice: str) -> NoReturn:
    """End the process after Ctrl-C, with a sentence on what is done and how to go on."""
    command.stderr.write(f"Interrupted. {advice}".rstrip())
    sys.exit(INTERRUPTED)


@contextmanager
def progress_bar(noun: str, count_total: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """Show how many of the rows called `noun` are done, on a terminal's standard error.

    Elsewhere nothing is drawn, and the total is not counted. Yields a function that takes the number of rows done.
    """
    label = f"{{task.completed}} of {{task.total}} {noun}"
    with terminal_bar(label, PERCENTAGE, total=count_total) as update:
        yield lambda done: update(completed=done)


@contextmanager
def terminal_bar(label: str, *columns: str, total: Callable[[], float], **fields: Any) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal's standard error; elsewhere draw nothing, and leave the total uncounted.

    `label` and `columns` are Rich's markup around the bar. Yields a function that takes `completed` and the fields.
    """
    console = Console(stderr=True)
    shown: list[str | ProgressColumn] = [TextColumn(label), BarColumn(), *columns, TimeElapsedColumn()]
    with Progress(*shown, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total() if console.is_terminal else None, **fields)
        yield partial(progress.update, task)
