"""Writing an archive: a zip of JSON Lines with a manifest, in flat memory, the same bytes for the same rows.

A file of the archive is a table, its rows in the order of their ids, a line each: a JSON object whose members are the
columns in the order of their names. `redis.jsonl` has keys of Redis. `manifest.json`, the last file, has the number of
rows, the bytes and the SHA-256 of each other file. Nothing in an archive says when or where it was made.
"""

import hashlib
import json
import logging
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import IO, Any, cast
from uuid import UUID

import psycopg
from django.db import connections
from psycopg import sql

from ledger.journal import flush_everything
from memory.services.transfer.redis_lines import REDIS_FILE, redis_lines
from memory.services.transfer.rules import SHARED, TO_EMBED, ExportedTable, exported_tables
from memory.services.transfer.selection import Session, TransferScope, is_selected, refers_to_selected
from memory_project.encryption import unseal
from memory_project.postgresql.hangs import watched_connection
from memory_project.postgresql.replicas import PRIMARY, find_replica

logger = logging.getLogger(__name__)

FORMAT = "agent-memory-archive"
VERSION = 1
MANIFEST = "manifest.json"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip, so that the same rows are the same bytes."""
PAGE_ROWS = 500
REPORTED_ROWS = 1_000

Report = Callable[[dict[str, int]], None]
"""Called with the number of rows written so far, by table."""


@dataclass(slots=True)
class FileEntry:
    """A file of the archive, while it is written."""

    rows: int = 0
    bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "bytes": self.bytes, "sha256": self.digest.hexdigest()}


class ForwardStream:
    """A stream over another one that can only be written to: so a zip is the same bytes wherever it is written."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target

    def write(self, data: bytes) -> int:
        self._target.write(data)
        return len(data)

    def flush(self) -> None:
        """Flush the stream below."""
        self._target.flush()


def export_archive(
    scope: TransferScope,
    target: IO[bytes],
    *,
    include_vectors: bool = False,
    include_traces: bool = True,
    restart: Callable[[], None] | None = None,
    report: Report = lambda _counts: None,
) -> dict[str, int]:
    """Write the archive of a scope and return the number of rows by table. `target` need not be seekable.

    `include_traces`: with raw reasoning, which only a deep replay shows otherwise. `restart` empties the target: with
    it, rows are read from a replica that has all that was written before, and from the primary, from the beginning, if
    the replica cancels the reading or is gone.

    Needs a connection to PostgreSQL besides that of the process. Raises SealBroken for a column that no key opens,
    RedisError.
    """
    # changes of ledgers become rows before the rows are read
    flush_everything()
    write = partial(
        write_archive,
        scope,
        target,
        include_vectors=include_vectors,
        include_traces=include_traces,
        report=report,
    )
    replica = find_replica() if restart else None
    if restart and replica:
        try:
            return write(server=replica)
        except psycopg.Error as err:
            logger.warning("an export from %s begins again at the primary: %s", replica, type(err).__name__)
            restart()
    return write(server=PRIMARY)


