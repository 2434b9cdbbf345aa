"""The content of memory pools: data, postings of blackboards (P7), cached results of tools (P7).

Data is read and written whole or by path, and merged deeply; each write makes a new version. Postings and results are
rows that belong to a pool, which is locked while one is written or deleted. The pool's counts and size limit cover all
of them, including expired rows that have not been deleted yet.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import transaction
from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from memory import conf
from memory.audit import record_audit
from memory.errors import NotFound, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import BlackboardPosting, MemoryPool, ToolCacheEntry
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.accounts.register import register_agent
from memory.services.audit import record_read
from memory.services.custody.traces import erase_traces_of_rows
from memory.services.pools.manage import EMPTY_BYTES, find_pool, lock_pool, visible_pools
from memory.tiers.base import MAX_NAME_CHARACTERS, check_name, check_size, from_json, keyed_json
from memory.tiers.json_documents import (
    ABSENT,
    PathTokens,
    check_storable,
    json_text,
    measure_document,
    merge_value_at,
    parse_path,
    set_value_at,
    value_at,
)
from memory_project.fields import VerbatimJSONField
from memory_project.ids import uuid7

PoolType = MemoryPool.PoolType

TYPES_WITHOUT_DATA = (PoolType.TOOL_CACHE, PoolType.BLACKBOARD)
"""Types of pools whose content is rows instead of `data`."""

# texts that PostgreSQL accepts as a list index but RFC 6901 does not: with signs, blanks or leading zeros
NOT_AN_INDEX = re.compile(r"(?!(?:0|[1-9][0-9]*)\Z)\s*[+-]?[0-9]+")

DataChange = Callable[[dict[str, Any]], dict[str, Any]]
MAX_RESULT_TTL_SECONDS = 2_592_000

# the value is the text that was measured; a new result starts with no hits
UPSERT = """
INSERT INTO tool_cache_entries
    (id, account_id, pool_id, key, value, agent_id, ttl_seconds, expires_at, hit_count, created_at, updated_at)
VALUES (%s, %s, %s, %s, %s::json, %s, %s, %s, 0, %s, %s)
ON CONFLICT (account_id, pool_id, key) DO UPDATE SET
    value = EXCLUDED.value, agent_id = EXCLUDED.agent_id, ttl_seconds = EXCLUDED.ttl_seconds,
    expires_at = EXCLUDED.expires_at, hit_count = 0, created_at = EXCLUDED.created_at, updated_at = EXCLUDED.updated_at
RETURNING *
"""

COUNT_HIT = """
UPDATE tool_cache_entries SET hit_count = hit_count + 1
WHERE account_id = %s AND pool_id = %s AND key = %s AND expires_at > %s
RETURNING *
"""

# checks the expiry again: a result may have been renewed before its pool was locked
DELETE_EXPIRED = """
WITH gone AS (
    DELETE FROM tool_cache_entries WHERE account_id = %s AND id = ANY(%s) AND expires_at <= %s
    RETURNING account_id, pool_id, octet_length(key) + octet_length(value::text) AS size_bytes
), freed AS (
    SELECT account_id, pool_id, count(*) AS entry_count, sum(size_bytes) AS size_bytes FROM gone
    GROUP BY account_id, pool_id
), counted AS (
    UPDATE memory_pools AS pool SET
        entry_count = greatest(pool.entry_count - freed.entry_count, 0),
        size_bytes = greatest(pool.size_bytes - freed.size_bytes, %s)
    FROM freed WHERE pool.account_id = freed.account_id AND pool.id = freed.pool_id
)
SELECT count(*) FROM gone
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolData:
    """A pool's data, or the part of it under a path, at a version."""

    data: Any
    version: int
    size_bytes: int
    """Size of the whole data."""
    row_id: UUID
    """Id of the pool's row. A pool created later with the same `pool_id` has another one, and versions from 1 again."""


