"""`manage.py export_conversations`: conversations into JSON Lines, as import_conversations reads them."""

import json
import sys
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from memory.management.base import OperatorCommand, find_account, progress_bar, zoned_time
from memory.management.exports import open_output, refuse_to_replace
from memory.models import Account
from memory.services.conversations.export import (
    ExportCounts,
    ExportSelection,
    export_conversations,
    select_conversations,
)

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
    advice = "The export is not complete."

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
        total = self.run_export(account, selection, options["file"])
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