def write_archive(
    scope: TransferScope,
    target: IO[bytes],
    *,
    server: str,
    include_vectors: bool,
    include_traces: bool,
    report: Report,
) -> dict[str, int]:
    """Write the archive from the rows of one server, as they are at one moment."""
    entries: dict[str, FileEntry] = {}
    with (
        open_snapshot(server) as session,
        zipfile.ZipFile(cast("IO[bytes]", ForwardStream(target)), "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        counts: dict[str, int] = {}
        models: list[str] = []
        for table in sorted(exported_tables().values(), key=lambda each: each.name):
            if table.name == "reasoning_traces" and not include_traces:
                continue
            if table.name == "memory_vectors":
                if not include_vectors:
                    continue
                models = embedding_models(session, scope)
            lines = table_lines(session, scope, table)
            entries[table.file] = write_file(archive, table.file, lines, lambda rows: report({**counts, "": rows}))
            counts[table.name] = entries[table.file].rows
        conversations = None if scope.is_whole else selected_conversations(session, scope)
        entries[REDIS_FILE] = write_file(archive, REDIS_FILE, redis_lines(scope, conversations), lambda _rows: None)
        counts["redis"] = entries[REDIS_FILE].rows
        write_manifest(archive, scope, entries, models)
    report(counts)
    return counts


def write_manifest(
    archive: zipfile.ZipFile, scope: TransferScope, entries: dict[str, FileEntry], models: list[str]
) -> None:
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "kind": scope.kind,
        "id": scope.name,
        "embedding_models": models,
        "files": {name: entry.to_dict() for name, entry in sorted(entries.items())},
    }
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    write_file(archive, MANIFEST, [text.encode()], lambda _rows: None)


def write_file(
    archive: zipfile.ZipFile, name: str, lines: Iterable[bytes], advance: Callable[[int], None]
) -> FileEntry:
    """Write a file of the archive line by line."""
    info, entry = zipfile.ZipInfo(name, ZIP_TIME), FileEntry()
    info.compress_type = zipfile.ZIP_DEFLATED
    # of a regular file that its owner may read
    info.external_attr = 0o100600 << 16
    with archive.open(info, "w", force_zip64=True) as stream:
        for line in lines:
            stream.write(line)
            entry.rows, entry.bytes = entry.rows + 1, entry.bytes + len(line)
            entry.digest.update(line)
            if entry.rows % REPORTED_ROWS == 0:
                advance(entry.rows)
    return entry


def table_lines(session: Session, scope: TransferScope, table: ExportedTable) -> Iterator[bytes]:
    """Yield the rows of a table in the order of their ids."""
    statement = sql.SQL("SELECT {} FROM {} t WHERE t.account_id = {} AND {} ORDER BY t.id").format(
        sql.SQL(", ").join(column_sql(scope, table, column) for column in table.columns),
        sql.Identifier(table.name),
        sql.Literal(scope.account_id),
        is_selected(table.name, scope),
    )
    sealed = set(table.sealed)
    with session.cursor(name=f"transfer_{table.name}") as cursor:
        cursor.itersize = PAGE_ROWS
        cursor.execute(statement)
        for values in cursor:
            row = dict(zip(table.columns, values, strict=True))
            for column in sealed:
                if row[column] is not None:
                    row[column] = json.loads(unseal(bytes(row[column])))
            yield format_line(row)


def column_sql(scope: TransferScope, table: ExportedTable, column: str) -> sql.Composable:
    """Return what a column of a line is in SQL. References to rows that are not selected are null."""
    if column == TO_EMBED:
        # the account as its value, as in all other conditions: a distributed database takes them for one machine then
        return sql.SQL(
            "t.embed_after IS NOT NULL OR EXISTS (SELECT FROM memory_vectors v WHERE v.account_id = {}"
            " AND v.memory_id = t.id)"
        ).format(sql.Literal(scope.account_id))
    name = sql.SQL("t.{}").format(sql.Identifier(column))
    references = {each.column: each for each in table.all_references}
    if scope.is_whole or column not in references or references[column].target in SHARED:
        return sql.SQL("{}::text").format(name) if column == "vector" else name
    return sql.SQL("CASE WHEN {} THEN {} END").format(refers_to_selected(references[column], scope, "t"), name)


def embedding_models(session: Session, scope: TransferScope) -> list[str]:
    """Return the models of the account's vectors."""
    rows = session.execute("SELECT DISTINCT model FROM memory_vectors WHERE account_id = %s", [scope.account_id])
    return sorted(row[0] for row in rows)


def selected_conversations(session: Session, scope: TransferScope) -> set[str]:
    """Return the client's ids of the conversations that were selected."""
    statement = sql.SQL("SELECT t.conversation_id FROM conversations t WHERE t.account_id = {} AND {}").format(
        sql.Literal(scope.account_id), is_selected("conversations", scope)
    )
    rows = session.execute(statement)
    return {row[0] for row in rows}


def format_line(row: dict[str, Any]) -> bytes:
    """Return a line. Members of JSON columns stay in the order in which they were sent or stored."""
    try:
        return dump(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair
        return dump(row, ensure_ascii=True).encode() + b"\n"


def dump(row: dict[str, Any], *, ensure_ascii: bool) -> str:
    return json.dumps(row, ensure_ascii=ensure_ascii, separators=(",", ":"), default=format_value, allow_nan=False)


def format_value(value: Any) -> str:
    """Return a value that JSON does not have as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a value of {type(value)} cannot be exported")


@contextmanager
def open_snapshot(alias: str = PRIMARY) -> Iterator["psycopg.Connection[Any]"]:
    """Open a transaction that reads at one moment, at the primary or at a replica, which both write nothing in it."""
    parameters = connections[alias].get_connection_params()
    for name in ("pool", "cursor_factory", "server_side_binding", "context"):
        parameters.pop(name, None)
    with watched_connection(alias).connect(**parameters) as session:
        session.isolation_level, session.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        session.execute("SET LOCAL statement_timeout = 0")
        session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        # cursors are read to their ends: what all rows take counts, not what the first ones do
        session.execute("SET LOCAL cursor_tuple_fraction = 1")
        yield session
