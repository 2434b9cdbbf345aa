"""What workflow runs share besides data (P7): postings on a blackboard, and the results of tools.

Both are rows beside their pool, which is locked while one is written or deleted: its counts and its limit hold for all
of them, those included that have expired and are there still.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet

from memory import conf
from memory.audit import record
from memory.errors import NotFound, TooLarge, Unprocessable
from memory.models import BlackboardPosting, MemoryPool, ToolCacheEntry
from memory.owner import Owner
from memory.services.accounts.register import note_agent
from memory.services.audit.log import record_read
from memory.services.pools.manage import EMPTY_BYTES, find_pool, lock_pool
from memory.tiers.base import NAME_LENGTH, check_name, keyed_json
from memory.tiers.json_documents import check_part, json_text
from memory_project.ids import uuid7

PoolType = MemoryPool.PoolType

MOST_TTL_SECONDS = 2_592_000

# the text that was measured, as it stands; another result has not been hit yet
UPSERT = """
INSERT INTO tool_cache_entries
    (id, account_id, pool_id, key, value, agent_id, ttl_seconds, expires_at, hit_count, created_at, updated_at)
VALUES (%s, %s, %s, %s, %s::json, %s, %s, %s, 0, %s, %s)
ON CONFLICT (account_id, pool_id, key) DO UPDATE SET
    value = EXCLUDED.value, agent_id = EXCLUDED.agent_id, ttl_seconds = EXCLUDED.ttl_seconds,
    expires_at = EXCLUDED.expires_at, hit_count = 0, created_at = EXCLUDED.created_at, updated_at = EXCLUDED.updated_at
