"""What a memory pool holds: read and written whole or by path, merged deeply; a version a write."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import transaction
from django.db.models import F, Func, TextField, Value
from django.db.models.functions import Cast

from memory import conf
from memory.audit import record
from memory.errors import NotFound, Unprocessable
from memory.models import MemoryPool
from memory.owner import Owner
from memory.services.accounts.access import Versions, check_version
from memory.services.accounts.register import note_agent
from memory.services.audit.log import record_read
from memory.services.pools.manage import lock_pool, visible_pools
from memory.tiers.base import from_json
from memory.tiers.json_documents import (
    ABSENT,
    Measured,
    Tokens,
    check_part,
    measure,
    parse_path,
    value_at,
    with_merged,
    with_value,
)
from memory_project.fields import VerbatimJSONField

OF_ROWS = (MemoryPool.PoolType.TOOL_CACHE, MemoryPool.PoolType.BLACKBOARD)
"""Types of pools that hold rows, and no `data`."""

# PostgreSQL takes more for an index than RFC 6901 does: signs, blanks and zeros before it
NO_INDEX = re.compile(r"(?!(?:0|[1-9][0-9]*)\Z)\s*[+-]?[0-9]+")

Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolData:
    """A pool's data, or the part of it that a path leads to, at a version."""

    data: Any
    version: int
    size_bytes: int
    """Of the whole."""
    row_id: UUID
    """Of the pool. One that is made with its `pool_id` after it is another, whose versions begin at 1 again."""


def read_data(owner: Owner, pool_id: str, *, path: str = "", now: datetime) -> PoolData:
    """The data, or its part under a JSON Pointer; counted as a read.

    Raises NotFound for the pool as for the path, Unprocessable for what is no path and for pools without data.
    """
    tokens = parse_path(path)
    # PostgreSQL follows the path, so that a large pool is not carried here for the sake of one value
    followed = () if any(NO_INDEX.fullmatch(token) for token in tokens) else tokens
    part = Cast(follow(followed), TextField())
    columns = visible_pools(owner, pool_id, now=now).annotate(part=part)
    row = columns.values_list("id", "pool_type", "version", "size_bytes", "part").first()
    if row is None:
        raise NotFound("no such pool")
    found, pool_type, version, size_bytes, text = row
    check_has_data(pool_type)
    data = ABSENT if text is None else value_at(from_json(text), tokens[len(followed) :])
    if data is ABSENT:
        raise NotFound("the path leads nowhere")
    MemoryPool.objects.filter(id=found).update(read_count=F("read_count") + 1, last_accessed_at=now)
    record_read(owner, memory_type="pool", affected_ids=[found])
    return PoolData(data=data, version=version, size_bytes=size_bytes, row_id=found)


def follow(tokens: Tokens) -> Func:
    """The part of `data` in SQL, null where there is none; JSON's null is the text `null`."""
    path = Value(list(tokens), output_field=ArrayField(TextField()))
    return Func(F("data"), path, template="(%(expressions)s)", arg_joiner=" #> ", output_field=VerbatimJSONField())


def check_has_data(pool_type: str) -> None:
    if pool_type in OF_ROWS:
        raise Unprocessable("a tool cache has entries and a blackboard postings: such a pool has no data")


def write_data(owner: Owner, pool_id: str, *, path: str = "", data: Any, expected: Versions, now: datetime) -> PoolData:
    """Put the data in place of what is there, of all of it without a path. Answers the whole as it is then.

    Missing objects on the way are made; "-" appends to a list. Raises NotFound, Forbidden, StaleVersion, TooLarge, and
    Unprocessable where the path leads through something that is no object and no list, or the whole would be no
    object. Nothing changes then.
    """
    tokens = path_to(path, data)
    return change_data(owner, pool_id, lambda stored: with_value(stored, tokens, data), expected=expected, now=now)


def merge_data(owner: Owner, pool_id: str, *, path: str = "", data: Any, expected: Versions, now: datetime) -> PoolData:
    """Merge the data into what is there: objects name by name, however deep; everything else is replaced.

    Null is a value and deletes nothing. Answers and raises as `write_data`.
    """
    tokens = path_to(path, data)
    return change_data(owner, pool_id, lambda stored: with_merged(stored, tokens, data), expected=expected, now=now)


def path_to(path: str, data: Any) -> Tokens:
    """The path of data that is to be stored there. Raises Unprocessable for either."""
    tokens = parse_path(path)
    check_part(data, below=len(tokens))
    return tokens


def change_data(owner: Owner, pool_id: str, change: Change, *, expected: Versions, now: datetime) -> PoolData:
    with transaction.atomic():
        pool = lock_pool(owner, pool_id, now=now)
        check_version(pool.version, expected, row_id=pool.id)
        check_has_data(pool.pool_type)
        data = change(pool.data)
        measured = measure(data, limit_bytes=conf.POOL_LIMIT_BYTES)
        store_data(pool, measured, now=now)
        record(owner, operation="update", memory_type="pool", affected_ids=[pool.id], metadata={"columns": ["data"]})
        note_agent(owner.account_id, owner.agent_id)
    return PoolData(data=data, version=pool.version + 1, size_bytes=measured.size_bytes, row_id=pool.id)


def store_data(pool: MemoryPool, measured: Measured, *, now: datetime) -> None:
    """In one UPDATE of a pool that is locked."""
    MemoryPool.objects.filter(id=pool.id).update(
        # the text that was measured, which need not be made again
        data=Cast(Value(measured.text), VerbatimJSONField()),
        version=pool.version + 1,
        entry_count=measured.entry_count,
        size_bytes=measured.size_bytes,
        write_count=F("write_count") + 1,
        last_accessed_at=now,
        updated_at=now,
    )
