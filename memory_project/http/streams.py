"""Bodies of any length: newline-delimited JSON, checked line by line before anything of it is stored.

The web server has the whole body, in a file, before a view sees it, so a slow client holds no thread and no lock. A
line ends with a line feed; the last one may lack it. Blank lines at the end are ignored, other blank lines are errors.
"""

import hashlib
import json
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from threading import BoundedSemaphore
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request

from memory_project.http.parsers import parse_json
from memory_project.http.problems import Problem, errors_by_field, summarize_errors

NDJSON = "application/x-ndjson"
ZIP = "application/zip"
READ_BYTES = 65_536
BATCH_BYTES = 8 * 1024**2
"""Size of the spooled lines held in memory together, apart from the last one."""
ENCODER = json.JSONEncoder(separators=(",", ":"))
STREAM_SLOTS = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""Streams that this process stores at the same time."""


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_stream_type(content_type: str) -> bool:
    """Return whether a Content-Type is that of a body of any length: newline-delimited JSON, or an archive."""
    return media_type(content_type) in (NDJSON, ZIP)


def is_ndjson_stream(environ: Mapping[str, Any]) -> bool:
    """Return whether the request has a body of newline-delimited JSON, if only an empty one."""
    return media_type(str(environ.get("CONTENT_TYPE", ""))) == NDJSON


def has_body_of(environ: Mapping[str, Any], wanted: str) -> bool:
    """Return whether the request has a body of this media type."""
    return media_type(str(environ.get("CONTENT_TYPE", ""))) == wanted and environ.get("CONTENT_LENGTH") not in (
        "",
        "0",
        None,
    )


@contextmanager
def spool_lines(request: Request, read: Callable[[Any], object]) -> Iterator[tuple[IO[bytes], str]]:
    """Yield a temporary file with what `read` made of each line of the request's body, and the SHA-256 of the lines.

    `read` takes the value of a line; what it returns is pickled, for `batch_spooled`. Raises a 400 problem with the
    line's number (from 1) for invalid JSON and for a ValidationError of `read`, 413 for a line over BODY_LIMIT_BYTES,
    503 while too many other streams are stored, and 507 for a full disk.
    """
    with stream_slot(), report_full_disk(), tempfile.TemporaryFile() as spool:
        digest = hashlib.sha256()
        lines = split_body_lines(read_body(request), limit_bytes=settings.BODY_LIMIT_BYTES)
        for number, line in enumerate(lines, 1):
            pickle.dump(read_line(number, line, read), spool, pickle.HIGHEST_PROTOCOL)
            digest.update(line + b"\n")
        spool.seek(0)
        yield spool, digest.hexdigest()


@contextmanager
def stream_slot() -> Iterator[None]:
    """Hold one of STREAM_SLOTS, or raise a 503 problem. A stream keeps its thread until all of it is stored."""
    if not STREAM_SLOTS.acquire(blocking=False):
        raise Problem(503, "too_many_streams", "Too many streams are being stored. Try again in a moment.")
    try:
        yield
    finally:
        STREAM_SLOTS.release()


def read_body(request: Request) -> Iterator[bytes]:
    while chunk := request.read(READ_BYTES):
        yield chunk


def split_body_lines(chunks: Iterable[bytes], *, limit_bytes: int) -> Iterator[bytes]:
    """Yield the lines without their line feeds. Leaves out blank lines at the end."""
    number, line, blank = 1, bytearray(), 0
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            line += part
            refuse_long_line(line, number, limit_bytes)
            if not line.strip():
                blank = blank or number
            else:
                refuse_blank_line(blank)
                yield bytes(line)
            line.clear()
            number += 1
        line += rest
        refuse_long_line(line, number, limit_bytes)
    if line.strip():
        refuse_blank_line(blank)
        yield bytes(line)


def refuse_long_line(line: bytearray, number: int, limit_bytes: int) -> None:
    if len(line) > limit_bytes:
        detail = f"Line {number} is too long: a line has at most {limit_bytes} bytes."
        raise Problem(413, "line_too_long", detail, line=number, limit_bytes=limit_bytes)


def refuse_blank_line(number: int) -> None:
    """Raise a 400 problem for the blank line of this number; 0 means that no line was blank."""
    if number:
        detail = f"Line {number} is blank. Blank lines are allowed at the end only."
        raise Problem(400, "invalid_line", detail, line=number)


def read_line(number: int, line: bytes, read: Callable[[Any], object]) -> object:
    try:
        return read(parse_json(line))
    except ParseError as err:
        detail = f"Line {number} cannot be read. {err.detail}".replace("The body", "It")
        raise Problem(400, "invalid_line", detail, line=number) from err
    except ValidationError as err:
        detail = f"Line {number}. {summarize_errors(err.detail)}"
        raise Problem(400, "invalid_line", detail, line=number, errors=errors_by_field(err.detail)) from err


def batch_spooled(spool: IO[bytes], *, max_lines: int) -> Iterator[list[Any]]:
    """Yield what was spooled in batches of at most `max_lines` lines, and little more than BATCH_BYTES bytes."""
    batch: list[Any] = []
    start = spool.tell()
    while spool.peek(1):  # type: ignore[attr-defined]
        batch.append(pickle.load(spool))  # noqa: S301  from a file that only this process can open
        if len(batch) == max_lines or spool.tell() - start > BATCH_BYTES:
            yield batch
            batch, start = [], spool.tell()
    if batch:
        yield batch


@contextmanager
def report_full_disk() -> Iterator[None]:
    """Raise a 507 problem where the disk has no room for temporary files."""
    try:
        yield
    except OSError as err:
        if err.errno not in (ENOSPC, EDQUOT):
            raise
        detail = "The server has no disk space for a body of this length now. Try again later."
        raise Problem(507, "no_space", detail) from err


def write_json_array(target: IO[bytes], name: str, elements: Iterable[Mapping[str, Any]]) -> int:
    """Write `{"<name>": [<elements>]}` one element at a time, then move `target` to its start. Return their number."""
    target.write(json.dumps({name: []}).encode()[:-2])
    count = 0
    for count, element in enumerate(elements, 1):
        target.write(b"," * (count > 1) + ENCODER.encode(element).encode())
    target.write(b"]}")
    target.seek(0)
    return count
