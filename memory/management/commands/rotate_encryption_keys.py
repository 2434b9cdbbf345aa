"""`manage.py rotate_encryption_keys`: re-encrypts everything encrypted at rest under the first key."""

import sys
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from memory.management.base import OperatorCommand, end_interrupted, progress_bar
from memory.services.operations.canary import replace_canary
from memory.services.operations.reseal import (
    RotationCounts,
    count_sealed_rows,
    find_sealed_tables,
    preview_rotation,
    rotate_tables,
)
from memory_project.encryption import add_encryption_key, check_encryption_keys, current_keys, name_key_source

EPILOG = """
Inputs, outputs and errors of tools are encrypted at rest by Fernet, with the keys in MEMORY_ENCRYPTION_KEYS. The first
key encrypts, all of them decrypt. This command re-encrypts under the first key whatever is under another.

With keys in a file of the data folder (`.data/encryption_keys`, which `make up` creates): one command, while the
service runs. Its processes read the file again whenever it changes; none needs a restart.

  manage.py rotate_encryption_keys --generate
  manage.py rotate_encryption_keys --dry-run        0 to rotate: take the old keys out of the file

With keys in MEMORY_ENCRYPTION_KEYS, separated by commas: every process must know a key before any other encrypts with
it, so:

  1. put the new key behind the old one: OLD,NEW    restart web and worker, all of them
  2. put it in front: NEW,OLD                       restart them again: from now on NEW encrypts
  3. manage.py rotate_encryption_keys
  4. manage.py rotate_encryption_keys --dry-run     0 to rotate: take OLD away, restart

Keep old keys for as long as there are backups from before. A row that no key decrypts is left as it is: put the
key that encrypted it behind the others, and run the command again. Without it, its input, output and error are
lost; the API answers the rest of the row with "sealed": true. The service starts without the lost key once you accept
the loss:

  manage.py rotate_encryption_keys --accept-loss

The command may be stopped and run again, also while the service runs: each batch is a transaction, what is under the
first key already is left alone, and a row is locked for no longer than its batch takes.

Exit status: 0, or 1 when some of it could not be read, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Re-encrypt everything that is encrypted at rest under the first encryption key."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="count what would be re-encrypted, and change nothing"
        )
        parser.add_argument(
            "--generate",
            action="store_true",
            help="first create a key and put it in front of those in the data folder",
        )
        parser.add_argument(
            "--accept-loss", action="store_true", help="let the service start although the key of some rows is lost"
        )
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        # by table, and kept here, so that an interruption can report it
        self.rotated: dict[str, RotationCounts] = {}
        interrupted = False
        try:
            if options["generate"]:
                self.generate(options)
            if options["accept_loss"]:
                self.accept_loss(options)
            self.run(options)
        except KeyboardInterrupt:
            interrupted = True
        total = sum(self.rotated.values(), RotationCounts())
        self.report(total, seconds=time.monotonic() - started, options=options)
        if interrupted:
            end_interrupted(self, "What is re-encrypted stays so; run the same command again to continue.")
        self.advise(total, options)
        if total.unreadable:
            sys.exit(1)

    def generate(self, options: dict[str, Any]) -> None:
        if options["dry_run"]:
            raise CommandError("--generate changes the keys: not with --dry-run.")
        self.stderr.write(
            f"A new key is in front in {add_encryption_key()}: a copy of that file belongs with the backups."
        )

    def accept_loss(self, options: dict[str, Any]) -> None:
        if options["dry_run"]:
            raise CommandError("--accept-loss changes what a start checks: not with --dry-run.")
        replace_canary()

    def run(self, options: dict[str, Any]) -> None:
        tables = find_sealed_tables()
        check_encryption_keys()
        step_through = preview_rotation if options["dry_run"] else rotate_tables
        with progress_bar("rows", lambda: sum(map(count_sealed_rows, tables))) as advance:
            for batch in step_through(tables):
                self.rotated[batch.table] = self.rotated.get(batch.table, RotationCounts()) + batch.rotated
                advance(sum(rotated.rows for rotated in self.rotated.values()))

    def report(self, total: RotationCounts, *, seconds: float, options: dict[str, Any]) -> None:
        by_table = {name: asdict(rotated) for name, rotated in self.rotated.items()}
        detail = {"tables": by_table, "dry_run": options["dry_run"], "seconds": round(seconds, 1)}
        done = "would be re-encrypted" if options["dry_run"] else "re-encrypted"
        sentence = (
            f"{total.rotated} {done}, {total.current} under the first key already, {total.unreadable} unreadable, "
            f"in {total.rows} rows, {seconds:.1f} seconds"
        )
        self.print_figures(asdict(total) | detail, sentence, options)

    def advise(self, total: RotationCounts, options: dict[str, Any]) -> None:
        """Print what to do next to standard error."""
        where = name_key_source()
        if total.unreadable:
            self.stderr.write("Put the key that encrypted what is unreadable behind the others, and run this again.")
        elif total.rotated and options["dry_run"]:
            self.stderr.write(f"Leave all keys in {where}: the old ones are still needed.")
        elif total.rotated:
            self.stderr.write(f"Once --dry-run finds nothing more to re-encrypt, take the old keys out of {where}.")
        elif len(current_keys()) > 1:
            self.stderr.write(f"All keys in {where} but the first can go; keep them with the backups from before.")
