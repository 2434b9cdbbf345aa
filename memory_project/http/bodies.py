"""Request bodies as they come from the server, made sound before Django sees them.

One without a length is read up to the limit, since Django reads none of those; one that ends before its length is an
error, since Django would take what came for the whole. Only newline-delimited JSON without a length is left where it
is: what knows how to read it (`streams`) does so line by line, and everybody else refuses it.
"""

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Any, Protocol

from gunicorn.http.errors import ParseException

from memory_project.http.paths import WSGIApplication

NDJSON = "application/x-ndjson"


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def readline(self, size: int, /) -> bytes: ...


class BodyCutShortError(OSError):
    """The client went away, or counted wrong. Django makes an UnreadablePostError of it."""


class WholeBody:
    """A body that is there up to its length. It is read through Django, which asks for no byte beyond."""

    def __init__(self, stream: Stream) -> None:
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
    """A body whose end is where its chunks end. It is read without Django, which wants a length."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        """Fewer bytes than `size` at its end only."""
        try:
            return self._stream.read(size)
        except (OSError, ParseException) as err:
            raise BodyCutShortError("the body ended early") from err

    # Django asks that there is one
    readline = read


class BrokenBody:
    """Stands for a body whose chunks ended early."""

    def read(self, _size: int, /) -> bytes:
        raise BodyCutShortError("the body ended early")

    readline = read


def accept_bodies(application: WSGIApplication, *, limit_bytes: int) -> WSGIApplication:
    """Wrap a WSGI application: every body has a length and is there, but chunked NDJSON.

    A chunked one over the limit is one byte more.
    """

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if is_chunked(environ) and is_stream(environ):
            environ["wsgi.input"] = ChunkedBody(environ["wsgi.input"])
        elif is_chunked(environ):
            environ |= read_chunks(environ["wsgi.input"], limit_bytes)
        else:
            environ["wsgi.input"] = WholeBody(environ["wsgi.input"])
        return application(environ, start_response)

    return serve


def read_chunks(stream: Stream, limit_bytes: int) -> dict[str, Any]:
    """What the environment says of this body."""
    try:
        body = stream.read(limit_bytes + 1)
    except (OSError, ParseException):
        # told where the body is read: by then it is known who asks
        return {"CONTENT_LENGTH": "1", "wsgi.input": BrokenBody()}
    return {"CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}


def is_stream(environ: Mapping[str, Any]) -> bool:
    """Whether there is a body of newline-delimited JSON."""
    media_type = str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()
    return media_type == NDJSON and (is_chunked(environ) or environ.get("CONTENT_LENGTH") not in ("", "0", None))


def is_chunked(environ: Mapping[str, Any]) -> bool:
    return not environ.get("CONTENT_LENGTH") and "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