def read_data(owner: Owner, pool_id: str, *, path: str = "", now: datetime) -> PoolData:
    """Return the data, or the part under a JSON Pointer, and count the read.

    Raises NotFound for the pool or the path, Unprocessable for an invalid path and for pools without data.
    """
    tokens = parse_path(path)
    # PostgreSQL follows the path, so that one value of a large pool does not transfer all of it
    followed = () if any(NOT_AN_INDEX.fullmatch(token) for token in tokens) else tokens
    part = Cast(path_expression(followed), TextField())
    columns = visible_pools(owner, pool_id, now=now).annotate(part=part)
    row = columns.values_list("id", "pool_type", "version", "size_bytes", "part").first()
    found, pool_type, version, size_bytes, text = require_found(row, "pool")
    check_has_data(pool_type)
    data = ABSENT if text is None else value_at(from_json(text), tokens[len(followed) :])
    if data is ABSENT:
        raise NotFound("the pool's data has nothing under this path")
    record_pool_read(owner, found, now=now)
    return PoolData(data=data, version=version, size_bytes=size_bytes, row_id=found)


def path_expression(tokens: PathTokens) -> Func:
    """Return the SQL expression for the part of `data` under the path: null if there is none.

    JSON's own null is the text `null`.
    """
    path = Value(list(tokens), output_field=ArrayField(TextField()))
    return Func(F("data"), path, template="(%(expressions)s)", arg_joiner=" #> ", output_field=VerbatimJSONField())


def check_has_data(pool_type: str) -> None:
    if pool_type in TYPES_WITHOUT_DATA:
        raise Unprocessable("tool caches and blackboards have no data: read their cached results or postings instead")


@masks_secrets
def write_data(
    owner: Owner, pool_id: str, *, path: str = "", data: Any, expected: ExpectedVersions, now: datetime
) -> PoolData:
    """Replace the data under the path, or all of it without a path, and return the whole.

    Missing objects on the way are created; "-" appends to a list. Raises NotFound, Forbidden, StaleVersion, TooLarge,
    and Unprocessable if the path leads through anything but objects and lists, or the whole would not be an object.
    Nothing changes then.
    """
    tokens = check_path_and_data(path, data)
    return change_data(owner, pool_id, lambda stored: set_value_at(stored, tokens, data), expected=expected, now=now)


@masks_secrets
def merge_data(
    owner: Owner, pool_id: str, *, path: str = "", data: Any, expected: ExpectedVersions, now: datetime
) -> PoolData:
    """Merge the data into the existing data: objects by name at every depth, everything else is replaced.

    Null is a value and deletes nothing. Returns and raises as `write_data`.
    """
    tokens = check_path_and_data(path, data)
    return change_data(owner, pool_id, lambda stored: merge_value_at(stored, tokens, data), expected=expected, now=now)


def check_path_and_data(path: str, data: Any) -> PathTokens:
    """Return the parsed path. Raises Unprocessable for an invalid path, or for data that cannot be stored under it."""
    tokens = parse_path(path)
    check_storable(data, below=len(tokens))
    return tokens


def change_data(
    owner: Owner, pool_id: str, change: DataChange, *, expected: ExpectedVersions, now: datetime
) -> PoolData:
    with transaction.atomic():
        pool = lock_pool(owner, pool_id, now=now)
        check_version(pool.version, expected, row_id=pool.id)
        check_has_data(pool.pool_type)
        data = change(pool.data)
        measured = measure_document(data, limit_bytes=conf.POOL_LIMIT_BYTES)
        # the measured text, so that the value is not serialized twice
        content = {"data": Cast(Value(measured.text), VerbatimJSONField()), "entry_count": measured.entry_count}
        update_pool_content(pool, content | {"size_bytes": measured.size_bytes}, now=now)
        record_audit(
            owner, operation="update", memory_type="pool", affected_ids=[pool.id], metadata={"columns": ["data"]}
        )
        register_agent(owner.account_id, owner.agent_id)
    return PoolData(data=data, version=pool.version + 1, size_bytes=measured.size_bytes, row_id=pool.id)


def update_pool_content(pool: MemoryPool, columns: Mapping[str, Any], *, now: datetime) -> None:
    """Store these columns of a locked pool, its counts among them, as its next version. One UPDATE."""
    MemoryPool.objects.filter(account_id=pool.account_id, id=pool.id).update(
        **columns,
        version=pool.version + 1,
        write_count=F("write_count") + 1,
        last_accessed_at=now,
        updated_at=now,
    )


