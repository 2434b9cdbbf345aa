"""Reading an archive: it is checked as a whole before anything of it is stored, in flat memory.

Checked are the zip, the manifest, digests and counts, the columns of each row and the shape of each value, the order of
ids, and that every reference leads to a row of the archive.
"""

import hashlib
import json
import mmap
import re
import tempfile
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any
from uuid import UUID

from memory.errors import Unprocessable
from memory.services.transfer.export import FORMAT, MANIFEST, VERSION
from memory.services.transfer.ledgers import TABLE as INJECTIONS
from memory.services.transfer.ledgers import check_stream_id, millisecond_of
from memory.services.transfer.redis_lines import REDIS_FILE, TYPES, check_shape
from memory.services.transfer.rules import ExportedTable, added_since, exported_tables
from memory.services.transfer.values import check_value
from memory_project.redis import session_user

MAX_MANIFEST_BYTES = 1024**2
MAX_LINE_BYTES = 64 * 1024**2
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of compression whose streams are read bit by bit: other ones inflate as a whole."""
UUID_BYTES = 16
CHECKED_LINES = 1_000
SURROGATE = re.compile("[\ud800-\udfff]")
PAIRED: dict[str, type | tuple[type, ...]] = {"hash": str, "zset": (int, float)}
"""Types of Redis whose values are pairs, and the types of the second part."""
REDIS_MEMBERS = {"expires_at", "key", "type", "value"}


class BadArchive(Unprocessable):
    """An archive that cannot be imported. Nothing of it was stored."""


class SortedIds(Sequence[bytes]):
    """Ids in ascending order in a temporary file, looked up without reading it into memory."""

    def __init__(self, stack: ExitStack) -> None:
        self._file: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        self._map: mmap.mmap | bytes = b""
        self._stack, self._count = stack, 0
        self.last = b""

    def append(self, row_id: UUID) -> bool:
        """Add an id and return True, unless it is not above the last one."""
        if row_id.bytes <= self.last:
            return False
        self._file.write(row_id.bytes)
        self.last, self._count = row_id.bytes, self._count + 1
        return True

    def finish(self) -> None:
        self._file.flush()
        if self._count:
            self._map = self._stack.enter_context(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        return self._map[place * UUID_BYTES : (place + 1) * UUID_BYTES]

    def __contains__(self, row_id: object) -> bool:
        if not isinstance(row_id, UUID) or not self._count:
            return False
        place = bisect_left(self, row_id.bytes)
        return place < self._count and self[place] == row_id.bytes

    def pages(self, size: int) -> Iterator[list[UUID]]:
        """Yield all ids, `size` at a time."""
        for start in range(0, self._count, size):
            data = self._map[start * UUID_BYTES : (start + size) * UUID_BYTES]
            yield [UUID(bytes=bytes(data[at : at + UUID_BYTES])) for at in range(0, len(data), UUID_BYTES)]


@dataclass(slots=True)
class Archive:
    """An archive that was checked. `ids` has the ids of its rows by table."""

    zip: zipfile.ZipFile
    manifest: dict[str, Any]
    now: datetime
    ids: dict[str, SortedIds] = field(default_factory=dict)
    advance: Callable[[], None] = lambda: None
    """Called after every CHECKED_LINES lines that were checked."""
    user_ids: set[str] = field(default_factory=set)
    """Users that its rows belong to."""
    latest_change: int = 0
    """The millisecond of the latest change in its journal of injections."""

    @property
    def counts(self) -> dict[str, int]:
        return {name.removesuffix(".jsonl"): entry["rows"] for name, entry in self.manifest["files"].items()}

    @property
    def tables(self) -> list[ExportedTable]:
        """The tables that it has, each after those that its rows refer to."""
        return [table for table in exported_tables().values() if table.file in self.manifest["files"]]

    @property
    def version(self) -> int:
        return int(self.manifest["version"])

    def has_id(self, row_id: UUID) -> bool:
        return any(row_id in ids for ids in self.ids.values())

    def sized_rows(self, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the rows of a file with the lengths of their lines in bytes."""
        added = added_since(self.version, file.removesuffix(".jsonl"))
        with self.zip.open(file) as stream:
            for line in stream:
                yield len(line), json.loads(line) | added


