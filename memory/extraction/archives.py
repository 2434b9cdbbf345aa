"""Archives of chats as chat services export them: a .zip with conversations.json inside, or that file itself.

A conversations.json is one JSON list of any length. It is split into its entries while it is read, so that only one
entry at a time is in memory. The bytes that a .zip unpacks to are counted on the way, whatever its directory claims.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from pydantic_core import from_json

from memory.extraction.imported import (
    MAX_CONVERSATION_BYTES,
    MAX_TITLE_CHARACTERS,
    BadLine,
    ImportedConversation,
    ImportedMessage,
    Item,
    NothingSaid,
    reason_of,
    refuse_repeated_ids,
)
from memory.owner import Owner

MAX_ARCHIVE_BYTES = 4 * 1024**3
"""Bytes that an archive may unpack to."""
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
    """An archive that cannot be read. The message is about the archive as a whole and quotes none of its contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """One conversation of an archive, parsed as JSON. `number` is its position in the archive, from 1."""

    number: int
    size_bytes: int
    value: Any


EntryReader = Callable[[ArchiveEntry], ImportedConversation | NothingSaid]


def import_chat(
    entry: ArchiveEntry, owner: Owner, *, conversation_id: str, title: str | None, messages: tuple[ImportedMessage, ...]
) -> ImportedConversation | NothingSaid:
    """Return a chat of an archive as a conversation of this owner. Raises ValueError if messages share an id."""
    if not messages:
        return NothingSaid(number=entry.number)
    refuse_repeated_ids(messages)
    return ImportedConversation(
        number=entry.number,
        size_bytes=entry.size_bytes,
        conversation_id=conversation_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        title=(title or "")[:MAX_TITLE_CHARACTERS],
        messages=messages,
    )


def read_archive(
    stream: BinaryIO,
    read_entry: EntryReader,
    *,
    max_bytes: int = MAX_ARCHIVE_BYTES,
    max_entry_bytes: int = MAX_CONVERSATION_BYTES,
) -> Iterator[Item]:
    """Yield every conversation of an archive, and a BadLine for each that cannot be read or if the archive is damaged.

    An archive may have 4 GiB unpacked, and each entry 64 MiB.
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
    except ValueError as err:
        return BadLine(number=number, reason=reason_of(err))


def open_documents(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield the conversations.json files of a .zip in the order of their names. Any other file is yielded itself."""
    if not (isinstance(stream, BufferedReader) and stream.peek(4).startswith(ZIP_MAGIC)):
        yield stream
        return
    if not stream.seekable():
        raise DamagedArchive("a .zip cannot be read from a pipe: name the file, or unpack it first")
    with ZipFile(stream) as archive:
        documents = [entry for entry in archive.infolist() if _DOCUMENT.fullmatch(PurePosixPath(entry.filename).name)]
        if not documents:
            raise DamagedArchive("there is no conversations.json in the archive")
        for entry in sorted(documents, key=lambda entry: entry.filename):
            with archive.open(entry) as document:
                yield document  # type: ignore[misc]


class Room:
    """A limit on all bytes that are read from an archive, and the number of bytes left."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = self.left_bytes = max_bytes

    def take(self, size_bytes: int) -> None:
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise DamagedArchive(f"the archive unpacks to more than {self.max_bytes} bytes; the rest was not read")


def bounded_chunks(stream: BinaryIO, room: Room) -> Iterator[bytes]:
    """Yield the contents of the stream in chunks. Raises DamagedArchive beyond the limit."""
    while chunk := stream.read(CHUNK_BYTES):
        room.take(len(chunk))
        yield chunk


def split_array(chunks: Iterable[bytes], *, max_bytes: int) -> Iterator[bytes]:
    """Yield the elements of a JSON list of objects as bytes. An element longer than the limit is cut one byte above it.

    Anything between the elements that is not an object is yielded as an element too, and parsing it will fail. Raises
    DamagedArchive if the text is not a list or ends before its list does.
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
        """Handle a bracket of the list or an outermost bracket of an element, and yield the element that ends there.

        `depth` is the depth before the bracket. `piece` is the text up to it.
        """
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