@masks_secrets
def post_to_blackboard(owner: Owner, pool_id: str, *, content: Any, now: datetime) -> BlackboardPosting:
    """Append any JSON value to a blackboard. Postings are never changed or deleted.

    Raises NotFound, Forbidden, TooLarge, Conflict after the run has ended, Unprocessable for a pool of another type.
    """
    check_storable(content)
    size_bytes = len(json_text(content).encode())
    with transaction.atomic():
        pool = require_pool_type(lock_pool(owner, pool_id, now=now), PoolType.BLACKBOARD)
        posting = BlackboardPosting(
            account_id=pool.account_id,
            pool=pool,
            position=pool.entry_count,
            agent_id=owner.agent_id,
            content=content,
            created_at=now,
        )
        check_pool_size(pool.size_bytes + size_bytes)
        posting.save(force_insert=True)
        update_pool_content(
            pool, {"entry_count": pool.entry_count + 1, "size_bytes": pool.size_bytes + size_bytes}, now=now
        )
        record_audit(owner, operation="append", memory_type="pool", affected_ids=[pool.id, posting.id])
        register_agent(owner.account_id, owner.agent_id)
    return posting


def read_postings(
    owner: Owner, pool_id: str, *, after: int | None = None, now: datetime
) -> QuerySet[BlackboardPosting, BlackboardPosting]:
    """Return the postings after position `after`, in the order of posting, and count a read of the pool.

    Raises NotFound, Unprocessable for a pool of another type.
    """
    pool = require_pool_type(find_pool(owner, pool_id, now=now), PoolType.BLACKBOARD)
    record_pool_read(owner, pool.id, now=now)
    rows = BlackboardPosting.objects.filter(account_id=pool.account_id, pool_id=pool.id).order_by("position")
    return rows if after is None else rows.filter(position__gt=after)


@masks_secrets
def cache_result(
    owner: Owner, pool_id: str, key: str, *, value: Any, ttl_seconds: int | None = None, now: datetime
) -> ToolCacheEntry:
    """Cache a tool's result (any JSON value) under a key, replacing the old one; it expires after `ttl_seconds`.

    The default is TOOL_CACHE_TTL_SECONDS. Raises as `post_to_blackboard`.
    """
    check_storable(value)
    text = keyed_json(value)
    ttl = conf.TOOL_CACHE_TTL_SECONDS if ttl_seconds is None else ttl_seconds
    if not 1 <= ttl <= MAX_RESULT_TTL_SECONDS:
        raise Unprocessable(f"ttl_seconds must be from 1 to {MAX_RESULT_TTL_SECONDS}")
    own_bytes = len(check_result_key(key).encode()) + len(text.encode())
    with transaction.atomic():
        pool = require_pool_type(lock_pool(owner, pool_id, now=now), PoolType.TOOL_CACHE)
        others, others_bytes = measure_other_results(pool, key)
        if others_bytes + own_bytes > conf.POOL_LIMIT_BYTES:
            others, others_bytes = delete_expired_and_measure(pool, key, now=now)
        check_pool_size(others_bytes + own_bytes)
        entry = upsert_result(owner, pool, key, text=text, ttl_seconds=ttl, now=now)
        update_pool_content(pool, {"entry_count": others + 1, "size_bytes": others_bytes + own_bytes}, now=now)
        record_audit(owner, operation="update", memory_type="pool", affected_ids=[pool.id, entry.id])
        register_agent(owner.account_id, owner.agent_id)
    return entry


def measure_other_results(pool: MemoryPool, key: str) -> tuple[int, int]:
    """Return the locked pool's number of results under other keys, and its bytes without this key.

    Both come from the stored counts, without reading the other rows.
    """
    count, size_bytes = ToolCacheEntry.objects.of_pool(pool).filter(key=key).count_and_size()
    return max(pool.entry_count - count, 0), max(pool.size_bytes - size_bytes, EMPTY_BYTES)


def delete_expired_and_measure(pool: MemoryPool, key: str, *, now: datetime) -> tuple[int, int]:
    """Delete expired results, then return as `measure_other_results`, counted from the rows."""
    others = ToolCacheEntry.objects.of_pool(pool).exclude(key=key)
    others.filter(expires_at__lte=now).delete()
    count, size_bytes = others.count_and_size()
    return count, EMPTY_BYTES + size_bytes


def upsert_result(
    owner: Owner, pool: MemoryPool, key: str, *, text: str, ttl_seconds: int, now: datetime
) -> ToolCacheEntry:
    """Insert or replace the result and return its row, which keeps its id. `text` is the value as JSON."""
    expires_at = now + timedelta(seconds=ttl_seconds)
    columns = [uuid7(), pool.account_id, pool.id, key, text, owner.agent_id, ttl_seconds, expires_at, now, now]
    return ToolCacheEntry.objects.raw(UPSERT, columns)[0]


