"""JSON documents: read and write parts by JSON Pointer (RFC 6901), merge deeply, measure. Pure functions.

Values are the result of a JSON parser: dict, list, str, int, float, bool and None.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import jsonpointer
from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from memory.errors import Unprocessable
from memory.tiers.base import ESCAPED_NUL, check_size, to_json

# otherwise the error for a missing name contains the whole document
jsonpointer.VERBOSE_EXCEPTIONS = False

MAX_DEPTH = 64
"""Nested objects and lists, including the document itself: the limit of request bodies."""

UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
ABSENT = object()

PathTokens = tuple[str, ...]
"""The unescaped names and indexes of a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredDocument:
    """A document as compact JSON text, with the sizes that are limited: UTF-8 bytes and top-level names."""

    text: str
    size_bytes: int
    entry_count: int
    """Number of top-level names."""


PATH_RULE = (
    "path must be a JSON Pointer: empty, or names that each follow a slash, with ~1 for a slash and ~0 for ~ in a name"
)


def parse_path(path: str) -> PathTokens:
    """Return the tokens of a JSON Pointer: "" is the whole document, `/a~1b/0` the first element of `a/b`.

    Raises Unprocessable.
    """
    try:
        tokens = tuple(JsonPointer(path).parts)
    except JsonPointerException as err:
        raise Unprocessable(PATH_RULE) from err
    if len(tokens) > MAX_DEPTH or UNSTORABLE.search(path):
        raise Unprocessable(f"a path must have at most {MAX_DEPTH} names, no NUL and no lone surrogate")
    return tokens


def value_at(document: Any, tokens: PathTokens) -> Any:
    """Return the part under the tokens; ABSENT if there is none, as after the last element of a list ("-")."""
    found = JsonPointer.from_parts(tokens).resolve(document, ABSENT)
    return ABSENT if isinstance(found, EndOfList) else found


def set_value_at(document: dict[str, Any], tokens: PathTokens, value: Any) -> dict[str, Any]:
    """Set the value in the document, which is modified, and return the document.

    Missing objects on the way are created, "-" appends to a list. Raises Unprocessable if the path leads through
    anything else, or the whole would not be an object.
    """
    if not tokens:
        return require_object(value)
    try:
        return require_object(JsonPointer.from_parts(tokens).set(document, value, create=True))
    except JsonPointerException:
        # no cause, because its message quotes the document
        raise Unprocessable(
            "the path must lead through objects and lists only, and to an existing index or the end of a list"
        ) from None


def merge_value_at(document: dict[str, Any], tokens: PathTokens, value: Any) -> dict[str, Any]:
    """Return the document with the value merged into the existing part. Raises as `set_value_at`."""
    stored = value_at(document, tokens)
    return set_value_at(document, tokens, value if stored is ABSENT else merge_values(stored, value))


def merge_values(stored: Any, value: Any) -> Any:
    """Merge objects by name at every depth; replace everything else, also by null. Neither argument is modified."""
    if not isinstance(stored, dict) or not isinstance(value, dict):
        return value
    merged = dict(stored)
    for name, part in value.items():
        merged[name] = merge_values(stored[name], part) if name in stored else part
    return merged


def require_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unprocessable("the whole data must be a JSON object")
    return value


def check_storable(value: Any, *, below: int = 0) -> None:
    """Raise Unprocessable for a value that cannot be stored `below` so many objects and lists."""
    if measure_depth(value, limit=MAX_DEPTH - below) > MAX_DEPTH - below:
        raise Unprocessable(f"data must not be nested more than {MAX_DEPTH} levels deep")
    if ESCAPED_NUL.search(json_text(value)):
        raise Unprocessable("the data contains a NUL character, which cannot be stored")


def measure_depth(value: Any, *, limit: int) -> int:
    """Return the number of nested objects and lists, 0 for a plain value. Stops counting one above `limit`."""
    depth, layer = 0, [value]
    while layer := [part for part in layer if isinstance(part, (dict, list))]:
        depth += 1
        if depth > limit:
            break
        layer = [part for parent in layer for part in (parent.values() if isinstance(parent, dict) else parent)]
    return depth


def measure_document(document: dict[str, Any], *, limit_bytes: int) -> MeasuredDocument:
    """Measure the document. Raises TooLarge above the limit."""
    text = json_text(document)
    size_bytes = len(text.encode())
    check_size(size_bytes, limit_bytes=limit_bytes, what="the data would have")
    return MeasuredDocument(text=text, size_bytes=size_bytes, entry_count=len(document))


def column_differs(row: object, name: str, value: Any) -> bool:
    """Return True if the row's column differs from the value. Metadata is compared as JSON."""
    stored = getattr(row, name)
    if name == "metadata":
        return comparable_json(stored) != comparable_json(value)
    return bool(stored != value)


def comparable_json(value: Any) -> str:
    """Return the same text for equal JSON values, where 1 differs from 1.0 and true, and order of names is ignored."""
    return json.dumps(value, sort_keys=True)


def json_text(value: Any) -> str:
    try:
        return to_json(value)
    except (ValueError, TypeError):
        # no cause, because its message would quote the value
        raise Unprocessable("the data contains a value that JSON cannot represent") from None
