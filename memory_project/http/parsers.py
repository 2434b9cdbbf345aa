"""Strict JSON bodies. Everything refused here would either break a store or come back changed."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

MAX_DEPTH = 64
MAX_MEMBERS = 100_000
"""Members of all objects of a body together."""
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
# a number that may be infinite as a float; anything shorter cannot
HUGE_NUMBER = re.compile(rb"[0-9]{200}|[eE]\+?[0-9]{3}")
UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


class StrictJSONParser(BaseParser):
    """Parses a JSON object in UTF-8, nested at most MAX_DEPTH deep, with at most MAX_MEMBERS members.

    Refuses duplicate member names, NaN, infinity, NUL characters and lone surrogates.
    """

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        value = parse_json(stream.read())
        if not isinstance(value, dict):
            raise ParseError('The body must be a JSON object, such as {"name": "value"}.')
        return value


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON text. Raises ParseError for everything that StrictJSONParser refuses."""
    refuse_deep_nesting(body)
    refuse_many_members(body)
    try:
        value = json.loads(
            body.decode(),
            object_pairs_hook=_unique_members,
            parse_constant=_refuse_constant,
            parse_float=_finite_float if HUGE_NUMBER.search(body) else None,
        )
    except UnicodeDecodeError as err:
        raise ParseError("The body is not valid UTF-8.") from err
    except json.JSONDecodeError as err:
        place = f"line {err.lineno}, column {err.colno}"
        raise ParseError(f"The body is not valid JSON: {err.msg} at {place}.") from err
    except ValueError as err:
        raise ParseError("The body is not valid JSON.") from err
    # only an escape can produce such a character: raw, it is invalid JSON or invalid UTF-8
    if b"\\u" in body and any(UNSTORABLE.search(text) for text in _iterate_texts(value)):
        raise ParseError("The body holds a NUL character or half of a surrogate pair.")
    return value


def refuse_deep_nesting(body: bytes) -> None:
    """Raise ParseError for deep nesting. Counts brackets in the bytes, because the JSON parser itself recurses."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in BRACKET.finditer(STRING.sub(b"", body)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise ParseError(f"The body is nested more than {MAX_DEPTH} levels deep.")


def refuse_many_members(body: bytes) -> None:
    """Raise ParseError for a body with too many members, by the colons in its bytes, before anything is made of it."""
    if body.count(b":") > MAX_MEMBERS and STRING.sub(b"", body).count(b":") > MAX_MEMBERS:
        raise ParseError(f"The body has more than {MAX_MEMBERS} members. Split it.")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object. Refuses duplicate names, of which all values but the last would be lost silently."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ParseError("The body names a member of an object twice.")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("infinite")
    return number


def _iterate_texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, list):
            pending += current
        elif isinstance(current, dict):
            yield from current
            pending += current.values()


class JSONOnlyNegotiation(DefaultContentNegotiation):
    """Answers JSON whatever the client accepts: there is no other format."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)
