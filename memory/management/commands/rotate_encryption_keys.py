"""`manage.py rotate_encryption_keys`: what is encrypted at rest, sealed anew under the first key."""

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from memory.services.operations.reseal import (
    Rotated,
    SealedTable,
    count_rows,
    rehearse_rotation,
    rotate_tables,
    sealed_tables,
)
from memory_project.encryption import check_keys, current_keys, put_key_in_front

INTERRUPTED = 130

EPILOG = """
What went into tools, what came out and what went wrong is encrypted at rest: Fernet, under MEMORY_ENCRYPTION_KEYS. The
first key seals, all of them open. This command seals under the first one whatever is under another.

Keys kept beside the data (`.data/encryption_keys`, as `make up` makes them): one command, beside the running service.
Its processes read the file again whenever it changes; none needs a restart.

  manage.py rotate_encryption_keys --generate
  manage.py rotate_encryption_keys --dry-run        0 to rotate: take the old keys out of the file

Keys given by MEMORY_ENCRYPTION_KEYS, by commas. Every process must know a key before any other seals under it, so:

  1. put the new key behind the old one: OLD,NEW    restart web and worker, all of them
  2. put it in front: NEW,OLD                       restart them again: from now on NEW seals
  3. manage.py rotate_encryption_keys
  4. manage.py rotate_encryption_keys --dry-run     0 to rotate: take OLD away, restart

Keep old keys for as long as there are backups from before. A row that no key opens is left as it is: put the key that
sealed it behind the others, and run the command again. Without it, its input, output and error are lost; the API
answers the rest of the row with "sealed": true.

The command may be stopped and run again, and runs beside the service: a batch is a transaction, what is under the first
key already is left alone, and a row waits for no longer than its batch takes.

Exit status: 0, or 1 when some of it could not be read, 130 on Ctrl-C.
"""


@dataclass(slots=True, kw_only=True)
class Running:
    """The figures so far by table, kept outside the loop so that an interruption can tell them."""

    tables: dict[str, Rotated] = field(default_factory=dict)

    @property
    def total(self) -> Rotated:
        return sum(self.tables.values(), Rotated())


class Command(BaseCommand):
    help = "Seal what is encrypted at rest anew, under the first of the encryption keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EPILOG
        parser.add_argument("--dry-run", action="store_true", help="say what would be sealed anew, change nothing")
        parser.add_argument(
            "--generate",
            action="store_true",
            help="first make a key and put it in front of those kept beside the data",
        )
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        running, interrupted = Running(), False
        try:
            if options["generate"]:
                self.generate(options)
            self.run(running, options)
        except ImproperlyConfigured as err:
            raise CommandError(f"{err}.") from err
        except KeyboardInterrupt:
            interrupted = True
        self.report(running, seconds=time.monotonic() - started, options=options)
        if interrupted:
            self.stderr.write("Interrupted. What is sealed anew stays so; run the same command again to go on.")
            sys.exit(INTERRUPTED)
        self.advise(running.total, options)
        if running.total.unreadable:
            sys.exit(1)

    def generate(self, options: dict[str, Any]) -> None:
        if options["dry_run"]:
            raise CommandError("--generate changes the keys: not with --dry-run.")
        self.stderr.write(
            f"A new key is in front in {put_key_in_front()}: a copy of that file belongs with the backups."
        )

    def run(self, running: Running, options: dict[str, Any]) -> None:
        tables = sealed_tables()
        check_keys()
        step_through = rehearse_rotation if options["dry_run"] else rotate_tables
        with open_bar(tables) as advance:
            for batch in step_through(tables):
                running.tables[batch.table] = running.tables.get(batch.table, Rotated()) + batch.rotated
                advance(running.total)

    def report(self, running: Running, *, seconds: float, options: dict[str, Any]) -> None:
        if options["json"]:
            by_table = {name: asdict(rotated) for name, rotated in running.tables.items()}
            told = {"tables": by_table, "dry_run": options["dry_run"], "seconds": round(seconds, 1)}
            self.stdout.write(json.dumps(asdict(running.total) | told))
            return
        total = running.total
        done = "would be sealed anew" if options["dry_run"] else "sealed anew"
        self.stdout.write(
            f"{total.rotated} {done}, {total.current} under the first key already, {total.unreadable} unreadable, "
            f"in {total.rows} rows, {seconds:.1f} seconds"
        )

    def advise(self, total: Rotated, options: dict[str, Any]) -> None:
        """What to do next, on standard error: for people."""
        where = "MEMORY_ENCRYPTION_KEYS" if settings.ENCRYPTION_KEYS else str(settings.ENCRYPTION_KEYS_FILE)
        if total.unreadable:
            self.stderr.write("Put the key that sealed what is unreadable behind the others, and run this again.")
        elif total.rotated and options["dry_run"]:
            self.stderr.write(f"Leave all keys in {where}: the old ones are still needed.")
        elif total.rotated:
            self.stderr.write(f"Once --dry-run finds nothing more to seal anew, take the old keys out of {where}.")
        elif len(current_keys()) > 1:
            self.stderr.write(f"All keys in {where} but the first can go; keep them with the backups from before.")


@contextmanager
def open_bar(tables: list[SealedTable]) -> Iterator[Callable[[Rotated], None]]:
    """A bar on a terminal's standard error; elsewhere nothing is drawn, nor counted."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.completed} of {task.total} rows"),
        BarColumn(),
        "[progress.percentage]{task.percentage:>3.0f} %",
    )
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(map(count_rows, tables)) if console.is_terminal else None)
        yield lambda total: progress.update(task, completed=total.rows)