RETURNING *
"""

HIT = """
UPDATE tool_cache_entries SET hit_count = hit_count + 1
WHERE account_id = %s AND pool_id = %s AND key = %s AND expires_at > %s
RETURNING *
"""

# who renewed one meanwhile had its pool locked
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


def post(owner: Owner, pool_id: str, *, content: Any, now: datetime) -> BlackboardPosting:
    """Post any JSON value on a blackboard, behind all that is there; nothing changes it or takes it away.

    Raises NotFound, Forbidden, TooLarge, Conflict once the run has ended, Unprocessable for a pool of another type.
    """
    check_part(content)
    size_bytes = len(json_text(content).encode())
    with transaction.atomic():
        pool = lock_pool_of(owner, pool_id, PoolType.BLACKBOARD, now=now)
        posting = BlackboardPosting(
            account_id=pool.account_id,
            pool=pool,
            position=pool.entry_count,
            agent_id=owner.agent_id,
            content=content,
            created_at=now,
        )
        check_size(pool.size_bytes + size_bytes)
        posting.save(force_insert=True)
        note_write(pool, entry_count=pool.entry_count + 1, size_bytes=pool.size_bytes + size_bytes, now=now)
        record(owner, operation="append", memory_type="pool", affected_ids=[pool.id, posting.id])
        note_agent(owner.account_id, owner.agent_id)
    return posting


def postings(
    owner: Owner, pool_id: str, *, after: int | None = None, now: datetime
) -> QuerySet[BlackboardPosting, BlackboardPosting]:
    """In the order in which they were posted, those behind position `after`; counted as a read of the pool.

    Raises NotFound, Unprocessable for a pool of another type.
    """
    pool = find_pool_of(owner, pool_id, PoolType.BLACKBOARD, now=now)
    note_read(owner, pool, now=now)
    rows = BlackboardPosting.objects.filter(account_id=pool.account_id, pool_id=pool.id).order_by("position")
    return rows if after is None else rows.filter(position__gt=after)


def cache_result(
    owner: Owner, pool_id: str, key: str, *, value: Any, ttl_seconds: int | None = None, now: datetime
) -> ToolCacheEntry:
    """Keep a tool's result, any JSON value, in place of the one of this key: TOOL_CACHE_TTL_SECONDS unless it says.

    Raises as `post`.
    """
    check_part(value)
    text = keyed_json(value)
    ttl = check_ttl(conf.TOOL_CACHE_TTL_SECONDS if ttl_seconds is None else ttl_seconds)
    own_bytes = len(check_key(key).encode()) + len(text.encode())
    with transaction.atomic():
        pool = lock_pool_of(owner, pool_id, PoolType.TOOL_CACHE, now=now)
        others, others_bytes = held_besides(pool, key)
        if others_bytes + own_bytes > conf.POOL_LIMIT_BYTES:
            others, others_bytes = make_room(pool, key, now=now)
        check_size(others_bytes + own_bytes)
        entry = upsert(owner, pool, key, text=text, ttl_seconds=ttl, now=now)
        note_write(pool, entry_count=others + 1, size_bytes=others_bytes + own_bytes, now=now)
        record(owner, operation="update", memory_type="pool", affected_ids=[pool.id, entry.id])
        note_agent(owner.account_id, owner.agent_id)
    return entry


def held_besides(pool: MemoryPool, key: str) -> tuple[int, int]:
    """How many results a pool that is locked has under other keys, and its bytes then: without looking at them."""
    count, size_bytes = ToolCacheEntry.objects.of_pool(pool).filter(key=key).measured()
    return max(pool.entry_count - count, 0), max(pool.size_bytes - size_bytes, EMPTY_BYTES)


def make_room(pool: MemoryPool, key: str, *, now: datetime) -> tuple[int, int]:
    """As `held_besides`, counted anew after what has expired is deleted."""
    others = ToolCacheEntry.objects.of_pool(pool).exclude(key=key)
    others.filter(expires_at__lte=now).delete()
    count, size_bytes = others.measured()
    return count, EMPTY_BYTES + size_bytes


def upsert(owner: Owner, pool: MemoryPool, key: str, *, text: str, ttl_seconds: int, now: datetime) -> ToolCacheEntry:
    """The row as it is stored; where there was one, it keeps its id. `text` is the value as JSON."""
    expires_at = now + timedelta(seconds=ttl_seconds)
    columns = [uuid7(), pool.account_id, pool.id, key, text, owner.agent_id, ttl_seconds, expires_at, now, now]
    return ToolCacheEntry.objects.raw(UPSERT, columns)[0]


def find_cached(owner: Owner, pool_id: str, key: str, *, now: datetime) -> ToolCacheEntry:
    """A result that has not expired, its hit counted. That it was asked for is a read of the pool, found or not.

    Raises NotFound, Unprocessable for a pool of another type.
    """
    pool = find_pool_of(owner, pool_id, PoolType.TOOL_CACHE, now=now)
    # the pool before the entry, as who writes locks them
    note_read(owner, pool, now=now)
    found = list(ToolCacheEntry.objects.raw(HIT, [pool.account_id, pool.id, check_key(key), now]))
    if not found:
        raise NotFound("no such key")
    return found[0]


def forget_cached(owner: Owner, pool_id: str, key: str, *, now: datetime) -> bool:
    """Whether there was one. Raises NotFound for the pool alone; else as `post`."""
    with transaction.atomic():
        pool = lock_pool_of(owner, pool_id, PoolType.TOOL_CACHE, now=now)
        others, others_bytes = held_besides(pool, check_key(key))
        forgotten, _ = ToolCacheEntry.objects.of_pool(pool).live(now).filter(key=key).delete()
        if forgotten:
            note_write(pool, entry_count=others, size_bytes=others_bytes, now=now)
            record(owner, operation="delete", memory_type="pool", affected_ids=[pool.id])
    return bool(forgotten)


def delete_expired_results(ids: Sequence[UUID], *, now: datetime) -> int:
    """How many of these results there were that had expired. Their pools count them no more."""
    expired = ToolCacheEntry.objects.filter(id__in=ids, expires_at__lte=now)
    with transaction.atomic():
        # the pools before the entries, as who writes locks them
        pools = MemoryPool.objects.filter(id__in=expired.values("pool_id"))
        list(pools.order_by("id").select_for_update(no_key=True).values_list("id"))
        with connection.cursor() as cursor:
            cursor.execute(DELETE_EXPIRED, [list(ids), now, EMPTY_BYTES])
            return int(cursor.fetchone()[0])


def cached_keys(owner: Owner, pool_id: str, *, now: datetime) -> QuerySet[ToolCacheEntry, ToolCacheEntry]:
    """The results that have not expired, without their values. Raises as `find_cached`."""
    pool = find_pool_of(owner, pool_id, PoolType.TOOL_CACHE, now=now)
    return ToolCacheEntry.objects.of_pool(pool).live(now).defer("value")


def find_pool_of(owner: Owner, pool_id: str, pool_type: PoolType, *, now: datetime) -> MemoryPool:
    pool = find_pool(owner, pool_id, now=now)
    check_type(pool, pool_type)
    return pool


def lock_pool_of(owner: Owner, pool_id: str, pool_type: PoolType, *, now: datetime) -> MemoryPool:
    pool = lock_pool(owner, pool_id, now=now)
    check_type(pool, pool_type)
    return pool


def check_type(pool: MemoryPool, pool_type: PoolType) -> None:
    if pool.pool_type != pool_type:
        raise Unprocessable(f"the pool is no {pool_type.value}: it has none of these")


def check_size(size_bytes: int) -> None:
    """Of all that a pool would hold. Raises TooLarge."""
    limit_bytes = conf.POOL_LIMIT_BYTES
    if size_bytes > limit_bytes:
        message = f"the pool would have {size_bytes} bytes, {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)


def check_ttl(ttl_seconds: int) -> int:
    if not 1 <= ttl_seconds <= MOST_TTL_SECONDS:
        raise Unprocessable(f"a result is kept for 1 to {MOST_TTL_SECONDS} seconds")
    return ttl_seconds


def check_key(key: str) -> str:
    try:
        return check_name(key)
    except ValueError:
        # the message may quote it
        raise Unprocessable(f"a key has 1 to {NAME_LENGTH} characters, no NUL and no lone surrogate") from None


def note_write(pool: MemoryPool, *, entry_count: int, size_bytes: int, now: datetime) -> None:
    """Of a pool that is locked."""
    MemoryPool.objects.filter(id=pool.id).update(
        entry_count=entry_count,
        size_bytes=size_bytes,
        version=F("version") + 1,
        write_count=F("write_count") + 1,
        last_accessed_at=now,
        updated_at=now,
    )


def note_read(owner: Owner, pool: MemoryPool, *, now: datetime) -> None:
    MemoryPool.objects.filter(id=pool.id).update(read_count=F("read_count") + 1, last_accessed_at=now)
    record_read(owner, memory_type="pool", affected_ids=[pool.id])
