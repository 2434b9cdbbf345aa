"""Archives of chats as their services send them: a .zip with conversations.json inside, or that file itself.

A conversations.json is one JSON list of any length. It is cut into its entries as it is read, so that memory holds
one of them at a time; what a zip unpacks to is counted while it does, whatever its table of contents claims.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from pydantic import ValidationError
from pydantic_core import from_json

from memory.extraction.imported import (
    MAX_CONVERSATION_BYTES,
    BadLine,
    ImportedConversation,
    Item,
    NothingSaid,
    reason_of,
)

MAX_ARCHIVE_BYTES = 4 * 1024**3
"""As much as an archive may unpack to."""
CHUNK_BYTES = 1024 * 1024
ZIP_MAGIC = b"PK\x03\x04"
NO_LIST = "the file is no JSON list of conversations"
GOES_ON = "the file goes on after its list"

# large archives of ChatGPT come as conversations-000.json, conversations-001.json, …
_DOCUMENT = re.compile(r"conversations(-[0-9]+)?\.json")
_STRING_TO_ITS_END = rb'[^"\\]*+(?:\\.[^"\\]*+)*+"'
_REST_OF_STRING = re.compile(_STRING_TO_ITS_END, re.DOTALL)
_TOKEN = re.compile(rb'(?:[^"\[\]{}]++|"' + _STRING_TO_ITS_END + rb')*+(["\[\]{}])', re.DOTALL)
_BETWEEN = b" \t\r\n,"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DAMAGE = (BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError, struct.error)


class DamagedArchive(ValueError):  # noqa: N818 - says what happened
    """An archive that cannot be read; the text is a sentence about the whole, without any of its contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """One conversation of an archive, parsed as JSON; `number` is its 1-based place."""

    number: int
    size_bytes: int
    value: Any


EntryReader = Callable[[ArchiveEntry], ImportedConversation | NothingSaid]


def read_archive(
    stream: BinaryIO,
    read_entry: EntryReader,
    *,
    max_bytes: int = MAX_ARCHIVE_BYTES,
    max_entry_bytes: int = MAX_CONVERSATION_BYTES,
) -> Iterator[Item]:
    """Every conversation of an archive; one that is bad, and where the archive itself ends too soon, as a BadLine.

    At most 4 GiB unpacked, at most 64 MiB an entry.
    """
    number, room = 0, Room(max_bytes)
    try:
        for document in open_documents(stream):
            for raw in split_array(bounded_chunks(document, room), max_bytes=max_entry_bytes):
                number += 1
                yield _read_raw(number, raw, read_entry, max_entry_bytes)
    except DamagedArchive as err:
        yield BadLine(number=number + 1, reason=str(err))
    except _DAMAGE as err:
        yield BadLine(number=number + 1, reason=f"the archive is damaged ({type(err).__name__})")


def _read_raw(number: int, raw: bytes, read_entry: EntryReader, max_bytes: int) -> Item:
    if len(raw) > max_bytes:
        return BadLine(number=number, reason=f"is longer than {max_bytes} bytes")
    try:
        value = from_json(raw, allow_inf_nan=False)
        return read_entry(ArchiveEntry(number=number, size_bytes=len(raw), value=value))
    except ValidationError as err:
        return BadLine(number=number, reason=reason_of(err))
    except ValueError as err:
        return BadLine(number=number, reason=str(err))


def open_documents(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Open the lists of conversations in a .zip, in order of their names; anything else is such a list itself."""
    if not (isinstance(stream, BufferedReader) and stream.peek(4).startswith(ZIP_MAGIC)):
        yield stream
        return
    if not stream.seekable():
        raise DamagedArchive("a .zip cannot be read from a pipe: name the file, or unpack it first")
    with ZipFile(stream) as archive:
        documents = sorted(filter(_is_document, archive.infolist()), key=lambda entry: entry.filename)
        if not documents:
            raise DamagedArchive("there is no conversations.json in the archive")
        for entry in documents:
            with archive.open(entry) as document:
                yield document  # type: ignore[misc]


def _is_document(entry: ZipInfo) -> bool:
    return _DOCUMENT.fullmatch(PurePosixPath(entry.filename).name) is not None


class Room:
    """The rest of a limit on everything that is read."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = self.left_bytes = max_bytes

    def take(self, size_bytes: int) -> None:
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise DamagedArchive(f"the archive unpacks to more than {self.max_bytes} bytes; the rest was not read")


def bounded_chunks(stream: BinaryIO, room: Room) -> Iterator[bytes]:
    """Yield the stream's contents piece by piece. Raises DamagedArchive beyond the limit."""
    while chunk := stream.read(CHUNK_BYTES):
        room.take(len(chunk))
        yield chunk


def split_array(chunks: Iterable[bytes], *, max_bytes: int) -> Iterator[bytes]:
    """Yield the elements of a JSON list of objects, each as its bytes, cut one byte above the limit.

    What stands between elements and is no object is yielded as an element too: parsing it will fail. Raises
    DamagedArchive for what is no list, or ends before its list does.
    """
    scanner = _Scanner(max_bytes)
    for chunk in chunks:
        yield from scanner.feed(chunk)
    scanner.finish()


class _Scanner:
    """A scanner for opening and closing brackets outside of strings, over chunks that may be cut anywhere."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.depth = 0
        self.is_over = False
        self.in_string = False
        self.escape = b""
        self.kept = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the elements that end in this chunk."""
        chunk = self.escape + chunk
        # a backslash at the end belongs to a character that is not here yet
        cut = len(chunk) - (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
        chunk, self.escape = chunk[:cut], chunk[cut:]
        start = at = 0
        if self.in_string:
            rest = _REST_OF_STRING.match(chunk)
            at, self.in_string = (rest.end(), False) if rest else (len(chunk), True)
        while token := _TOKEN.match(chunk, at):
            at = token.end()
            if token[1] == b'"':
                # a string is passed over whole: this one ends in a later chunk
                self.in_string = True
                break
            depth, self.depth = self.depth, self.depth + (1 if token[1] in b"[{" else -1)
            if depth + self.depth <= 3:
                end = at - 1 if depth == 1 else at
                yield from self.pass_boundary(depth, self.take(chunk[start:end]))
                start = end
        self.keep(chunk[start:])

    def pass_boundary(self, depth: int, piece: bytes) -> Iterator[bytes]:
        """Pass a bracket of the list, or an outer one of an element; `depth` is that before it, `piece` ends there."""
        if depth == 2:
            yield piece
        elif depth == 1:
            self.is_over = self.depth == 0
            if junk := piece.strip(_BETWEEN):
                yield junk
        elif self.is_over or piece.removeprefix(_BYTE_ORDER_MARK).strip() != b"[":
            raise DamagedArchive(GOES_ON if self.is_over else NO_LIST)

    def finish(self) -> None:
        if not self.is_over:
            raise DamagedArchive("the file ends in the middle of its list" if self.depth else NO_LIST)
        if bytes(self.kept).strip() != b"]":
            raise DamagedArchive(GOES_ON)

    def keep(self, part: bytes) -> None:
        self.kept += part[: max(self.max_bytes + 1 - len(self.kept), 0)]

    def take(self, part: bytes) -> bytes:
        self.keep(part)
        whole = bytes(self.kept)
        self.kept.clear()
        return whole
