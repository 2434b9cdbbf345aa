"""Texts by key with an optional expiry: the plain operations of the documented Redis manager, within an account."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.owner import Owner
from memory.tiers.base import check_name
from memory_project.redis import client, script, value_key

NO_KEY = -2
"""The answer of TTL where there is no such key; -1 where it does not expire."""

# ARGV: most bytes to read, four for each character and one more; returns beginning, bytes and seconds of each key
DESCRIBE = """
local flat, most = {}, tonumber(ARGV[1])
for _, key in ipairs(KEYS) do
    local beginning, size = redis.call('GETRANGE', key, 0, most - 1), redis.call('STRLEN', key)
    if size > most then
        -- the last character may be cut in two
        beginning = string.match(beginning, '^(.*)[^\\128-\\191][\\128-\\191]*$') or ''
    end
    flat[#flat + 1] = beginning
    flat[#flat + 1] = size
    flat[#flat + 1] = redis.call('TTL', key)
end
return flat
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedText:
    """A text, and the seconds until it expires; None: it does not."""

    text: str
    ttl_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedText:
    """The beginning of a text with its key, its length in bytes, and the seconds until it expires, if it does."""

    name: str
    beginning: str
    size_bytes: int
    ttl_seconds: int | None


class KeyValues:
    """The account's texts. They are stored raw, because only texts are accepted."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def get(self, key: str) -> str | None:
        """Return the text, or None if there is none or it has expired."""
        value = client().get(self._key(key))
        return None if value is None else str(value)

    def find(self, key: str) -> KeyedText | None:
        """Return the text with its expiry, or None if there is none. One round trip."""
        with client().pipeline() as pipeline:
            pipeline.get(self._key(key))
            pipeline.ttl(self._key(key))
            text, seconds = pipeline.execute()
        return None if text is None else KeyedText(text=text, ttl_seconds=seconds_left(seconds))

    def describe(self, keys: Sequence[str], *, characters: int) -> list[DescribedText]:
        """Return the beginnings of those of the texts that there are, ordered by key. One round trip.

        `characters` is the greatest length of a beginning.
        """
        names = sorted(set(keys))
        stored_at = [value_key(self._owner.account_id, name) for name in names]
        flat = script(DESCRIBE)(keys=stored_at, args=[4 * (characters + 1)])
        found = zip(names, flat[::3], flat[1::3], flat[2::3], strict=True)
        return [
            DescribedText(name=name, beginning=text[:characters], size_bytes=size, ttl_seconds=seconds_left(seconds))
            for name, text, size, seconds in found
            if seconds != NO_KEY
        ]

    def set(self, key: str, value: str, ex: int | None = None) -> None:
        """Store the text for `ex` seconds, or until it is deleted."""
        client().set(self._key(key), value, ex=ex)

    def delete(self, key: str) -> bool:
        """Delete the text and return True if there was one."""
        return bool(client().delete(self._key(key)))

    def _key(self, key: str) -> str:
        return value_key(self._owner.account_id, check_name(key))


def seconds_left(seconds: int) -> int | None:
    return seconds if seconds >= 0 else None
