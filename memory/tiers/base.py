"""Shared parts of tiers: the base class of those that the router reads, values as JSON, limits."""

import json
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.utils import timezone

from memory import conf
from memory.errors import TooLarge
from memory.owner import Owner

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
class TierStats:
    """The number of an agent's keyed values in a tier, and the bytes of their names and JSON."""

    entries: int
    size_bytes: int


class Tier:
    """A store of one agent's keyed values, as the router uses it. Expired values count as missing."""

    name: ClassVar[str]
    has_pools: ClassVar[bool] = False
    """True if `TierScope.pool_id` has a meaning."""
    max_ttl_seconds: ClassVar[int] = 0
    """0: values do not expire."""
    memory_types: ClassVar[AbstractSet[str]] = frozenset()
    """Allowed types; empty: values have no type."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def read(self, key: str, within: TierScope, *, now: datetime) -> Any:
        """Return the value under the key. Raises NotFound."""
        raise NotImplementedError

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        """Store the value, replacing the old one. Raises TooLarge above TIER_VALUE_BYTES."""
        raise NotImplementedError

    def delete(self, key: str, within: TierScope, *, now: datetime) -> None:
        """Delete the value. Raises NotFound if there is none."""
        raise NotImplementedError

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        """Return the keys, sorted."""
        raise NotImplementedError

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        raise NotImplementedError


def time_of_call(now: datetime | None) -> datetime:
    """Return `now`, or the clock's time for a documented call that brings none."""
    return timezone.now() if now is None else now


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
    check_size(len(text.encode("utf-8")), limit_bytes=conf.TIER_VALUE_BYTES, what="the value has")
    return text


def check_name(name: str) -> str:
    """Return the name, or raise ValueError unless it has 1 to MAX_NAME_CHARACTERS characters and no NUL.

    NUL separates names in Redis.
    """
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or "\x00" in name:
        raise ValueError(f"a name must have 1 to {MAX_NAME_CHARACTERS} characters and no NUL")
    name.encode("utf-8")
    return name


def check_ttl(seconds: int, *, max_seconds: int) -> int:
    """Return the lifetime, or raise ValueError if it is out of range."""
    if not 1 <= seconds <= max_seconds:
        raise ValueError(f"ttl_seconds must be from 1 to {max_seconds}")
    return seconds


def check_size(size_bytes: int, *, limit_bytes: int, what: str) -> None:
    """Raise TooLarge above the limit; `what` begins the sentence: "the value has"."""
    if size_bytes > limit_bytes:
        message = f"{what} {size_bytes} bytes, but {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)
