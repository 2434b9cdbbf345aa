"""Shared parts of tiers: the Protocol that the router uses, values as JSON, valid names."""

import json
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol

from memory import conf
from memory.errors import TooLarge

MAX_NAME_CHARACTERS = 200

# in JSON text, where the backslash before it is not itself escaped
ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierScope:
    """The part of a tier that a call means: the session of short_term keys, the pool of shared keys.

    An empty `pool_id` is the agent's own pool. Callers pass the session with every call; the other tiers ignore it.
    """

    session_id: str = ""
    pool_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewValue:
    """A value to write. `ttl_seconds` None: the tier's default; an empty `memory_type`: the tier's own."""

    value: Any
    ttl_seconds: int | None = None
    memory_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierValue:
    """A value found in a tier; `value` None is JSON's null."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStats:
    """The number of an agent's keyed values in a tier, and the bytes of their names and JSON."""

    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLines:
    """The result of moving lines from a stream into a table.

    `examined` are lines looked at, `changed` those that became new rows, `failed` those that the table refused.
    `cursor` is the last line looked at; empty when there are no more.
    """

    examined: int
    changed: int
    failed: int = 0
    cursor: str


class Tier(Protocol):
    """A store of one agent's keyed values. Expired values count as missing."""

    name: ClassVar[str]
    has_pools: ClassVar[bool]
    """True if `TierScope.pool_id` has a meaning."""
    max_ttl_seconds: ClassVar[int]
    """0: values do not expire."""
    memory_types: ClassVar[AbstractSet[str]]
    """Allowed types; empty: values have no type."""

    def read(self, key: str, within: TierScope, *, now: datetime) -> TierValue | None:
        """Return the value under the key, or None."""
        ...

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        """Store the value, replacing the old one. Raises TooLarge above TIER_VALUE_BYTES."""
        ...

    def delete(self, key: str, within: TierScope, *, now: datetime) -> bool:
        """Delete the value and return True if there was one."""
        ...

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        """Return the keys, sorted."""
        ...

    def stats(self, within: TierScope, *, now: datetime) -> TierStats: ...


def to_json(value: Any) -> str:
    """Return one JSON text for any JSON value, so that `"123"` and `123`, `1` and `1.0` are distinct after `from_json`.

    Raises ValueError for NaN, infinities, lone surrogates, and nesting beyond Python's own limit.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError as err:
        raise ValueError("the value is nested too deeply") from err
    # fails here for lone surrogates, not in the middle of a Redis command
    text.encode("utf-8")
    return text


def from_json(text: str) -> Any:
    return json.loads(text)


def keyed_json(value: Any) -> str:
    """Return a keyed value as JSON.

    Raises TooLarge above TIER_VALUE_BYTES, ValueError as `to_json` does and for NUL.
    """
    text = to_json(value)
    if ESCAPED_NUL.search(text):
        raise ValueError("the value contains a NUL character, which PostgreSQL cannot store")
    size_bytes, limit_bytes = len(text.encode("utf-8")), conf.TIER_VALUE_BYTES
    if size_bytes > limit_bytes:
        message = f"the value has {size_bytes} bytes, but {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)
    return text


def check_name(name: str) -> str:
    """Return the name, or raise ValueError unless it has 1 to MAX_NAME_CHARACTERS characters and no NUL.

    NUL separates names in Redis.
    """
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or "\x00" in name:
        raise ValueError(f"a name must have 1 to {MAX_NAME_CHARACTERS} characters and no NUL")
    name.encode("utf-8")
    return name
