"""Keys of Redis as lines of an archive: working memory, sessions, ledgers, agents' memories and single values.

A line has the key behind its account, its type, its value and when it expires, in milliseconds. Buffers of turns are
left out: they are read from the log again.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast
from uuid import UUID

from memory.services.backup.live import WRITE
from memory.services.transfer.selection import TransferScope
from memory_project.redis import (
    AGENT_PATTERN,
    SCAN_PAGE,
    SESSION_PATTERN,
    AgentMemoryRef,
    SessionRef,
    agent_key,
    client,
    parse_conversation_key,
    session_key,
)

REDIS_FILE = "redis.jsonl"
BUFFER = ":turns"
NO_EXPIRY, GONE = -1, -2
"""Answers of Redis instead of a time of expiry: the key has none, and the key does not exist."""
TYPES = ("hash", "string", "list", "set", "zset")


_TAG, _PART = r"\{[^{}]*\}", "[^:{}]*"
_SESSION, _AGENT = f"working:{_PART}:{_PART}:{_TAG}", f"agent:{_TAG}:{_PART}:{_PART}"


def is_any(_text: str) -> bool:
    return True


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def is_json_object(text: str) -> bool:
    return is_json(text) and isinstance(json.loads(text), dict)


SHAPES: tuple[tuple[re.Pattern[str], str, Callable[[str], bool]], ...] = tuple(
    (re.compile(key, re.DOTALL), kind, is_right)
    for key, kind, is_right in (
        (f"working_memory:{_TAG}", "hash", is_json),
        (f"skill:ledger:{_TAG}", "hash", is_any),
        ("value:.*", "string", is_any),
        (f"{_SESSION}:turns", "list", is_any),
        (f"{_SESSION}:thoughts", "list", is_json_object),
        (f"{_SESSION}:active_goal", "string", is_json_object),
        (f"{_SESSION}:saved", "string", is_any),
        (f"{_SESSION}:context", "zset", is_any),
        (f"{_SESSION}:context:.*", "string", is_json),
        (f"{_AGENT}:(?:memory|shared:{_PART})", "zset", is_any),
        (f"{_AGENT}:(?:memory|shared:{_PART}):.*", "string", is_json),
        (f"{_AGENT}:tiers", "hash", is_any),
    )
)
"""Keys behind the account with the type of each, and what checks its value, or each of its values."""


def check_shape(key: str, kind: str, value: Any) -> str:
    """Return what keeps the service from reading a key with a value of this type; "" for nothing.

    Keys that the service does not know are not looked at.
    """
    shapes = ((wanted, is_right) for pattern, wanted, is_right in SHAPES if pattern.fullmatch(key))
    wanted, is_right = next(shapes, (kind, is_any))
    if wanted != kind:
        return f"its value is a {kind}, and must be a {wanted}"
    texts = [value] if kind == "string" else [pair[1] for pair in value] if kind == "hash" else value
    return "" if all(map(is_right, texts)) else "its value is not the JSON that the service writes there"


def key_prefix(account_id: UUID) -> str:
    return f"account:{account_id}:"


def redis_lines(scope: TransferScope, conversations: Collection[str] | None) -> Iterator[bytes]:
    """Yield the keys of the scope in order. `conversations`: those of an agent or user; None for a whole account.

    The names of the keys are in memory together, their values one by one.
    """
    prefix = key_prefix(scope.account_id)
    found = {str(key) for key in client().scan_iter(match=f"{prefix}*", count=SCAN_PAGE)}
    for key in sorted(each for each in found if conversations is None or is_in_scope(scope, each, conversations)):
        if not is_buffer(scope.account_id, key) and (line := read_key(key, key.removeprefix(prefix))):
            yield json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def is_buffer(account_id: UUID, key: str) -> bool:
    """Return True for the buffer of turns of a session."""
    return key.startswith(SESSION_PATTERN.partition("{user_id}")[0].format(account_id=account_id)) and key.endswith(
        f"}}{BUFFER}"
    )


def is_in_scope(scope: TransferScope, key: str, conversations: Collection[str]) -> bool:
    """Return True for a key of the agent, of the user's sessions, or of one of the conversations."""
    place = AgentMemoryRef(account_id=scope.account_id, agent_id=scope.agent_id)
    if key.startswith(AGENT_PATTERN.partition("{{")[0].format(account_id=scope.account_id)):
        return bool(scope.agent_id) and key.startswith(agent_key(place, "").rstrip(":") + ":")
    session = SessionRef(account_id=scope.account_id, user_id=scope.user_id, channel="", conversation_id="")
    if scope.user_id and key.startswith(session_key(session, "").partition(":{")[0].removesuffix(":") + ":"):
        return True
    return "{" in key and "}" in key and parse_conversation_key(key.partition("}")[0] + "}") in conversations


def read_key(key: str, name: str) -> dict[str, Any] | None:
    """Return a line's members; None for a key that is gone."""
    redis = cast(Any, client())
    kind = str(redis.type(key))
    readers: dict[str, Callable[[], Any]] = {
        "hash": lambda: sorted(redis.hgetall(key).items()),
        "string": lambda: redis.get(key),
        "list": lambda: redis.lrange(key, 0, -1),
        "set": lambda: sorted(redis.smembers(key)),
        "zset": lambda: [list(each) for each in redis.zrange(key, 0, -1, withscores=True)],
    }
    value = readers[kind]() if kind in readers else None
    if value is None:
        return None
    expires_at = int(redis.pexpiretime(key))
    if expires_at == GONE:
        return None
    return {"expires_at": expires_at, "key": name, "type": kind, "value": value}


def write_key(account_id: UUID, line: dict[str, Any], *, now_ms: int) -> bool:
    """Store a line's key in one step, unless there is one or it has expired; return whether it was stored."""
    key, kind, value, expires_at = key_prefix(account_id) + line["key"], line["type"], line["value"], line["expires_at"]
    redis = cast(Any, client())
    if redis.exists(key) or value == [] or NO_EXPIRY < expires_at <= now_ms:
        return False
    pipe = redis.pipeline(transaction=True)
    WRITE[kind](pipe, key, value)
    if expires_at != NO_EXPIRY:
        pipe.pexpireat(key, expires_at)
    pipe.execute()
    return True
