"""`manage.py import_archive`: what export_archive wrote, into an account."""

import shutil
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError
from django.utils import timezone

from memory.errors import MemoryServiceError
from memory.management.base import OperatorCommand, require_keys, terminal_bar
from memory.management.imports import add_target_arguments, find_target, open_source
from memory.models import Transfer
from memory.services.transfer.load import begin_file_import, check_archive, fail_import, load_archive
from memory.services.transfer.transfers import transfer_lock

EPILOG = """
The whole archive is checked before anything is stored: a file that was altered, cut off or made by a newer version is
refused. Rows that the account has already are left alone and counted. Ids are kept, unless another account of the
installation uses them: then all rows get new ones, and links, ledgers and names follow. Embeddings that the archive
lacks are made by the job `embed`. A run that was killed goes on when the same command is given again.

  manage.py import_archive workshop.zip --account copy --create-account --dry-run
  manage.py import_archive workshop.zip --account copy --create-account
  cat workshop.zip | manage.py import_archive - --account workshop --json

Exit status: 0, 1 when the archive is refused or the account is unknown, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Import an archive of export_archive into an account."
    epilog = EPILOG
    advice = "What was imported stays; run the same command again to resume."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="the zip, or - for standard input")
        add_target_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="check the archive, and store nothing")
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        require_keys()
        started, now = time.monotonic(), timezone.now()
        account = find_target(options)
        if account._state.adding:
            self.rehearse_new_account(options, started)
            return
        with seekable(options["file"]) as source:
            transfer = begin_file_import(account, source, dry_run=options["dry_run"], now=now)
            try:
                with transfer_lock(transfer.id) as is_held:
                    if not is_held:
                        raise CommandError("This archive is being imported by another process: wait for its end.")
                    self.run_import(transfer, source)
            except MemoryServiceError as err:
                fail_import(transfer, str(err), now=timezone.now())
                raise CommandError(f"The archive was not imported: {err}.") from err
        self.report(transfer, started, options)

    def rehearse_new_account(self, options: dict[str, Any], started: float) -> None:
        """Check the archive for an account that is not there yet. Nothing is stored, not even the dry run's row."""
        with seekable(options["file"]) as source:
            try:
                transfer = Transfer(dry_run=True, counts=check_archive(source, now=timezone.now()))
            except MemoryServiceError as err:
                raise CommandError(f"The archive was not imported: {err}.") from err
        if not options["json"]:
            self.stdout.write(f"The account {options['account']!r} would be created.")
        self.report(transfer, started, options)

    def run_import(self, transfer: Transfer, source: IO[bytes]) -> None:
        with terminal_bar("{task.fields[rows]} rows stored", total=lambda: 0, rows=0) as update:
            load_archive(
                transfer,
                source,
                now=timezone.now(),
                report=lambda counts: update(rows=sum(counts.values())),
            )

    def report(self, transfer: Transfer, started: float, options: dict[str, Any]) -> None:
        stored, existing = sum(transfer.counts.values()), sum(transfer.existing.values())
        seconds = round(time.monotonic() - started, 1)
        figures = {
            "rows": transfer.counts,
            "existing": transfer.existing,
            "left_out": transfer.left_out,
            "remapped": bool(transfer.remaps),
            "dry_run": transfer.dry_run,
            "seconds": seconds,
        }
        done = "could be imported" if transfer.dry_run else "imported"
        left_out = sum(transfer.left_out.values())
        lacking = f", {left_out} left out as they go with something that has another id here" if left_out else ""
        ids = ", with new ids" if transfer.remaps else ""
        sentence = f"{stored} rows {done}{ids}, {existing} left alone{lacking}, {seconds} seconds"
        self.print_figures(figures, sentence, options)


@contextmanager
def seekable(path: Path) -> Iterator[IO[bytes]]:
    """Open the file; standard input is copied to a temporary one."""
    with open_source(path) as stream:
        if stream.seekable():
            yield stream
            return
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(stream, spool)
            spool.seek(0)
            yield spool
