"""Blackboards and tool caches (P7): postings and cached results that the agents of a workflow run share.

Both are rows that belong to a pool, which is locked while one is written or deleted. The pool's counts and size limit
cover all of them, including expired rows that have not been deleted yet.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet

from memory import conf
from memory.audit import record_audit
from memory.errors import NotFound, TooLarge, Unprocessable
from memory.models import BlackboardPosting, MemoryPool, ToolCacheEntry
from memory.owner import Owner
from memory.services.accounts.register import register_agent
from memory.services.audit import record_read
from memory.services.pools.manage import EMPTY_BYTES, find_pool, lock_pool
from memory.tiers.base import MAX_NAME_CHARACTERS, check_name, keyed_json
from memory.tiers.json_documents import check_storable, json_text
from memory_project.ids import uuid7

PoolType = MemoryPool.PoolType

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
    DELETE FROM tool_cache_entries WHERE id = ANY(%s) AND expires_at <= %s
    RETURNING pool_id, octet_length(key) + octet_length(value::text) AS size_bytes
), freed AS (
    SELECT pool_id, count(*) AS entry_count, sum(size_bytes) AS size_bytes FROM gone GROUP BY pool_id
), counted AS (
    UPDATE memory_pools AS pool SET
        entry_count = greatest(pool.entry_count - freed.entry_count, 0),
        size_bytes = greatest(pool.size_bytes - freed.size_bytes, %s)
    FROM freed WHERE pool.id = freed.pool_id
)
SELECT count(*) FROM gone
"""


def post_to_blackboard(owner: Owner, pool_id: str, *, content: Any, now: datetime) -> BlackboardPosting:
    """Append any JSON value to a blackboard. Postings are never changed or deleted.

    Raises NotFound, Forbidden, TooLarge, Conflict after the run has ended, Unprocessable for a pool of another type.
    """
    check_storable(content)
    size_bytes = len(json_text(content).encode())
    with transaction.atomic():
        pool = lock_pool_of_type(owner, pool_id, PoolType.BLACKBOARD, now=now)
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
        update_pool_counts(pool, entry_count=pool.entry_count + 1, size_bytes=pool.size_bytes + size_bytes, now=now)
        record_audit(owner, operation="append", memory_type="pool", affected_ids=[pool.id, posting.id])
        register_agent(owner.account_id, owner.agent_id)
    return posting


def read_postings(
    owner: Owner, pool_id: str, *, after: int | None = None, now: datetime
) -> QuerySet[BlackboardPosting, BlackboardPosting]:
    """Return the postings after position `after`, in the order of posting, and count a read of the pool.

    Raises NotFound, Unprocessable for a pool of another type.
    """
    pool = find_pool_of_type(owner, pool_id, PoolType.BLACKBOARD, now=now)
    record_pool_read(owner, pool, now=now)
    rows = BlackboardPosting.objects.filter(account_id=pool.account_id, pool_id=pool.id).order_by("position")
    return rows if after is None else rows.filter(position__gt=after)


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
        pool = lock_pool_of_type(owner, pool_id, PoolType.TOOL_CACHE, now=now)
        others, others_bytes = measure_other_results(pool, key)
        if others_bytes + own_bytes > conf.POOL_LIMIT_BYTES:
            others, others_bytes = delete_expired_and_measure(pool, key, now=now)
        check_pool_size(others_bytes + own_bytes)
        entry = upsert_result(owner, pool, key, text=text, ttl_seconds=ttl, now=now)
        update_pool_counts(pool, entry_count=others + 1, size_bytes=others_bytes + own_bytes, now=now)
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
    pool = find_pool_of_type(owner, pool_id, PoolType.TOOL_CACHE, now=now)
    # lock the pool before the entry, as writers do
    record_pool_read(owner, pool, now=now)
    found = list(ToolCacheEntry.objects.raw(COUNT_HIT, [pool.account_id, pool.id, check_result_key(key), now]))
    if not found:
        raise NotFound("no such key")
    return found[0]


