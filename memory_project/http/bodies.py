"""Request bodies from the WSGI server, checked for completeness before Django reads them.

A chunked body is read up to the size limit and given a length, because Django reads no body without one. A body that
ends before its declared length is an error, because Django would take the part for the whole. The exception is chunked
newline-delimited JSON: `streams` reads it line by line, and views that take no stream refuse it.
"""

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Any, Protocol

from gunicorn.http.errors import ParseException

from memory_project.http.paths import WSGIApplication

NDJSON = "application/x-ndjson"


class ByteStream(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def readline(self, size: int, /) -> bytes: ...


class BodyCutShortError(OSError):
    """The client disconnected, or sent fewer bytes than it declared. Django turns it into an UnreadablePostError."""


class SizedBody:
    """A body with a declared length. Django reads it and never asks for bytes beyond that length."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        try:
            data = self._stream.read(size)
        except OSError as err:
            raise BodyCutShortError(str(err)) from err
        if len(data) < size:
            raise BodyCutShortError("the body ended early")
        return data

    def readline(self, size: int, /) -> bytes:
        line = self._stream.readline(size)
        if size and not line:
            raise BodyCutShortError("the body ended early")
        return line


class ChunkedBody:
    """A body that ends with its last chunk. It is read without Django, which requires a length."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, or fewer at the end of the body only."""
        try:
            return self._stream.read(size)
        except (OSError, ParseException) as err:
            raise BodyCutShortError("the body ended early") from err

    # Django requires the method to exist
    readline = read


def normalize_bodies(application: WSGIApplication, *, limit_bytes: int) -> WSGIApplication:
    """Wrap a WSGI application so that every body but chunked NDJSON is complete and has a length.

    A chunked body over the limit gets a length of `limit_bytes + 1`, which the size check of the view refuses.
    """

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if is_chunked(environ) and is_ndjson_stream(environ):
            environ["wsgi.input"] = ChunkedBody(environ["wsgi.input"])
        elif is_chunked(environ):
            environ |= read_chunked_body(environ["wsgi.input"], limit_bytes)
        else:
            environ["wsgi.input"] = SizedBody(environ["wsgi.input"])
        return application(environ, start_response)

    return serve


def read_chunked_body(stream: ByteStream, limit_bytes: int) -> dict[str, Any]:
    """Read a chunked body and return the WSGI variables that describe it."""
    try:
        body = stream.read(limit_bytes + 1)
    except (OSError, ParseException):
        # the error is raised when a view reads the body: by then the caller is authenticated
        return {"CONTENT_LENGTH": "1", "wsgi.input": SizedBody(BytesIO())}
    return {"CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}


def is_ndjson_stream(environ: Mapping[str, Any]) -> bool:
    """Return whether the request has a body of newline-delimited JSON."""
    media_type = str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()
    return media_type == NDJSON and (is_chunked(environ) or environ.get("CONTENT_LENGTH") not in ("", "0", None))


def is_chunked(environ: Mapping[str, Any]) -> bool:
    return not environ.get("CONTENT_LENGTH") and "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
