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

# name and milliseconds left of each value
EXPIRIES = (
    VALUES
    + """
local flat = {}
for _, name in ipairs(redis.call('ZRANGE', names, 0, -1)) do
    local left = redis.call('PTTL', prefix .. name)
    if left == -2 then
        redis.call('ZREM', names, name)
    else
        flat[#flat + 1] = name
        flat[#flat + 1] = left
    end
end
return flat
"""
)

MEASURE = (
    VALUES
    + """
local entries, size = 0, 0
for _, name in ipairs(redis.call('ZRANGE', names, 0, -1)) do
    local length = redis.call('STRLEN', prefix .. name)
    if length > 0 then
        entries, size = entries + 1, size + #name + length
    end
end
return {entries, size}
"""
)

CLEAR = (
    VALUES
    + """
local cleared = 0
for _, name in ipairs(redis.call('ZRANGE', names, 0, -1)) do
    cleared = cleared + redis.call('UNLINK', prefix .. name)
end
redis.call('UNLINK', names)
return cleared
"""
)

# most values, then name, JSON and milliseconds of each value
RESTORE = (
    VALUES
    + """
local most, new = tonumber(ARGV[2]), 0
for i = 3, #ARGV, 3 do
    if not redis.call('ZSCORE', names, ARGV[i]) then
        new = new + 1
    end
end
if new > 0 and redis.call('ZCARD', names) + new > most then
    return 0
end
for i = 3, #ARGV, 3 do
    keep(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), most)
end
return 1
"""
)


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

    def expiries(self) -> dict[str, int]:
        """The names of all values, in order, and the seconds that each has left."""
        flat = self.run(EXPIRIES)
        return {name: seconds_of(left_ms) for name, left_ms in sorted(zip(flat[::2], flat[1::2], strict=True))}

    def measure(self) -> tuple[int, int]:
        """How many values there are, and the bytes of their names and their JSON."""
        entries, size_bytes = self.run(MEASURE)
        return int(entries), int(size_bytes)

    def clear(self) -> int:
        """Delete all values; how many there were."""
        return int(self.run(CLEAR))

    def restore(self, values: Sequence[StoredText]) -> bool:
        """Store values over those of their names; False where there is no room for all of them: nothing changes."""
        parts = [part for value in values for part in (value.name, value.json, value.ttl_ms)]
        return bool(self.run(RESTORE, self._most, *parts))

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