def find_cached_result(owner: Owner, pool_id: str, key: str, *, now: datetime) -> ToolCacheEntry:
    """Return a live result and count the hit. The lookup counts as a read of the pool, whether it is found or not.

    Raises NotFound, Unprocessable for a pool of another type.
    """
    pool = require_pool_type(find_pool(owner, pool_id, now=now), PoolType.TOOL_CACHE)
    # lock the pool before the entry, as writers do
    record_pool_read(owner, pool.id, now=now)
    found = ToolCacheEntry.objects.raw(COUNT_HIT, [pool.account_id, pool.id, check_result_key(key), now])
    return require_found(next(iter(found), None), "key")


def delete_cached_result(owner: Owner, pool_id: str, key: str, *, now: datetime) -> bool:
    """Delete a result, with the kept answers that quote it, and return True if there was a live one.

    Raises NotFound for the pool, not for the key; otherwise as `cache_result`.
    """
    with transaction.atomic():
        pool = require_pool_type(lock_pool(owner, pool_id, now=now), PoolType.TOOL_CACHE)
        others, others_bytes = measure_other_results(pool, check_result_key(key))
        found = ToolCacheEntry.objects.of_pool(pool).live(now).filter(key=key)
        ids = list(found.values_list("id", flat=True))
        if ids:
            erase_traces_of_rows(owner, ids, quoted_in=Q(pk__in=[]), since=pool.created_at)
        forgotten, _ = found.delete()
        if forgotten:
            update_pool_content(pool, {"entry_count": others, "size_bytes": others_bytes}, now=now)
            record_audit(owner, operation="delete", memory_type="pool", affected_ids=[pool.id])
    return bool(forgotten)


def delete_expired_results(account_id: UUID, ids: Sequence[UUID], *, now: datetime) -> int:
    """Delete those of these results that have expired, update their pools' counts, and return their number."""
    expired = ToolCacheEntry.objects.filter(account_id=account_id, id__in=ids, expires_at__lte=now)
    with transaction.atomic():
        # lock the pools before the entries, as writers do
        pools = MemoryPool.objects.filter(account_id=account_id, id__in=expired.values("pool_id"))
        list(pools.order_by("id").select_for_update(no_key=True).values_list("id"))
        [(deleted,)] = fetch_rows(DELETE_EXPIRED, [account_id, list(ids), now, EMPTY_BYTES])
    return int(deleted)


def live_results(owner: Owner, pool_id: str, *, now: datetime) -> QuerySet[ToolCacheEntry, ToolCacheEntry]:
    """Return the results that have not expired, without their values. Raises as `find_cached_result`."""
    pool = require_pool_type(find_pool(owner, pool_id, now=now), PoolType.TOOL_CACHE)
    return ToolCacheEntry.objects.of_pool(pool).live(now).defer("value")


def require_pool_type(pool: MemoryPool, pool_type: PoolType) -> MemoryPool:
    """Return the pool. Raises Unprocessable if it is of another type."""
    if pool.pool_type != pool_type:
        raise Unprocessable(f"the pool must be of type {pool_type.value}, not {pool.pool_type}")
    return pool


def check_pool_size(size_bytes: int) -> None:
    """Raise TooLarge if a pool of this total size would exceed POOL_LIMIT_BYTES."""
    check_size(size_bytes, limit_bytes=conf.POOL_LIMIT_BYTES, what="the pool would have")


def check_result_key(key: str) -> str:
    try:
        return check_name(key)
    except ValueError:
        # no cause, because its message may quote the key
        raise Unprocessable(
            f"a key must have 1 to {MAX_NAME_CHARACTERS} characters, no NUL and no lone surrogate"
        ) from None


def record_pool_read(owner: Owner, pool_id: UUID, *, now: datetime) -> None:
    """Count a read of the pool, and audit it if the account's level keeps reads."""
    rows = MemoryPool.objects.filter(account_id=owner.account_id, id=pool_id)
    rows.update(read_count=F("read_count") + 1, last_accessed_at=now)
    record_read(owner, memory_type="pool", affected_ids=[pool_id])
