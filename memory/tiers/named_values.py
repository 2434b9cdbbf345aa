"""Values by name in Redis, each of which expires by itself.

The names are a sorted set by the moment when each value expires, so that nothing is ever scanned for; a value is a key
of its own, that of the names with `:<name>` behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.tiers.base import check_name, from_json
from memory_project.redis import script

# every script takes the key of the names, and before other arguments the prefix of the values' keys
VALUES = """
local names, prefix = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', names, '-inf', now)

-- false where there is no room for one more
local function keep(name, json, ttl_ms, most)
    if not redis.call('ZSCORE', names, name) and redis.call('ZCARD', names) >= most then
        return false
    end
    local expires_at = string.format('%.0f', now + ttl_ms)
    redis.call('SET', prefix .. name, json, 'PXAT', expires_at)
    redis.call('ZADD', names, expires_at, name)
    local latest = redis.call('ZRANGE', names, -1, -1, 'WITHSCORES')[2]
    redis.call('PEXPIREAT', names, string.format('%.0f', latest))
    return true
end

-- name, JSON and milliseconds left of each value
local function all()
    local flat = {}
    for _, name in ipairs(redis.call('ZRANGE', names, 0, -1)) do
        local json = redis.call('GET', prefix .. name)
        if json then
            flat[#flat + 1] = name
            flat[#flat + 1] = json
            flat[#flat + 1] = redis.call('PTTL', prefix .. name)
        else
            redis.call('ZREM', names, name)
        end
    end
    return flat
end
"""

# most values, seconds to live, name, JSON
SET_VALUE = VALUES + "return keep(ARGV[4], ARGV[5], tonumber(ARGV[3]) * 1000, tonumber(ARGV[2])) and 1 or 0"

# name
FIND_VALUE = "return {redis.call('GET', ARGV[1] .. ARGV[2]), redis.call('PTTL', ARGV[1] .. ARGV[2])}"

# name
DELETE_VALUE = VALUES + "redis.call('ZREM', names, ARGV[2]) return redis.call('DEL', prefix .. ARGV[2])"

ALL_VALUES = VALUES + "return all()"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue:
    """A value, and in how many seconds (1 or more) it expires."""

    value: Any
    ttl_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A value as it is stored: its name, its JSON, and the milliseconds that it has left."""

    name: str
    json: str
    ttl_ms: int


class NamedValues:
    """The values whose names are at `key`, at most `most`. Every call is one round trip; ValueError for no name."""

    def __init__(self, key: str, *, most: int) -> None:
        self._key = key
        self._most = most

    def set(self, name: str, json: str, *, ttl_seconds: int) -> bool:
        """Store or replace a value; False where there is no room for one more."""
        return bool(self.run(SET_VALUE, self._most, ttl_seconds, check_name(name), json))

    def find(self, name: str) -> StoredValue | None:
        """The value, which may be None itself; None where there is none (any more)."""
        json, left_ms = self.run(FIND_VALUE, check_name(name))
        return None if json is None else StoredValue(value=from_json(json), ttl_seconds=seconds_of(left_ms))

    def delete(self, name: str) -> bool:
        """Whether there was one."""
        return bool(self.run(DELETE_VALUE, check_name(name)))

    def all(self) -> list[StoredText]:
        """What has not expired, by name."""
        return stored_texts(self.run(ALL_VALUES))

    def run(self, source: str, *args: str | int, keys: Sequence[str] = ()) -> Any:
        """A script that begins with VALUES, or knows what that knows: `keys` come after the key of the names."""
        return script(source)(keys=[self._key, *keys], args=[f"{self._key}:", *args])


def stored_texts(flat: Sequence[Any]) -> list[StoredText]:
    """What the script's `all()` returned, by name."""
    found = sorted(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
    return [StoredText(name=name, json=json, ttl_ms=left_ms) for name, json, left_ms in found]


def seconds_of(milliseconds: int) -> int:
    """Rounded up: what is there has at least a second."""
    return max(1, -(-milliseconds // 1_000))
