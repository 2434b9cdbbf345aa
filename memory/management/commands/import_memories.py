"""`manage.py import_memories`: memories out of the export of another memory service."""

import json
import struct
import zlib
from argparse import ArgumentParser
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from memory.extraction.archives import ZIP_MAGIC
from memory.extraction.foreign_memories import READERS, read_export
from memory.management.base import OperatorCommand, find_account
from memory.management.imports import add_import_arguments, open_source
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddingBudget
from memory.services.foreign_imports import ForeignCounts, import_foreign_memories

MAX_BYTES = 1024 * 1024 * 1024
TOO_LARGE = f"The file has more than {MAX_BYTES} bytes. Divide it."
DAMAGE = (BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError, RecursionError, struct.error)
ACTOR = "command:import_memories"

EPILOG = """
Run it with --dry-run first: it reads the file, stores everything, and takes it back. A record is known by its id in the
other service, so run the same command again to resume; what was deleted here since then comes back.

sources (JSON, or JSON Lines with one record a line):
  mem0       what get_all returns in Python, in TypeScript or from its platform: {"results": [{"id", "memory",
             "user_id", "agent_id", "run_id", "metadata", "categories", "created_at", "expiration_date"}]}, or points of
             the vector store, {"id", "payload": {"data", "user_id", …}}, also in Qdrant's "result": notes
  langgraph  items of a store, {"namespace", "key", "value"}, or rows of the table `store` of its PostgresStore or
             SqliteStore, {"prefix", "key", "value", "expires_at", "ttl_minutes"}: items of the persistent context
             `langgraph`, whose times to live start anew
  zep        {"user_id", "edges": [{"uuid", "fact", "name", "valid_at", "invalid_at", "expired_at", "created_at"}],
             "nodes": [{"uuid", "name", "summary", "labels"}], "communities", "observations", "thread_summaries"}, or a
             list of Graphiti's edges and nodes, or Neo4j's export of them: facts with their validity, and notes;
             "group_id" is the user where none is named
  letta      an agent file (.af): its memory blocks; or a list of blocks, {"id", "label", "value"}, or of archival
             passages, {"id", "text", "tags", "created_at"}: notes
  hindsight  the .zip that it exports of documents or of a bank; or {"bank_id", "items": [{"id", "text", "fact_type",
             "context", "metadata", "tags", "occurred_start", "mentioned_at"}]}: notes

Messages are left out and counted: import_conversations takes those.

  manage.py import_memories mem0.json --from mem0 --account home --dry-run
  psql -Atc 'SELECT row_to_json(store) FROM store' | manage.py import_memories - --from langgraph --agent assistant
  sqlite3 -json s.db 'SELECT prefix, key, CAST(value AS TEXT) AS value, expires_at, ttl_minutes FROM store' > items.json
  psql -Atc "SELECT json_build_object('id', id, 'payload', payload) FROM mem0" | manage.py import_memories - --from mem0
  manage.py import_memories bank.zip --from hindsight --dry-run
"""


class Command(OperatorCommand):
    help = "Import memories from the export of mem0, LangGraph, Zep, Letta or Hindsight."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="or - for standard input")
        parser.add_argument("--from", dest="source", choices=sorted(READERS), required=True, help="the other service")
        parser.add_argument("--account", default="default", help="name of the account (default: %(default)s)")
        parser.add_argument("--agent", help="agent of what names none (default: the name of the source)")
        parser.add_argument("--user", default="", help="user of what names none")
        add_import_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        account = find_account(options["account"])
        agent_id = options["agent"] or options["source"]
        owner = Owner(account_id=account.id, agent_id=agent_id, user_id=options["user"], actor=ACTOR)
        document = read_document(options["file"])
        try:
            counts = self.run_import(owner, document, options)
        except ValueError as err:
            raise CommandError(str(err)) from err
        self.report(counts, options)

    def run_import(self, owner: Owner, document: Any, options: dict[str, Any]) -> ForeignCounts:
        source, now = options["source"], timezone.now()
        records = read_export(source, document)
        if not options["dry_run"]:
            budget = EmbeddingBudget(options["embed_seconds"])
            return import_foreign_memories(owner, source, records, now=now, budget=budget)
        with transaction.atomic():
            counts = import_foreign_memories(owner, source, records, now=now, budget=EmbeddingBudget(0))
            transaction.set_rollback(True)
        return counts

    def report(self, counts: ForeignCounts, options: dict[str, Any]) -> None:
        if options["json"]:
            figures = {"imported": dict(counts.imported), "already_there": counts.already_there}
            self.stdout.write(json.dumps({**figures, "left_out": dict(counts.left_out), "dry_run": options["dry_run"]}))
            return
        done = "would be imported" if options["dry_run"] else "imported"
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.imported.items())) or "nothing"
        self.stdout.write(f"{done}: {kinds}; already there: {counts.already_there}")
        for reason, number in counts.left_out.most_common():
            self.stdout.write(f"left out: {number}: {reason}")


def read_document(path: Path) -> Any:
    """Return the JSON of a file, a list of its lines, or the files of an archive by name. Raises CommandError."""
    with open_source(path) as stream:
        read = stream.read(MAX_BYTES + 1)
    if len(read) > MAX_BYTES:
        raise CommandError(TOO_LARGE)
    if read.startswith(ZIP_MAGIC):
        return read_archive(path, read)
    try:
        try:
            return json.loads(read)
        except json.JSONDecodeError:
            return [json.loads(line) for line in read.splitlines() if line.strip()]
    except (ValueError, RecursionError) as err:
        raise CommandError(f"{path} is neither JSON nor JSON Lines.") from err


def read_archive(path: Path, packed: bytes) -> dict[str, Any]:
    """Return the JSON of each file of a .zip by its name. Bytes are counted as they unpack. Raises CommandError."""
    files, left = {}, MAX_BYTES
    try:
        with ZipFile(BytesIO(packed)) as archive:
            for name in archive.namelist():
                if not name.endswith(".json"):
                    continue
                with archive.open(name) as stream:
                    read = stream.read(left + 1)
                left -= len(read)
                if left < 0:
                    raise CommandError(TOO_LARGE)
                files[name] = json.loads(read)
    except DAMAGE as err:
        raise CommandError(f"{path} is a damaged archive.") from err
    return files
