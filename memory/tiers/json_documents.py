"""Documents of JSON: parts of them found and set by JSON Pointer (RFC 6901), merged deeply, measured. Pure.

Values are what a JSON parser makes: dict, list, str, int, float, bool and None.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonpointer
from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from memory.errors import TooLarge, Unprocessable
from memory.tiers.base import ESCAPED_NUL, to_json

# it would put the whole document into the message of every name that is not there
jsonpointer.VERBOSE_EXCEPTIONS = False

DEEPEST = 64
"""Objects and lists within one another, the document itself among them: as deep as a body may be."""

UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
ABSENT = object()

Tokens = tuple[str, ...]
"""The names and indexes of a path, unescaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A document as compact JSON text, and what is limited: its bytes in UTF-8."""

    text: str
    size_bytes: int
    entry_count: int
    """Top-level names."""


PATH_SHAPE = (
    "a path is a JSON Pointer: empty, or names that each follow a slash; in a name, ~1 stands for a slash and ~0 for ~"
)


def parse_path(path: str) -> Tokens:
    """The tokens of a JSON Pointer: "" leads to the whole document, `/a~1b/0` to the first element of `a/b`.

    Raises Unprocessable.
    """
    try:
        tokens = tuple(JsonPointer(path).parts)
    except JsonPointerException as err:
        raise Unprocessable(PATH_SHAPE) from err
    if len(tokens) > DEEPEST or UNSTORABLE.search(path):
        raise Unprocessable(f"a path has at most {DEEPEST} names, no NUL and no lone surrogate")
    return tokens


def pointer_of(tokens: Sequence[str]) -> JsonPointer:
    return JsonPointer.from_parts(tokens)


def value_at(document: Any, tokens: Tokens) -> Any:
    """The part that the tokens lead to; ABSENT where there is none, as after the last element of a list ("-")."""
    found = pointer_of(tokens).resolve(document, ABSENT)
    return ABSENT if isinstance(found, EndOfList) else found


def with_value(document: dict[str, Any], tokens: Tokens, value: Any) -> dict[str, Any]:
    """The document with the value there; it is changed. Missing objects on the way are made, "-" appends to a list.

    Raises Unprocessable where the way leads through something else, and for a whole that is no object.
    """
    if not tokens:
        return as_object(value)
    try:
        return as_object(pointer_of(tokens).set(document, value, create=True))
    except JsonPointerException:
        # its message quotes the document
        raise Unprocessable("the path leads through what is no object and no list, or to no place in a list") from None


def with_merged(document: dict[str, Any], tokens: Tokens, value: Any) -> dict[str, Any]:
    """The document with the value merged into what is there. Raises as `with_value`."""
    stored = value_at(document, tokens)
    return with_value(document, tokens, value if stored is ABSENT else merge(stored, value))


def merge(stored: Any, value: Any) -> Any:
    """Objects merge, name by name; everything else is replaced, by null as well. Neither argument is changed."""
    if not isinstance(stored, dict) or not isinstance(value, dict):
        return value
    merged = dict(stored)
    for name, part in value.items():
        merged[name] = merge(stored[name], part) if name in stored else part
    return merged


def as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unprocessable("the whole data is an object")
    return value


def check_part(value: Any, *, below: int = 0) -> None:
    """That a value may stand `below` so many objects and lists. Raises Unprocessable for what the database refuses."""
    if depth_of(value, most=DEEPEST - below) > DEEPEST - below:
        raise Unprocessable(f"data is nested at most {DEEPEST} deep")
    if ESCAPED_NUL.search(json_text(value)):
        raise Unprocessable("a text in the data holds a NUL character")


def depth_of(value: Any, *, most: int) -> int:
    """Objects and lists within one another; 0 for a plain value. Counted no further than one over `most`."""
    depth, layer = 0, [value]
    while layer := [part for part in layer if isinstance(part, (dict, list))]:
        depth += 1
        if depth > most:
            break
        layer = [part for held in layer for part in (held.values() if isinstance(held, dict) else held)]
    return depth


def measure(document: dict[str, Any], *, limit_bytes: int) -> Measured:
    """Raises TooLarge."""
    text = json_text(document)
    size_bytes = len(text.encode())
    if size_bytes > limit_bytes:
        message = f"the data would have {size_bytes} bytes, {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)
    return Measured(text=text, size_bytes=size_bytes, entry_count=len(document))


def comparable_json(value: Any) -> str:
    """The same for what is one as JSON, where 1 is neither 1.0 nor true, and the order of names says nothing."""
    return json.dumps(value, sort_keys=True)


def json_text(value: Any) -> str:
    try:
        return to_json(value)
    except (ValueError, TypeError):
        # the message would quote the value
        raise Unprocessable("the data holds what JSON has no form for") from None