@contextmanager
def open_archive(source: IO[bytes], *, now: datetime, advance: Callable[[], None] = lambda: None) -> Iterator[Archive]:
    """Check an archive as a whole and yield it. `source` must be seekable. Raises BadArchive.

    The ids of its rows are in temporary files: 16 bytes a row.
    """
    with ExitStack() as stack:
        try:
            archive = Archive(stack.enter_context(zipfile.ZipFile(source)), {}, advance=advance, now=now)
            archive.manifest = read_manifest(archive.zip)
            waiting: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            for table in archive.tables:
                archive.ids[table.name] = SortedIds(stack)
                check_table(archive, table, waiting)
                archive.ids[table.name].finish()
            check_waiting(archive, waiting)
            check_redis(archive)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError) as err:
            raise BadArchive("this is no complete zip: it was altered or cut off, so nothing was imported") from err
        except (ValueError, OSError, RuntimeError) as err:
            # of names and places in the zip, or of a file in it that is encrypted
            raise BadArchive("the zip cannot be read: it was altered, so nothing was imported") from err
        yield archive


def read_manifest_bytes(archive: zipfile.ZipFile) -> bytes:
    """Return the manifest as it is, up to MAX_MANIFEST_BYTES: what the zip says of its size may be wrong."""
    with archive.open(MANIFEST) as stream:
        return stream.read(MAX_MANIFEST_BYTES)


def read_manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the manifest. Raises BadArchive unless it is of this format, not newer, and names the files that exist."""
    names = archive.namelist()
    if MANIFEST not in names or any(each.compress_type not in METHODS for each in archive.infolist()):
        raise BadArchive(f"the zip has no {MANIFEST}, or is compressed otherwise: it is no archive of this service")
    try:
        manifest = json.loads(read_manifest_bytes(archive))
        is_ours, version, files = manifest["format"] == FORMAT, int(manifest["version"]), manifest["files"] | {}
        for entry in files.values():
            entry["sha256"], int(entry["rows"]), int(entry["bytes"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as err:
        raise BadArchive(f"{MANIFEST} cannot be read: it was altered") from err
    if not is_ours:
        raise BadArchive(f"{MANIFEST} is not of the format {FORMAT}")
    if version > VERSION:
        raise BadArchive(f"the archive has version {version} of the format; this service reads up to {VERSION}")
    known = {table.file for table in exported_tables().values()} | {REDIS_FILE}
    if unknown := sorted(files.keys() - known):
        raise BadArchive(f"{MANIFEST} names {unknown[0]}, which this service does not know")
    if len(set(names)) < len(names) or set(names) != files.keys() | {MANIFEST}:
        missing = sorted(files.keys() - set(names))
        raise BadArchive(f"the zip lacks {missing[0]}" if missing else "the zip has files that the manifest does not")
    return dict(manifest)


def read_lines(archive: Archive, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the values of a file with their line numbers, and check its count, length and digest at its end."""
    entry, digest, number, size = archive.manifest["files"][file], hashlib.sha256(), 0, 0
    with archive.zip.open(file) as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number, size = number + 1, size + len(line)
            digest.update(line)
            if number % CHECKED_LINES == 0:
                archive.advance()
            if len(line) > MAX_LINE_BYTES:
                raise BadArchive(f"{file}, line {number}: the line is longer than {MAX_LINE_BYTES} bytes")
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as err:
                raise BadArchive(f"{file}, line {number}: it is no JSON") from err
            if not isinstance(value, dict):
                raise BadArchive(f"{file}, line {number}: it is no object")
            yield number, value
    if (number, size, digest.hexdigest()) != (entry["rows"], entry["bytes"], entry["sha256"]):
        raise BadArchive(f"{file} is not what the manifest says: it was altered or cut off")


