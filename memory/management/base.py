"""Parts that commands share: help, refusals, the end by Ctrl-C, account look-up, encryption keys, progress bars."""

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
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
    """Errors whose texts are whole sentences. Those of services and settings get their full stop here."""
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
            raise CommandError(f"{err}.") from err
        except KeyboardInterrupt:
            end_interrupted(self, self.advice)


def find_account(name: str) -> Account:
    """Return the account that a command's user named. Raises CommandError."""
    try:
        return register.find_account(name)
    except NotFound as err:
        raise CommandError(f"There is no account {name!r}.") from err


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
