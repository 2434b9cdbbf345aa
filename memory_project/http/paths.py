"""Paths with ids of any characters: a slash inside an id is never the slash between two segments.

WSGI passes the path already decoded, where the two look alike. The raw request target still distinguishes them: it is
decoded here except for the escapes `%2F` and `%25`, which the URL converter `id` decodes after the path is split.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from urllib.parse import quote, unquote_to_bytes, urlsplit

from django.core.exceptions import BadRequest

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

MAX_ID_CHARACTERS = 100
MAX_KEY_CHARACTERS = 200
KEPT_ESCAPES = re.compile(rb"%(?=2[fF5])")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
API_PREFIX = "/api/"


def is_below_api(path: str) -> bool:
    """Return whether answers to this path are for programs."""
    return f"{path}/".startswith(API_PREFIX)


class InvalidId(BadRequest):
    """An id in the path that no row can have."""


def decode_path_info(raw_path: str) -> str:
    """Return the PATH_INFO of a raw path with both escapes kept. Drops one trailing slash below the API prefix."""
    protected = KEPT_ESCAPES.sub(b"%25", raw_path.encode("latin-1", "replace"))
    # an escape of an escape: `%2F` arrives as `%252F` and leaves as `%2F`, in the upper case that the converter expects
    path = re.sub(r"%2f", "%2F", unquote_to_bytes(protected).decode("latin-1"))
    if path.startswith(API_PREFIX) and path.endswith("/"):
        return path[:-1]
    return path


def read_raw_path(environ: dict[str, Any]) -> str:
    """Return the path as the client sent it, from the server's REQUEST_URI; without one, PATH_INFO encoded again."""
    raw: str | None = environ.get("REQUEST_URI")
    if raw is None:
        return quote(environ.get("PATH_INFO", "").encode("latin-1"), safe="/")
    # HTTP allows an absolute target; one that starts with two slashes is nevertheless a path
    target = raw if raw.startswith("/") else urlsplit(raw).path
    return target.split("?", 1)[0].split("#", 1)[0]


def keep_encoded_slashes(application: WSGIApplication) -> WSGIApplication:
    """Wrap a WSGI application so that it receives paths as `decode_path_info` returns them."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ["PATH_INFO"] = decode_path_info(read_raw_path(environ))
        return application(environ, start_response)

    return serve


def quote_path(path: str) -> str:
    """Return the URL path of a request's `path` (escapes kept), so that `decode_path_info` reads it back."""
    return quote(path, safe="/%:@!$&'()*+,;=~")


class ExternalIdConverter:
    """One path segment as an id chosen by the client: 1 to 100 characters, no control characters."""

    regex = "[^/]+"
    noun: ClassVar[str] = "an id"
    max_characters: ClassVar[int] = MAX_ID_CHARACTERS

    def to_python(self, value: str) -> str:
        if re.search(r"%(?!2F|25)", value):
            raise InvalidId(f"The path holds {self.noun} that is not valid UTF-8.")
        text = value.replace("%2F", "/").replace("%25", "%")
        if len(text) > self.max_characters or CONTROL.search(text):
            raise InvalidId(
                f"The path holds {self.noun} that is too long or has control characters. Allowed: 1 to "
                f"{self.max_characters} characters without control characters."
            )
        return text

    def to_url(self, value: str) -> str:
        return value.replace("%", "%25").replace("/", "%2F")


class KeyConverter(ExternalIdConverter):
    """One path segment as the key of a value: like an id, with 1 to 200 characters."""

    noun = "a key"
    max_characters = MAX_KEY_CHARACTERS
