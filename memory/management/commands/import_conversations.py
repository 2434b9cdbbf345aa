"""`manage.py import_conversations`: conversations out of a file, their turns and one episode each."""

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import CommandError
from django.utils import timezone

from memory.extraction import chatgpt, claude
from memory.extraction.archives import read_archive
from memory.extraction.conversations import bounded_lines, read_conversations
from memory.extraction.imported import BadLine, Item
from memory.extraction.locomo import read_locomo
from memory.management.base import PERCENTAGE, OperatorCommand, end_interrupted, terminal_bar
from memory.management.imports import add_import_arguments, add_target_arguments, find_target, open_source
from memory.models import Account
from memory.owner import Owner
from memory.services.conversations.import_files import (
    ImportCounts,
    import_conversations,
    rehearse_import,
)

UNITS = {"jsonl": "line", "locomo": "sample", "chatgpt": "conversation", "claude": "conversation"}
"""The unit that the number of a bad line counts, by format."""
ARCHIVES = {"chatgpt": chatgpt.read_chat, "claude": claude.read_chat}

EPILOG = """
A conversation is stored with all its turns and with one episode, a summary that quotes it. It is known by its id: one
that is there already is left alone, so run the same command again to resume. What could not be embedded in time is
found by its words, and by its meaning once the job `embed` has seen to it.

formats:
  jsonl    one conversation a line (docs/sample/conversations.jsonl), as export_conversations writes them:
           {"id", "agent", "user"?, "channel"?, "title"?, "continues"?, "metadata"?, "outcome"?, "ended_at"?,
            "messages": [{"role", "name"?, "content", …, "timestamp"?, "model"?, "client_id"?, "metadata"?, "agent"?}]}
           Messages of OpenAI's chat API are accepted unchanged: parts, tool calls, results. At most 64 MiB a line.
  chatgpt  the .zip that ChatGPT sends, or its conversations.json: the branch of each chat that was shown last
  claude   the .zip that Claude sends, or its conversations.json
           Both: at most 4 GiB unpacked, 64 MiB a conversation.
  locomo   a list of LoCoMo samples, each session a conversation

  manage.py import_conversations docs/sample/conversations.jsonl
  manage.py import_conversations ~/Downloads/chatgpt.zip --format chatgpt --user ana --account home --create-account
  manage.py export_conversations - | manage.py import_conversations - --account copy --create-account

Exit status: 0, or 1 when a line was bad (standard error names each, and the others are imported), 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Import conversations from a file: their turns, and one episode each, summarized offline by quoting."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="or - for standard input")
        add_target_arguments(parser)
        parser.add_argument("--format", choices=sorted(UNITS), default="jsonl", help="default: %(default)s")
        parser.add_argument("--agent", help="agent of an archive's conversations (default: the name of the format)")
        parser.add_argument("--user", help="user of an archive's conversations")
        add_import_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        account = find_target(options)
        # kept here, so that an interruption can report it
        self.total = ImportCounts()
        interrupted = False
        try:
            self.run_import(account, options)
        except KeyboardInterrupt:
            interrupted = True
        self.report(self.total, seconds=time.monotonic() - started, options=options)
        if interrupted:
            end_interrupted(self, "What was imported stays; run the same command again to resume.")
        if self.total.bad:
            sys.exit(1)

    def run_import(self, account: Account, options: dict[str, Any]) -> None:
        step_through = rehearse_import
        if not options["dry_run"]:
            step_through = partial(import_conversations, embed_seconds=options["embed_seconds"])
        with open_source(options["file"]) as stream, import_bar(stream) as advance:
            for step in step_through(account.id, read_items(stream, account, options), now=timezone.now()):
                if isinstance(step, BadLine):
                    self.total += ImportCounts(bad=1)
                    self.stderr.write(f"{UNITS[options['format']]} {step.number}: {step.reason}")
                else:
                    self.total += step
                advance(self.total)

    def report(self, total: ImportCounts, *, seconds: float, options: dict[str, Any]) -> None:
        figures = asdict(total) | {"seconds": round(seconds, 1), "dry_run": options["dry_run"]}
        done = "would be imported" if options["dry_run"] else "imported"
        empty = f"{total.empty} empty, " if total.empty else ""
        sentence = (
            f"{total.imported} {done} ({total.turns} turns), {total.already_there} already there, {empty}"
            f"{total.bad} bad, {total.pending} pending embeddings, {seconds:.1f} seconds"
        )
        self.print_figures(figures, sentence, options)


def read_items(stream: BinaryIO, account: Account, options: dict[str, Any]) -> Iterator[Item]:
    read_chat = ARCHIVES.get(options["format"])
    if read_chat is not None:
        agent_id = options["agent"] or options["format"]
        owner = Owner(account_id=account.id, agent_id=agent_id, user_id=options["user"] or "")
        return read_archive(stream, partial(read_chat, owner=owner))
    if options["agent"] or options["user"]:
        raise CommandError("--agent and --user are for archives: this format names them itself.")
    return read_locomo(stream.read()) if options["format"] == "locomo" else read_conversations(bounded_lines(stream))


@contextmanager
def import_bar(stream: BinaryIO) -> Iterator[Callable[[ImportCounts], None]]:
    """Show a bar on a terminal's standard error, filled by how much of the file was read."""
    label, size = "{task.fields[done]} imported", os.fstat(stream.fileno()).st_size
    with terminal_bar(label, PERCENTAGE, total=lambda: size, done=0) as update:

        def advance(total: ImportCounts) -> None:
            # a pipe does not say how far it is, nor how long
            place = stream.tell() if stream.seekable() else 0
            update(completed=place, done=total.imported + total.already_there)

        yield advance
