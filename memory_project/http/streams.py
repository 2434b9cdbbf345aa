"""Bodies of any length: newline-delimited JSON, checked line by line as it comes and kept in a file meanwhile.

Nothing is stored before the last line is there: whoever sends takes the time it takes, and no lock waits for a client.
A line ends with a line feed; the last one may do without, and blank lines after it mean nothing. Others are mistakes.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from threading import BoundedSemaphore
from typing import IO, Any

from django.conf import settings
from django.http import UnreadablePostError
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request

from memory_project.http.bodies import BodyCutShortError, is_chunked
from memory_project.http.parsers import parse_json
from memory_project.http.problems import Problem, errors_by_field, summarize_errors

PIECE_BYTES = 65_536
BATCH_BYTES = 8 * 1024**2
"""Lines that are held in memory at once, unless one alone is longer."""
SLOTS = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""Of this process."""


@contextmanager
def spooled_lines(request: Request, check: Callable[[Any], object]) -> Iterator[IO[bytes]]:
    """The lines of the request's body in a temporary file, once all are there and `check` has let each pass.

    `check` takes a line's value. Raises a 400 problem with the line's number (from 1) for what is no JSON and for its
    ValidationError, 413 for a line over BODY_LIMIT_BYTES, 503 while too many others are read, UnreadablePostError for a
    body that ends too early.
    """
    patient(request)
    with one_of_few(), disk_space(), tempfile.TemporaryFile() as spool:
        for number, line in enumerate(lines_of(pieces_of(request), limit_bytes=settings.BODY_LIMIT_BYTES), 1):
            check_line(number, line, check)
            spool.write(line + b"\n")
        spool.seek(0)
        yield spool


@contextmanager
def one_of_few() -> Iterator[None]:
    """A stream keeps a thread for as long as its client likes: half of the threads stay for everybody else."""
    if not SLOTS.acquire(blocking=False):
        raise Problem(503, "too_many_streams", "Too many streams are being read; try again in a moment.")
    try:
        yield
    finally:
        SLOTS.release()


def patient(request: Request) -> None:
    """From here on the client has CLIENT_TIMEOUT_SECONDS for each pause instead of the whole (see `web_worker`)."""
    wire = request.META.get("gunicorn.socket")
    if wire is not None:
        wire.settimeout(settings.CLIENT_TIMEOUT_SECONDS)


def pieces_of(request: Request) -> Iterator[bytes]:
    """The body as it comes. Raises UnreadablePostError, as Django does."""
    # Django reads no body without a length
    source = request.META["wsgi.input"] if is_chunked(request.META) else request
    try:
        while piece := source.read(PIECE_BYTES):
            yield piece
    except BodyCutShortError as err:
        raise UnreadablePostError(*err.args) from err


def lines_of(pieces: Iterable[bytes], *, limit_bytes: int) -> Iterator[bytes]:
    """The lines without their ends; blank ones at the end are left out."""
    number, line, blank = 1, bytearray(), 0
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for part in whole:
            line += part
            refuse_long(line, number, limit_bytes)
            if not line.strip():
                blank = blank or number
            else:
                refuse_blank(blank)
                yield bytes(line)
            line.clear()
            number += 1
        line += rest
        refuse_long(line, number, limit_bytes)
    if line.strip():
        refuse_blank(blank)
        yield bytes(line)


def refuse_long(line: bytearray, number: int, limit_bytes: int) -> None:
    if len(line) > limit_bytes:
        detail = f"Line {number} is too long: a line has at most {limit_bytes} bytes."
        raise Problem(413, "line_too_long", detail, line=number, limit_bytes=limit_bytes)


def refuse_blank(number: int) -> None:
    """`number` is 0 where no line was blank."""
    if number:
        raise Problem(400, "invalid_line", f"Line {number} is blank, and others follow.", line=number)


def check_line(number: int, line: bytes, check: Callable[[Any], object]) -> None:
    try:
        check(parse_json(line))
    except ParseError as err:
        detail = f"Line {number} cannot be read. {err.detail}".replace("The body", "It")
        raise Problem(400, "invalid_line", detail, line=number) from err
    except ValidationError as err:
        detail = f"Line {number}. {summarize_errors(err.detail)}"
        raise Problem(400, "invalid_line", detail, line=number, errors=errors_by_field(err.detail)) from err


def batches_of(spool: Iterable[bytes], *, most: int) -> Iterator[list[Any]]:
    """The values of spooled lines, at most so many at once and no more than fit into BATCH_BYTES."""
    batch: list[Any] = []
    size_bytes = 0
    for line in spool:
        if batch and (len(batch) == most or size_bytes + len(line) > BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(json.loads(line))
        size_bytes += len(line)
    if batch:
        yield batch


@contextmanager
def disk_space() -> Iterator[None]:
    """Raises a 503 problem where there is none left for temporary files."""
    try:
        yield
    except OSError as err:
        if err.errno not in (ENOSPC, EDQUOT):
            raise
        raise Problem(503, "no_space", "There is no room for a body of this length now.") from err


def write_array(target: IO[bytes], name: str, elements: Iterable[Mapping[str, Any]]) -> None:
    """Write `{"<name>": [<elements>]}`, one by one; afterwards `target` is at its start."""
    target.write(json.dumps({name: []}).encode()[:-2])
    for position, element in enumerate(elements):
        target.write(b"," * bool(position) + json.dumps(element, separators=(",", ":")).encode())
    target.write(b"]}")
    target.seek(0)
