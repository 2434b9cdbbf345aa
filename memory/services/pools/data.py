"""The data of memory pools: read and write it whole or by path, and merge deeply. Each write makes a new version."""

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
from memory.audit import record_audit
from memory.errors import NotFound, Unprocessable
from memory.models import MemoryPool
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.accounts.register import register_agent
from memory.services.audit import record_read
from memory.services.pools.manage import lock_pool, visible_pools
from memory.tiers.base import from_json
from memory.tiers.json_documents import (
    ABSENT,
    MeasuredDocument,
    PathTokens,
    check_storable,
    measure_document,
    merge_value_at,
    parse_path,
    set_value_at,
    value_at,
)
from memory_project.fields import VerbatimJSONField

TYPES_WITHOUT_DATA = (MemoryPool.PoolType.TOOL_CACHE, MemoryPool.PoolType.BLACKBOARD)
"""Types of pools whose content is rows instead of `data`."""

# texts that PostgreSQL accepts as a list index but RFC 6901 does not: with signs, blanks or leading zeros
NOT_AN_INDEX = re.compile(r"(?!(?:0|[1-9][0-9]*)\Z)\s*[+-]?[0-9]+")

DataChange = Callable[[dict[str, Any]], dict[str, Any]]


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
    if row is None:
        raise NotFound("no such pool")
    found, pool_type, version, size_bytes, text = row
    check_has_data(pool_type)
    data = ABSENT if text is None else value_at(from_json(text), tokens[len(followed) :])
    if data is ABSENT:
        raise NotFound("the pool's data has nothing under this path")
    MemoryPool.objects.filter(id=found).update(read_count=F("read_count") + 1, last_accessed_at=now)
    record_read(owner, memory_type="pool", affected_ids=[found])
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
        store_data(pool, measured, now=now)
        record_audit(
            owner, operation="update", memory_type="pool", affected_ids=[pool.id], metadata={"columns": ["data"]}
        )
        register_agent(owner.account_id, owner.agent_id)
    return PoolData(data=data, version=pool.version + 1, size_bytes=measured.size_bytes, row_id=pool.id)


def store_data(pool: MemoryPool, measured: MeasuredDocument, *, now: datetime) -> None:
    """Store the data of a locked pool in one UPDATE."""
    MemoryPool.objects.filter(id=pool.id).update(
        # the measured text, so that the value is not serialized twice
        data=Cast(Value(measured.text), VerbatimJSONField()),
        version=pool.version + 1,
        entry_count=measured.entry_count,
        size_bytes=measured.size_bytes,
        write_count=F("write_count") + 1,
        last_accessed_at=now,
        updated_at=now,
    )
