"""Paths whose ids may hold any character: a slash inside an id is never the slash between two segments.

WSGI hands the path over decoded, where the two look alike. The raw request target does not: it is decoded here except
for the two escapes `%2F` and `%25`, which the URL converter `id` decodes once the segments are apart.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from urllib.parse import quote, unquote_to_bytes, urlsplit

from django.core.exceptions import BadRequest

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

LONGEST_ID = 100
LONGEST_KEY = 200
KEPT_ESCAPES = re.compile(rb"%(?=2[fF5])")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
API_PREFIX = "/api/"


def is_below_api(path: str) -> bool:
    """Whether answers to this path are for programs."""
    return f"{path}/".startswith(API_PREFIX)


class InvalidId(BadRequest):
    """An id in the path that no row can have."""


def path_info(raw_path: str) -> str:
    """PATH_INFO of a raw path, the two escapes kept; one trailing slash below the API prefix is dropped."""
    protected = KEPT_ESCAPES.sub(b"%25", raw_path.encode("latin-1", "replace"))
    # an escape of an escape: `%2F` arrives as `%252F` and leaves as `%2F`, in the upper case that the converter knows
    path = re.sub(r"%2f", "%2F", unquote_to_bytes(protected).decode("latin-1"))
    if path.startswith(API_PREFIX) and path.endswith("/"):
        return path[:-1]
    return path


def raw_path_of(environ: dict[str, Any]) -> str:
    """The path as the client sent it, from the server's RAW_URI; else PATH_INFO, encoded again."""
    raw: str | None = environ.get("RAW_URI")
    if raw is None:
        return quote(environ.get("PATH_INFO", "").encode("latin-1"), safe="/")
    # HTTP allows an absolute target; one that starts with two slashes is a path all the same
    target = raw if raw.startswith("/") else urlsplit(raw).path
    return target.split("?", 1)[0].split("#", 1)[0]


def keep_separators(application: WSGIApplication) -> WSGIApplication:
    """Wrap a WSGI application so that it sees paths as `path_info` makes them."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ["PATH_INFO"] = path_info(raw_path_of(environ))
        return application(environ, start_response)

    return serve


def external_path(path: str) -> str:
    """The path for a URL, of a request's `path` (escapes kept): what `path_info` would read back."""
    return quote(path, safe="/%:@!$&'()*+,;=~")


class ExternalIdConverter:
    """One path segment as an id of the client's: any characters but control characters, 1 to 100 of them."""

    regex = "[^/]+"
    noun: ClassVar[str] = "an id"
    longest: ClassVar[int] = LONGEST_ID

    def to_python(self, value: str) -> str:
        if re.search(r"%(?!2F|25)", value):
            raise InvalidId(f"{self.noun} in the path is not valid UTF-8")
        text = value.replace("%2F", "/").replace("%25", "%")
        if len(text) > self.longest or CONTROL.search(text):
            raise InvalidId(f"{self.noun} has 1 to {self.longest} characters, no control characters among them")
        return text

    def to_url(self, value: str) -> str:
        return value.replace("%", "%25").replace("/", "%2F")


class KeyConverter(ExternalIdConverter):
    """One path segment as the key of a value: as an id, of 1 to 200 characters."""

    noun = "a key"
    longest = LONGEST_KEY
