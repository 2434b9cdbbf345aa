"""Strict JSON bodies. Everything refused here would either break a store or come back changed."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, NoReturn

from pydantic_core import from_json
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

MAX_DEPTH = 64
MAX_MEMBERS = 100_000
"""Members of all objects of a body together; also its objects and lists."""
MAX_ELEMENTS = 1_000_000
"""Elements of all lists, and members of all objects, of a body together: 200 vectors of 4,096 numbers fit."""
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
# patterns that begin with one character are searched for ten times as fast as one that has them all
LARGE_EXPONENTS = (re.compile(rb"e\+?[0-9]{3}"), re.compile(rb"E\+?[0-9]{3}"))
MANY_DIGITS = 200
MIN_FAST_BYTES = 1_024
"""Length from which a body probably has a vector."""
NOT_PARSED = object()
UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


class StrictJSONParser(BaseParser):
    """Parses a JSON object in UTF-8, within MAX_DEPTH, MAX_MEMBERS and MAX_ELEMENTS.

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
    refuse_large_structure(body)
    value = parse_numbers_fast(body) if len(body) >= MIN_FAST_BYTES else NOT_PARSED
    if value is NOT_PARSED:
        value = parse_by_standard_library(body)
    # only an escape can produce such a character: raw, it is invalid JSON or invalid UTF-8
    if b"\\u" in body and any(UNSTORABLE.search(text) for text in _iterate_texts(value)):
        raise ParseError("The body holds a NUL character or half of a surrogate pair.")
    return value


def parse_numbers_fast(body: bytes) -> Any:
    """Return the value as `parse_by_standard_library` does, or NOT_PARSED if that one has to decide.

    Vectors are parsed four times as fast. Refused bodies are parsed again, for the reason; so are those in which a name
    may be repeated, which this parser does not notice, and those with a number that may be infinite.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
        members = count_members(value)
    except (ValueError, OverflowError):
        return NOT_PARSED
    is_certain = members == body.count(b":") or members == STRING.sub(b"", body).count(b":")
    return value if is_certain else NOT_PARSED


def count_members(value: Any) -> int:
    """Return the number of members of all objects in a value.

    Raises ValueError or OverflowError if a number may be infinite.
    """
    count, pending = 0, [value]
    while pending:
        current = pending.pop()
        kind = type(current)
        if kind is dict:
            count += len(current)
            pending += current.values()
        elif kind is list:
            try:
                if not isfinite(sum(current)):
                    raise ValueError("infinite")
            except TypeError:
                # not of numbers alone
                pending += current
        elif kind is float and not isfinite(current):
            raise ValueError("infinite")
    return count


def parse_by_standard_library(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode(),
            object_pairs_hook=_unique_members,
            parse_constant=_refuse_constant,
            parse_float=_finite_float if has_huge_number(body) else None,
        )
    except UnicodeDecodeError as err:
        raise ParseError("The body is not valid UTF-8.") from err
    except json.JSONDecodeError as err:
        place = f"line {err.lineno}, column {err.colno}"
        raise ParseError(f"The body is not valid JSON: {err.msg} at {place}.") from err
    except ValueError as err:
        raise ParseError("The body is not valid JSON.") from err


def refuse_large_structure(body: bytes) -> None:
    """Raise ParseError for a body with too many members, elements or levels, before anything is made of it.

    Counts punctuation, outside of strings where there is much of it: the JSON parser would recurse, or take seconds.
    """
    if is_small_structure(body):
        return
    bare = STRING.sub(b"", body)
    if bare.count(b":") > MAX_MEMBERS or count_brackets(bare) > MAX_MEMBERS:
        raise ParseError(f"The body has more than {MAX_MEMBERS} members. Split it.")
    if bare.count(b",") > MAX_ELEMENTS:
        raise ParseError(f"The body has more than {MAX_ELEMENTS} elements. Split it.")
    depth = 0
    for bracket in BRACKET.finditer(bare):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise ParseError(f"The body is nested more than {MAX_DEPTH} levels deep.")


def is_small_structure(body: bytes) -> bool:
    # a short text need not be counted, which takes a quarter of the time of parsing it
    has_few_members = len(body) <= MAX_MEMBERS or body.count(b":") <= MAX_MEMBERS
    has_few_elements = len(body) <= MAX_ELEMENTS or body.count(b",") <= MAX_ELEMENTS
    return count_brackets(body) <= MAX_DEPTH and has_few_members and has_few_elements


def count_brackets(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def has_huge_number(body: bytes) -> bool:
    """Return True if a number of the text may be infinite as a float: no shorter one can be."""
    # a run of so many digits fills at least one of these pieces
    pieces = (body[start : start + MANY_DIGITS // 2] for start in range(0, len(body), MANY_DIGITS // 2))
    return any(pattern.search(body) for pattern in LARGE_EXPONENTS) or any(map(bytes.isdigit, pieces))


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
