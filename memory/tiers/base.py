"""What all tiers share: how a value looks in Redis, and what may be a name."""

import json
from typing import Any

from memory import conf
from memory.errors import TooLarge

NAME_LENGTH = 200


def to_json(value: Any) -> str:
    """One JSON text for any JSON value, so that `"123"` and `123`, `1` and `1.0` come back as they went in.

    Raises ValueError for what has no JSON: NaN, infinities, lone surrogates, nesting beyond Python's own limit.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError as err:
        raise ValueError("the value is nested too deeply") from err
    # not left to the connection: it would fail in the middle of a command
    text.encode("utf-8")
    return text


def from_json(text: str) -> Any:
    return json.loads(text)


def keyed_json(value: Any) -> str:
    """One keyed value as JSON. Raises TooLarge above TIER_VALUE_BYTES, ValueError as `to_json` does."""
    text = to_json(value)
    size_bytes, limit_bytes = len(text.encode("utf-8")), conf.TIER_VALUE_BYTES
    if size_bytes > limit_bytes:
        message = f"it has {size_bytes} bytes, {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)
    return text


def check_name(name: str) -> str:
    """`name`, when it has 1 to NAME_LENGTH characters and no NUL (which separates names in Redis); else ValueError."""
    if not 1 <= len(name) <= NAME_LENGTH or "\x00" in name:
        raise ValueError(f"a name has 1 to {NAME_LENGTH} characters and no NUL")
    name.encode("utf-8")
    return name