def delete_cached_result(owner: Owner, pool_id: str, key: str, *, now: datetime) -> bool:
    """Delete a result and return True if there was a live one.

    Raises NotFound for the pool, not for the key; otherwise as `cache_result`.
    """
    with transaction.atomic():
        pool = lock_pool_of_type(owner, pool_id, PoolType.TOOL_CACHE, now=now)
        others, others_bytes = measure_other_results(pool, check_result_key(key))
        forgotten, _ = ToolCacheEntry.objects.of_pool(pool).live(now).filter(key=key).delete()
        if forgotten:
            update_pool_counts(pool, entry_count=others, size_bytes=others_bytes, now=now)
            record_audit(owner, operation="delete", memory_type="pool", affected_ids=[pool.id])
    return bool(forgotten)


def delete_expired_results(ids: Sequence[UUID], *, now: datetime) -> int:
    """Delete those of these results that have expired, update their pools' counts, and return their number."""
    expired = ToolCacheEntry.objects.filter(id__in=ids, expires_at__lte=now)
    with transaction.atomic():
        # lock the pools before the entries, as writers do
        pools = MemoryPool.objects.filter(id__in=expired.values("pool_id"))
        list(pools.order_by("id").select_for_update(no_key=True).values_list("id"))
        with connection.cursor() as cursor:
            cursor.execute(DELETE_EXPIRED, [list(ids), now, EMPTY_BYTES])
            return int(cursor.fetchone()[0])


def live_results(owner: Owner, pool_id: str, *, now: datetime) -> QuerySet[ToolCacheEntry, ToolCacheEntry]:
    """Return the results that have not expired, without their values. Raises as `find_cached_result`."""
    pool = find_pool_of_type(owner, pool_id, PoolType.TOOL_CACHE, now=now)
    return ToolCacheEntry.objects.of_pool(pool).live(now).defer("value")


def find_pool_of_type(owner: Owner, pool_id: str, pool_type: PoolType, *, now: datetime) -> MemoryPool:
    pool = find_pool(owner, pool_id, now=now)
    check_pool_type(pool, pool_type)
    return pool


def lock_pool_of_type(owner: Owner, pool_id: str, pool_type: PoolType, *, now: datetime) -> MemoryPool:
    pool = lock_pool(owner, pool_id, now=now)
    check_pool_type(pool, pool_type)
    return pool


def check_pool_type(pool: MemoryPool, pool_type: PoolType) -> None:
    if pool.pool_type != pool_type:
        raise Unprocessable(f"the pool must be of type {pool_type.value}, not {pool.pool_type}")


def check_pool_size(size_bytes: int) -> None:
    """Raise TooLarge if a pool of this total size would exceed POOL_LIMIT_BYTES."""
    limit_bytes = conf.POOL_LIMIT_BYTES
    if size_bytes > limit_bytes:
        message = f"the pool would have {size_bytes} bytes, but {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)


def check_result_key(key: str) -> str:
    try:
        return check_name(key)
    except ValueError:
        # no cause, because its message may quote the key
        raise Unprocessable(
            f"a key must have 1 to {MAX_NAME_CHARACTERS} characters, no NUL and no lone surrogate"
        ) from None


def update_pool_counts(pool: MemoryPool, *, entry_count: int, size_bytes: int, now: datetime) -> None:
    """Store the new counts of a locked pool."""
    MemoryPool.objects.filter(id=pool.id).update(
        entry_count=entry_count,
        size_bytes=size_bytes,
        version=F("version") + 1,
        write_count=F("write_count") + 1,
        last_accessed_at=now,
        updated_at=now,
    )


def record_pool_read(owner: Owner, pool: MemoryPool, *, now: datetime) -> None:
    MemoryPool.objects.filter(id=pool.id).update(read_count=F("read_count") + 1, last_accessed_at=now)
    record_read(owner, memory_type="pool", affected_ids=[pool.id])
