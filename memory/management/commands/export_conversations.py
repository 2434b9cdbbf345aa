"""`manage.py export_conversations`: conversations into JSON Lines, as import_conversations reads them."""

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from memory.management.base import INTERRUPTED, OperatorCommand, find_account, progress_bar
from memory.management.commands.run_job import zoned_time
from memory.models import Account
from memory.services.conversations.export import (
    ExportCounts,
    ExportSelection,
    Write,
    export_conversations,
    select_conversations,
)

READER_LEFT = 141

EPILOG = """
One conversation a line, oldest first, as they are at one moment:

  {"id", "agent", "user"?, "channel"?, "title"?, "continues"?, "metadata"?, "outcome"?, "ended_at"?,
   "messages": [{"role", "name"?, "content", "tool_calls"?, …, "timestamp"?, "model"?, "client_id"?, "metadata"?,
                 "agent"? (where another wrote it than the conversation's)}]}

Times, parts and tool calls are as they were sent. Imported into an empty account and exported from there, a file is
the same again, byte for byte. Conversations in which nothing was said are left out, and so are summaries (an import
makes its own) and working memory. A FILE that is there already is refused; with --replace, it is replaced when the
export is complete, and only then.

  manage.py export_conversations backup.jsonl
  manage.py export_conversations --user ana --since 2026-01-01T00:00:00Z | gzip > ana.jsonl.gz
  manage.py export_conversations - --conversation chat-1 --conversation chat-2

Exit status: 0, or 1 when a conversation is longer (64 MiB) than an import takes; 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Export conversations with all their turns as JSON Lines, streamed."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: - for standard output")
        parser.add_argument("--account", default="default", help="its name (default: %(default)s)")
        parser.add_argument(
            "--conversation", action="append", default=[], metavar="ID", help="only this one; repeatable"
        )
        parser.add_argument("--user", help="only this user's")
        parser.add_argument("--channel", help="only those in this channel")
        parser.add_argument(
            "--since", type=zoned_time, metavar="TIME", help="only those in which something was said then or later"
        )
        parser.add_argument("--replace", action="store_true", help="replace a file that is there already")
        parser.add_argument("--json", action="store_true", help="figures on standard error as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["replace"]:
            refuse_to_replace(options["file"])
        account = find_account(options["account"])
        selection = ExportSelection(
            conversation_ids=options["conversation"],
            user_id=options["user"],
            channel=options["channel"],
            since=options["since"],
        )
        started = time.monotonic()
        try:
            total = self.run_export(account, selection, options["file"])
        except KeyboardInterrupt:
            self.stderr.write("Interrupted: the export is not complete.")
            sys.exit(INTERRUPTED)
        self.report(total, seconds=time.monotonic() - started, as_json=options["json"])
        if total.oversized:
            sys.exit(1)

    def run_export(self, account: Account, selection: ExportSelection, file: str) -> ExportCounts:
        total = ExportCounts()
        expected = select_conversations(account.id, selection).count
        with open_output(file, self.stdout) as output, progress_bar("conversations", expected) as advance:
            for step in export_conversations(account.id, selection, write=output.write):
                total += step
                advance(total.conversations)
        return total

    def report(self, total: ExportCounts, *, seconds: float, as_json: bool) -> None:
        if as_json:
            self.stderr.write(json.dumps(asdict(total) | {"seconds": round(seconds, 1)}))
            return
        self.stderr.write(
            f"{total.conversations} conversations, {total.turns} turns, {total.size_bytes} bytes, {seconds:.1f} seconds"
        )
        if total.oversized:
            self.stderr.write(f"{total.oversized} of them are longer than an import takes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The target of an export. `empty` takes back what was written, from a file that is not complete yet."""

    write: Write
    is_file: bool = False
    empty: Callable[[], object] = lambda: None


def refuse_to_replace(file: str) -> None:
    """Raise CommandError for a file that holds something: an older export may have what was erased since."""
    path = Path(file)
    if path.is_file() and path.stat().st_size:
        raise CommandError(f"{path} exists: name another file, or give --replace.")


@contextmanager
def open_output(file: str, stdout: OutputWrapper) -> Iterator[Output]:
    """Open the output. A regular file is written next to its path and renamed when it is complete."""
    if file == "-":
        with written_to(stdout) as write:
            yield Output(write=write)
        return
    path = Path(file)
    is_replaced = path.is_file() or not path.exists()
    temporary = path.with_name(f".{path.name}.{os.getpid()}") if is_replaced else path
    try:
        with temporary.open("wb") as stream:
            yield Output(write=stream.write, is_file=is_replaced, empty=lambda: stream.truncate(stream.seek(0)))
        if is_replaced:
            temporary.replace(path)
    except OSError as err:
        raise CommandError(f"{path} cannot be written: {err.strerror}") from err
    finally:
        if is_replaced:
            temporary.unlink(missing_ok=True)


@contextmanager
def written_to(stdout: OutputWrapper) -> Iterator[Write]:
    """Write bytes to standard output, whatever encoding the terminal has; a reader that leaves ends the export."""
    raw = getattr(stdout, "buffer", None)
    try:
        yield raw.write if raw else lambda piece: stdout.write(piece.decode(), ending="")
        stdout.flush()
    except BrokenPipeError:
        # nobody reads: Python must not try again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_LEFT)
