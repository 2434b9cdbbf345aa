"""Request bodies without a length: read up to the limit before Django sees them, since Django reads none of them."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from memory_project.http.paths import WSGIApplication


def accept_chunked_bodies(application: WSGIApplication, *, limit_bytes: int) -> WSGIApplication:
    """Wrap a WSGI application: a chunked body gets its length. One over the limit arrives as one byte too long."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if is_chunked(environ):
            body = environ["wsgi.input"].read(limit_bytes + 1)
            environ |= {"CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}
        return application(environ, start_response)

    return serve


def is_chunked(environ: dict[str, Any]) -> bool:
    return not environ.get("CONTENT_LENGTH") and "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
