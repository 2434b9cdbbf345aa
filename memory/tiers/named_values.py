"""Values by name in Redis, each with its own expiry.

The names are a sorted set ordered by expiry, so that no scan is needed. A value is a key of its own: that of the names
followed by `:<name>`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.tiers.base import check_name, from_json
from memory_project.redis import script

# KEYS[1] of every script is the set of names
VALUES = """
local names, prefix = KEYS[1], KEYS[1] .. ':'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', names, '-inf', now)

-- returns false if there is no room for another value
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

-- returns name, JSON and remaining milliseconds of each value
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

# ARGV: max values, seconds to live, name, JSON
SET_VALUE = VALUES + "return keep(ARGV[3], ARGV[4], tonumber(ARGV[2]) * 1000, tonumber(ARGV[1])) and 1 or 0"

# ARGV: name
FIND_VALUE = "local key = KEYS[1] .. ':' .. ARGV[1] return {redis.call('GET', key), redis.call('PTTL', key)}"

# ARGV: name
DELETE_VALUE = VALUES + "redis.call('ZREM', names, ARGV[1]) return redis.call('DEL', prefix .. ARGV[1])"

ALL_VALUES = VALUES + "return all()"

# returns name and remaining milliseconds of each value
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

# ARGV: max values, then name, JSON and milliseconds of each value
RESTORE = (
    VALUES
    + """
local most, new = tonumber(ARGV[1]), 0
for i = 2, #ARGV, 3 do
    if not redis.call('ZSCORE', names, ARGV[i]) then
        new = new + 1
    end
end
if new > 0 and redis.call('ZCARD', names) + new > most then
    return 0
end
for i = 2, #ARGV, 3 do
    keep(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), most)
end
return 1
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue:
    """A value, and the seconds (1 or more) until it expires."""

    value: Any
    ttl_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A value as stored: its name, its JSON, and its remaining milliseconds."""

    name: str
    json: str
    ttl_ms: int


class NamedValues:
    """The values whose names are at `key`, at most `max_values`.

    Every call is one round trip, and raises ValueError for an invalid name.
    """

    def __init__(self, key: str, *, max_values: int) -> None:
        self._key = key
        self._max_values = max_values

    def set(self, name: str, json: str, *, ttl_seconds: int) -> bool:
        """Store or replace a value. Return False if there is no room for another one."""
        return bool(self.run(SET_VALUE, self._max_values, ttl_seconds, check_name(name), json))

    def find(self, name: str) -> StoredValue | None:
        """Return the stored value, or None if there is none or it has expired."""
        json, left_ms = self.run(FIND_VALUE, check_name(name))
        return None if json is None else StoredValue(value=from_json(json), ttl_seconds=whole_seconds(left_ms))

    def delete(self, name: str) -> bool:
        """Delete a value and return True if there was one."""
        return bool(self.run(DELETE_VALUE, check_name(name)))

    def all(self) -> list[StoredText]:
        """Return the live values, ordered by name."""
        return parse_stored_texts(self.run(ALL_VALUES))

    def expiries(self) -> dict[str, int]:
        """Return the names of all values, sorted, and their remaining seconds."""
        flat = self.run(EXPIRIES)
        return {name: whole_seconds(left_ms) for name, left_ms in sorted(zip(flat[::2], flat[1::2], strict=True))}

    def measure(self) -> tuple[int, int]:
        """Return the number of values, and the bytes of their names and JSON."""
        entries, size_bytes = self.run(MEASURE)
        return int(entries), int(size_bytes)

    def clear(self) -> int:
        """Delete all values and return their number."""
        return int(self.run(CLEAR))

    def restore(self, values: Sequence[StoredText]) -> bool:
        """Store values over those with the same names; return False, without changes, if not all of them fit."""
        parts = [part for value in values for part in (value.name, value.json, value.ttl_ms)]
        return bool(self.run(RESTORE, self._max_values, *parts))

    def run(self, source: str, *args: str | int, keys: Sequence[str] = ()) -> Any:
        """Run a script that begins with VALUES or uses the same key; `keys` follow the key of the names."""
        return script(source)(keys=[self._key, *keys], args=args)


def parse_stored_texts(flat: Sequence[Any]) -> list[StoredText]:
    """Parse the result of a script's `all()`, ordered by name."""
    found = sorted(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
    return [StoredText(name=name, json=json, ttl_ms=left_ms) for name, json, left_ms in found]


def whole_seconds(milliseconds: int) -> int:
    """Round milliseconds up to seconds: a stored value has at least one second."""
    return max(1, -(-milliseconds // 1_000))