def check_table(archive: Archive, table: ExportedTable, waiting: IO[bytes]) -> None:
    """Check the rows of a table. References to rows of later tables are noted in `waiting`."""
    fields = {str(each.column): each for each in table.fields}
    added, ids = added_since(archive.version, table.name), archive.ids[table.name]
    columns = set(table.columns) - added.keys()
    for number, row in read_lines(archive, table.file):
        place = f"{table.file}, line {number}"
        if row.keys() != columns:
            odd = sorted(row.keys() ^ columns)[0]
            raise BadArchive(f"{place}: {odd!r} is {'missing' if odd in columns else 'not known'}")
        row |= added
        for name, each in fields.items():
            if problem := check_value(each, row[name]):
                raise BadArchive(f"{place}: {name} {problem}")
        if table.name == INJECTIONS:
            if problem := check_stream_id(row["stream_id"], now=archive.now):
                raise BadArchive(f"{place}: stream_id {problem}")
            archive.latest_change = max(archive.latest_change, int(millisecond_of(row["stream_id"])))
        if not ids.append(UUID(row["id"])):
            raise BadArchive(f"{place}: the ids are not in ascending order")
        check_references(archive, table, row, place)
        waiting.writelines(late_entries(table, row, number))
        if table.is_of_users and row["user_id"]:
            archive.user_ids.add(row["user_id"])


def check_references(archive: Archive, table: ExportedTable, row: dict[str, Any], place: str) -> None:
    """Check that the references of a row lead to rows of the archive, unless they lead ahead."""
    for each in table.references:
        value = row[each.column]
        if value is not None and not (each.target in archive.ids and UUID(value) in archive.ids[each.target]):
            raise BadArchive(f"{place}: {each.column} leads to no row of {each.target} in the archive")


def late_entries(table: ExportedTable, row: dict[str, Any], number: int) -> Iterator[bytes]:
    """Yield the references of a row that lead ahead: both tables, the line, and the id."""
    order = list(exported_tables())
    for each in table.late_references:
        if row[each.column] is not None:
            where = bytes([order.index(table.name), order.index(each.target)])
            yield where + number.to_bytes(8, "big") + UUID(row[each.column]).bytes


def check_waiting(archive: Archive, waiting: IO[bytes]) -> None:
    """Check the references that led ahead."""
    waiting.seek(0)
    order = list(exported_tables())
    while entry := waiting.read(2 + 8 + UUID_BYTES):
        source, target, row_id = order[entry[0]], order[entry[1]], UUID(bytes=entry[10:])
        if row_id not in archive.ids.get(target, ()):
            line = int.from_bytes(entry[2:10], "big")
            raise BadArchive(f"{source}.jsonl, line {line}: it refers to a row of {target} that is not in the archive")


def check_redis(archive: Archive) -> None:
    if REDIS_FILE not in archive.manifest["files"]:
        return
    for number, line in read_lines(archive, REDIS_FILE):
        kinds = {"hash": list, "list": list, "set": list, "zset": list, "string": str}
        is_line = line.keys() == REDIS_MEMBERS and line["type"] in TYPES and isinstance(line["key"], str)
        if not is_line or not isinstance(line["expires_at"], int) or not isinstance(line["value"], kinds[line["type"]]):
            raise BadArchive(f"{REDIS_FILE}, line {number}: it is no key of Redis")
        if problem := check_elements(line):
            raise BadArchive(f"{REDIS_FILE}, line {number}: {problem}")
        if user_id := session_user(line["key"]):
            archive.user_ids.add(user_id)


def check_elements(line: dict[str, Any]) -> str:
    """Return what is wrong with the key and the parts of its value; "" if nothing is."""
    kind, value = line["type"], line["value"]
    texts = [line["key"], *([value] if kind == "string" else [])]
    if kind in PAIRED:
        if not all(isinstance(each, list) and len(each) == 2 for each in value):
            return "its value is not made of pairs"
        if not all(isinstance(second, PAIRED[kind]) for _, second in value):
            return "a pair has a second part of another type"
        texts += [part for pair in value for part in (pair if kind == "hash" else pair[:1])]
    elif kind != "string":
        texts += value
    if not all(isinstance(text, str) for text in texts):
        return "it has a part that is no text"
    if any(map(SURROGATE.search, texts)):
        return "it has a text that UTF-8 lacks"
    return check_shape(line["key"], kind, value)
