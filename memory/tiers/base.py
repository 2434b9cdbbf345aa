"""What all tiers share: the Protocol that the router reads and writes them by, how a value looks as JSON, what may be
a name."""

import json
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol

from memory import conf
from memory.errors import TooLarge

NAME_LENGTH = 200

# in JSON text, where the backslash before it is not itself escaped
ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Where in a tier: short_term has keys by session, shared in the pool named, or in the agent's own.

    A session goes along with whatever an agent does in it; the other tiers keep values beyond sessions.
    """

    session_id: str = ""
    pool_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What is written under a key. `ttl_seconds` None: as long as the tier keeps it; "" is the tier's own type."""

    value: Any
    ttl_seconds: int | None = None
    memory_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a tier holds under a key: `value` may be None, which is JSON's null."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStats:
    """How many keyed values an agent has in a tier, and the bytes of their names and their JSON."""

    entries: int
    size_bytes: int


class Tier(Protocol):
    """Where keyed values of one agent live. What has expired is as good as none."""

    name: ClassVar[str]
    has_pools: ClassVar[bool]
    """Whether `Within.pool_id` means something here."""
    most_ttl_seconds: ClassVar[int]
    """0: values stay."""
    memory_types: ClassVar[AbstractSet[str]]
    """Empty: values have no type."""

    def read(self, key: str, within: Within, *, now: datetime) -> Held | None:
        """None where there is nothing under the key."""
        ...

    def write(self, key: str, written: Written, within: Within, *, now: datetime) -> None:
        """Store it over what is there. Raises TooLarge above TIER_VALUE_BYTES."""
        ...

    def delete(self, key: str, within: Within, *, now: datetime) -> bool:
        """Whether there was something under the key."""
        ...

    def keys(self, within: Within, *, now: datetime) -> list[str]:
        """In order."""
        ...

    def stats(self, within: Within, *, now: datetime) -> TierStats: ...


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
    """One keyed value as JSON. Raises TooLarge above TIER_VALUE_BYTES, ValueError as `to_json` does and for NUL."""
    text = to_json(value)
    if ESCAPED_NUL.search(text):
        raise ValueError("a text in the value holds a NUL character, which PostgreSQL has no room for")
    size_bytes, limit_bytes = len(text.encode("utf-8")), conf.TIER_VALUE_BYTES
    if size_bytes > limit_bytes:
        message = f"the value has {size_bytes} bytes, {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)
    return text


def check_name(name: str) -> str:
    """`name`, when it has 1 to NAME_LENGTH characters and no NUL (which separates names in Redis); else ValueError."""
    if not 1 <= len(name) <= NAME_LENGTH or "\x00" in name:
        raise ValueError(f"a name has 1 to {NAME_LENGTH} characters and no NUL")
    name.encode("utf-8")
    return name
