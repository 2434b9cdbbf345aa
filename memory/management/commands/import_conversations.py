"""Import conversations from a file, one episode each."""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from memory.extraction.conversations import BadLine, bounded_lines, read_conversations, read_locomo
from memory.models import Account
from memory.services.imports import Imported, Items, import_conversations, rehearse_import

INTERRUPTED = 130
UNITS = {"jsonl": "line", "locomo": "sample"}
"""What the number of a bad line counts, by format."""


@dataclass(slots=True, kw_only=True)
class Running:
    """The figures so far, kept outside the loop so that an interruption can tell them."""

    total: Imported


class Command(BaseCommand):
    help = (
        "Import conversations, one episode each, summarized offline by quoting them. A conversation is known by its "
        "id: what is there already is left alone, so run it again to resume. Exits with 1 if a line was bad."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--account", default="default", help="its name (default: %(default)s)")
        parser.add_argument("--create-account", action="store_true", help="make the account if there is none")
        parser.add_argument(
            "--format",
            choices=sorted(UNITS),
            default="jsonl",
            help="jsonl: one conversation a line; locomo: a list of LoCoMo samples (default: %(default)s)",
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be imported, store nothing")
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        account = self.find_account(options)
        running = Running(total=Imported())
        interrupted = False
        try:
            self.run_import(account, options, running)
        except KeyboardInterrupt:
            interrupted = True
        self.report(running.total, seconds=time.monotonic() - started, options=options)
        if interrupted:
            self.stderr.write("Interrupted. What was imported stays; run the same command again to resume.")
            sys.exit(INTERRUPTED)
        if running.total.bad:
            sys.exit(1)

    def find_account(self, options: dict[str, Any]) -> Account:
        name = options["account"]
        account = Account.objects.filter(name=name).first()
        if account is None and options["create_account"]:
            # a rehearsal leaves nothing behind: an account that is not stored has no episodes either
            return Account(name=name) if options["dry_run"] else Account.objects.get_or_create(name=name)[0]
        if account is None:
            raise CommandError(f"There is no account named {name!r}. Add --create-account to make it.")
        return account

    def run_import(self, account: Account, options: dict[str, Any], running: Running) -> None:
        step_through = rehearse_import if options["dry_run"] else import_conversations
        with open_source(options["file"]) as stream, open_bar(stream, options["file"]) as advance:
            for step in step_through(account.id, read_items(stream, options["format"]), now=timezone.now()):
                if isinstance(step, BadLine):
                    running.total += Imported(bad=1)
                    self.stderr.write(f"{UNITS[options['format']]} {step.number}: {step.reason}")
                else:
                    running.total += step
                advance(running.total)

    def report(self, total: Imported, *, seconds: float, options: dict[str, Any]) -> None:
        figures = asdict(total) | {"seconds": round(seconds, 1), "dry_run": options["dry_run"]}
        if options["json"]:
            self.stdout.write(json.dumps(figures))
            return
        done = "would be imported" if options["dry_run"] else "imported"
        self.stdout.write(
            f"{total.imported} {done}, {total.already_there} already there, {total.bad} bad, "
            f"{total.pending} pending embeddings, {seconds:.1f} seconds"
        )


def read_items(stream: BinaryIO, file_format: str) -> Items:
    return read_locomo(stream.read()) if file_format == "locomo" else read_conversations(bounded_lines(stream))


@contextmanager
def open_source(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
    except OSError as err:
        raise CommandError(f"{path} cannot be read: {err.strerror}") from err
    with stream:
        yield stream


@contextmanager
def open_bar(stream: BinaryIO, path: Path) -> Iterator[Callable[[Imported], None]]:
    """A bar on a terminal's standard error, filled by how much of the file was read; elsewhere nothing is drawn."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[done]} imported"),
        BarColumn(),
        "[progress.percentage]{task.percentage:>3.0f} %",
    )
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=path.stat().st_size, done=0)

        def advance(total: Imported) -> None:
            # a pipe does not say how far it is, nor how long
            place = stream.tell() if stream.seekable() else 0
            progress.update(task, completed=place, done=total.imported + total.already_there)

        yield advance
