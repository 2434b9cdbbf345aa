"""Redis in a backup: the installation's own keys as typed values, which any Redis or Valkey can load.

Not in a backup, because it is made again from PostgreSQL: the injection ledgers (their journal's entries that are not
rows yet are in it), the buffers of sessions that are read from the log, and caches. Remaining times to live continue.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from memory_project.batches import batched
from memory_project.redis import KEY_PATTERNS, SCAN_PAGE, SHARED_KEYS, client

OWN_KEYS = "account:????????-????-????-????-????????????:*"
STREAMS = tuple(SHARED_KEYS[name] for name in ("ledger_journal", "access_log", "audit_reads", "refused_audit_reads"))
"""Streams whose entries become rows. An entry that is a row already is not stored twice."""
COUNTERS = (SHARED_KEYS["access_lost"],)
LEDGERS = KEY_PATTERNS["ledger"].partition("{account_id}")[2].partition(":{{")[0]
"""Part of the keys of ledgers."""

Entries = dict[str, dict[str, str]]
"""Entries of a stream: id to fields."""

READ: Mapping[str, Callable[[Any, str], Any]] = {
    "string": lambda pipe, key: pipe.get(key),
    "hash": lambda pipe, key: pipe.hgetall(key),
    "list": lambda pipe, key: pipe.lrange(key, 0, -1),
    "set": lambda pipe, key: pipe.smembers(key),
    "zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
}
WRITE: Mapping[str, Callable[[Any, str, Any], Any]] = {
    "string": lambda pipe, key, value: pipe.set(key, value),
    "hash": lambda pipe, key, value: pipe.hset(key, mapping=dict(value)),
    "list": lambda pipe, key, value: pipe.rpush(key, *value),
    "set": lambda pipe, key, value: pipe.sadd(key, *value),
    "zset": lambda pipe, key, value: pipe.zadd(key, dict(value)),
    "stream": lambda pipe, key, value: [pipe.xadd(key, fields, id=entry) for entry, fields in value],
}


def read_streams() -> dict[str, Entries]:
    """Return the entries of the streams that become rows.

    Read right before and right after a snapshot of PostgreSQL, every entry is in one of the readings or a row.
    """
    redis: Any = client()
    return {name: dict(redis.xrange(name)) for name in STREAMS}


def merge_streams(before: Mapping[str, Entries], after: Mapping[str, Entries]) -> dict[str, Entries]:
    return {name: before[name] | after[name] for name in STREAMS}


def dump_live(target: Path, streams: Mapping[str, Entries]) -> int:
    """Write the keys of the installation, one JSON object in a line, and return their number."""
    written = 0
    with gzip.open(target, "wt", encoding="utf-8") as lines:
        for name, entries in streams.items():
            if entries:
                in_order = sorted(entries.items(), key=lambda entry: tuple(map(int, entry[0].split("-"))))
                write_line(lines, {"key": name, "type": "stream", "value": in_order, "ttl_ms": -1})
                written += 1
        for record in read_keys(list_own_keys()):
            write_line(lines, record)
            written += 1
    return written


def write_line(lines: Any, record: Mapping[str, Any]) -> None:
    lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def list_own_keys() -> list[str]:
    """Return the keys of a backup besides its streams, each once."""
    has_log = settings.SESSION_STORE_TYPE == "hybrid"
    found = set(map(str, client().scan_iter(match=OWN_KEYS, count=SCAN_PAGE)))
    kept = {key for key in found if LEDGERS not in key and not (has_log and is_buffer(key))}
    return sorted(kept) + [key for key in COUNTERS if client().exists(key)]


def is_buffer(key: str) -> bool:
    """Return whether the key holds the turns of a session, which the store `hybrid` reads from the log again."""
    return ":working:" in key and key.endswith("}:turns")


def read_keys(keys: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of these keys; those that are gone by now are left out."""
    for page in batched(keys, SCAN_PAGE):
        with client().pipeline(transaction=False) as pipe:
            for key in page:
                pipe.type(key)
            kinds = dict(zip(page, map(str, pipe.execute()), strict=True))
        with client().pipeline(transaction=False) as pipe:
            readable = [key for key in page if kinds[key] in READ]
            for key in readable:
                READ[kinds[key]](pipe, key)
                pipe.pttl(key)
            found = pipe.execute()
        for key, value, ttl_ms in zip(readable, found[::2], found[1::2], strict=True):
            if value not in (None, [], {}, set()) and ttl_ms != -2:
                listed = sorted(value) if kinds[key] == "set" else value
                yield {"key": key, "type": kinds[key], "value": listed, "ttl_ms": ttl_ms}


def count_own_keys() -> int:
    """Return the number of keys of an installation that this Redis has."""
    shared = client().exists(*SHARED_KEYS.values())
    return int(shared) + sum(1 for _ in client().scan_iter(match=OWN_KEYS, count=SCAN_PAGE))


def replace_live(dump: Path) -> int:
    """Replace the installation's keys by those of a dump, and return their number. Keys of others stay.

    Ledgers are left out, and so is the mark that all of them are there: they are rebuilt from their journal.
    """
    delete_own_keys()
    loaded = 0
    with gzip.open(dump, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            with client().pipeline(transaction=True) as pipe:
                WRITE[record["type"]](pipe, record["key"], record["value"])
                if record["ttl_ms"] > 0:
                    pipe.pexpire(record["key"], record["ttl_ms"])
                pipe.execute()
            loaded += 1
    return loaded


def delete_own_keys() -> None:
    """Delete all keys of the installation."""
    # the mark goes first: a ledger that is half deleted must not count as complete
    client().unlink(SHARED_KEYS["ledger_epoch"])
    client().unlink(*SHARED_KEYS.values())
    for keys in pages(client().scan_iter(match=OWN_KEYS, count=SCAN_PAGE)):
        client().unlink(*keys)


def pages(keys: Iterable[Any]) -> Iterator[list[str]]:
    page: list[str] = []
    for key in keys:
        page.append(str(key))
        if len(page) == SCAN_PAGE:
            yield page
            page = []
    if page:
        yield page
