"""`manage.py export_archive`: everything of an account, an agent or a user as one zip."""

import json
import time
from argparse import ArgumentParser
from typing import IO, Any, cast

from django.core.management.base import CommandError

from memory.audit import record_audit
from memory.management.base import OperatorCommand, find_account, require_keys, terminal_bar
from memory.management.exports import Output, open_output, refuse_to_replace
from memory.owner import Owner
from memory.services.transfer.export import export_archive
from memory.services.transfer.selection import TransferScope
from memory_project.encryption import SealBroken

EPILOG = """
The zip has a file of JSON Lines for each table, the keys of Redis, and a manifest with counts and digests:
conversations, turns, facts with all beliefs, entities, links, goals, strategies, tool uses, structured turns,
artifacts, contexts, pools, short-term memories, profiles, learnings, teams, ledgers, tombstones. It is plain text,
encrypted columns included: keep it safe. The same rows give the same bytes. A FILE that is
there already is refused; with --replace, it is replaced when the export is complete, and only then.

  manage.py export_archive --account workshop --output workshop.zip
  manage.py export_archive --account workshop --user ana --output ana.zip --include-vectors
  manage.py export_archive --account workshop --output - | ssh backup 'cat > workshop.zip'

Exit status: 0, 1 for an unknown account, an agent or user to which no row belongs, or a column that no key decrypts,
130 on Ctrl-C.
"""


class Sink:
    """A stream over an output. It cannot be read or moved in."""

    def __init__(self, output: Output) -> None:
        self._output, self.size_bytes = output, 0

    def write(self, data: bytes) -> int:
        self._output.write(bytes(data))
        self.size_bytes += len(data)
        return len(data)

    def restart(self) -> None:
        """Empty the output, which must be a file."""
        self._output.empty()
        self.size_bytes = 0

    def flush(self) -> None:
        """Do nothing: the command flushes at its end."""


class Command(OperatorCommand):
    help = "Export an account, or an agent or a user of it, to a zip that import_archive reads."
    epilog = EPILOG
    advice = "The export is not complete."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", metavar="NAME", default="default", help="its name (default: %(default)s)")
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument("--agent", metavar="ID", default="", help="only what belongs to this agent")
        scope.add_argument("--user", metavar="ID", default="", help="only what belongs to this user")
        parser.add_argument("--output", metavar="FILE", required=True, help="file, or - for standard output")
        parser.add_argument("--replace", action="store_true", help="replace a file that is there already")
        parser.add_argument("--include-vectors", action="store_true", help="embeddings as well; otherwise made anew")
        parser.add_argument("--json", action="store_true", help="figures on standard error as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        require_keys()
        if not options["replace"]:
            refuse_to_replace(options["output"])
        account = find_account(options["account"])
        scope = TransferScope(account_id=account.id, agent_id=options["agent"], user_id=options["user"])
        record_audit(Owner(account_id=account.id, actor="command"), operation="export", memory_type="account")
        started = time.monotonic()
        try:
            counts, size_bytes = self.run_export(scope, options)
        except SealBroken as err:
            raise CommandError(f"An encrypted column cannot be exported: {err}.") from err
        seconds = round(time.monotonic() - started, 1)
        if options["json"]:
            self.stderr.write(json.dumps({"rows": counts, "size_bytes": size_bytes, "seconds": seconds}))
            return
        self.stderr.write(f"{sum(counts.values())} rows, {size_bytes} bytes, {seconds} seconds")

    def run_export(self, scope: TransferScope, options: dict[str, Any]) -> tuple[dict[str, int], int]:
        with (
            open_output(options["output"], self.stdout) as output,
            terminal_bar("{task.fields[rows]} rows", total=lambda: 0, rows=0) as update,
        ):
            sink = Sink(output)
            counts = export_archive(
                scope,
                cast("IO[bytes]", sink),
                include_vectors=options["include_vectors"],
                restart=sink.restart if output.is_file else None,
                report=lambda counts: update(rows=sum(counts.values())),
            )
            if not any(counts.values()) and (scope.agent_id or scope.user_id):
                # raised before a file that is there already is replaced
                raise CommandError(f"No row belongs to this {'user' if scope.user_id else 'agent'}. Check the id.")
        return counts, sink.size_bytes
