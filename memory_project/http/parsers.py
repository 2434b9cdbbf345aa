"""JSON bodies, strictly: what is refused here can neither upset a store nor come back changed."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

DEEPEST = 64
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
# a number that may be infinite as a float; anything shorter cannot
HUGE_NUMBER = re.compile(rb"[0-9]{200}|[eE]\+?[0-9]{3}")
UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


class StrictJSONParser(BaseParser):
    """An object in UTF-8, at most 64 deep; no name twice, no NaN, no infinity, no NUL, no half of a surrogate pair."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        value = parse_json(stream.read())
        if not isinstance(value, dict):
            raise ParseError("The body must be a JSON object.")
        return value


def parse_json(body: bytes) -> Any:
    """The value of a JSON text. Raises ParseError for whatever the class above refuses."""
    refuse_depth(body)
    try:
        value = json.loads(
            body.decode(),
            object_pairs_hook=_object_of,
            parse_constant=_refuse_constant,
            parse_float=_finite_float if HUGE_NUMBER.search(body) else None,
        )
    except UnicodeDecodeError as err:
        raise ParseError("The body is not valid UTF-8.") from err
    except ValueError as err:
        raise ParseError("The body is not valid JSON.") from err
    # only an escape can bring one in: a raw one is no JSON, or no UTF-8
    if b"\\u" in body and any(UNSTORABLE.search(text) for text in _texts(value)):
        raise ParseError("The body holds a NUL character or half of a surrogate pair.")
    return value


def refuse_depth(body: bytes) -> None:
    """Counted on the bytes: the parser itself recurses."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return
    depth = 0
    for bracket in BRACKET.finditer(STRING.sub(b"", body)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > DEEPEST:
            raise ParseError(f"The body is nested more than {DEEPEST} deep.")


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two of one name one would be lost without a word."""
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


def _texts(value: Any) -> Iterator[str]:
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


class AlwaysJSON(DefaultContentNegotiation):
    """Whatever a client accepts, it gets JSON: there is nothing else to choose."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)
