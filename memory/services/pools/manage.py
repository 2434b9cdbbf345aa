"""Memory pools (P2, P3): create, find, lock, change, share and delete them. Their content is in `data`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory import conf
from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import AccessControl, BlackboardPosting, Level, MemoryPool, ToolCacheEntry, WorkflowRun
from memory.models.pools import PoolQuerySet
from memory.owner import Owner
from memory.services.accounts.access import (
    ExpectedVersions,
    check_changeable,
    check_version,
    find_team_to_share_with,
    raise_manage_refused,
    raise_taken,
    raise_write_refused,
    save_shared_row,
    set_columns,
)
from memory.services.accounts.register import register_agent
from memory.services.conversations.lifecycle import MAX_ID_CHARACTERS, is_valid_id
from memory.services.custody.traces import erase_traces_of_rows
from memory.tiers.json_documents import check_storable, measure_document, require_object
from memory_project.ids import uuid7

Scope, PoolType = MemoryPool.Scope, MemoryPool.PoolType

EMPTY_BYTES = 2
"""Size of a pool's empty `data`, in bytes."""

CHANGEABLE = frozenset({"access_control", "expires_at"})
"""Columns that `change_pool` may change; `data` has its own functions."""

DEFAULT_SCOPES: Mapping[str, str] = {
    PoolType.SHARED: Scope.ACCOUNT,
    PoolType.AGENT_PRIVATE: Scope.AGENT,
    PoolType.TEAM_SHARED: Scope.TEAM,
    PoolType.TASK_SCOPED: Scope.TASK,
}
"""Default scope of a pool, by type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDraft:
    """A pool before it is created. An empty `pool_id` is generated; an empty `scope` is the default of the type."""

    pool_id: str = ""
    pool_type: str = PoolType.SHARED
    scope: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    access_control: AccessControl = field(default_factory=AccessControl)
    expires_at: datetime | None = None
    team_id: UUID | None = None
    task_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatistics:
    """Content of a pool, in entries and in bytes of compact JSON, and its numbers of reads and writes.

    Entries are the top-level names of its data, its postings, or its results that have not expired.
    """

    entry_count: int
    size_bytes: int
    limit_bytes: int
    read_count: int
    write_count: int
    last_accessed_at: datetime | None


@masks_secrets
def create_pool(owner: Owner, draft: PoolDraft, *, now: datetime) -> MemoryPool:
    """Create a pool owned by the acting agent.

    Raises as `raise_taken` if the account has a live pool with this id, even another agent's; TooLarge; Unprocessable
    for a type of workflow runs, a scope without its team or task, a team that the agent is not in, and an expiry in
    the past.
    """
    scope = draft.scope or DEFAULT_SCOPES.get(draft.pool_type, "")
    check_pool_draft(draft, scope=scope, now=now)
    pool = MemoryPool(**draft_columns(owner, draft), scope=scope, task_id=draft.task_id)
    with transaction.atomic():
        pool.team = find_team_to_share_with(owner, draft.team_id) if draft.team_id else None
        return insert_pool(owner, pool, now=now)


def draft_columns(owner: Owner, draft: PoolDraft) -> dict[str, Any]:
    """Return the columns that a pool takes from its draft as they are, and its owner."""
    return {
        "account_id": owner.account_id,
        "agent_id": owner.agent_id,
        "pool_id": draft.pool_id or str(uuid7()),
        "pool_type": draft.pool_type,
        "data": draft.data,
        "access_control": draft.access_control.model_dump(),
        "expires_at": draft.expires_at,
    }


def check_pool_draft(draft: PoolDraft, *, scope: str, now: datetime) -> None:
    """Raise Unprocessable for a draft that `create_pool` does not accept."""
    if draft.pool_type not in DEFAULT_SCOPES or scope not in Scope.values:
        raise Unprocessable(
            f"pool_type must be one of {', '.join(DEFAULT_SCOPES)}, and scope one of {', '.join(Scope.values)}; "
            "pools of other types are created in a workflow run"
        )
    check_pool_id(draft.pool_id)
    if scope == Scope.TEAM and draft.team_id is None:
        raise Unprocessable("team is required for scope team")
    if scope == Scope.TASK and not draft.task_id:
        raise Unprocessable("task_id is required for scope task")
    check_expiry(draft.expires_at, now=now)


def check_pool_id(pool_id: str) -> None:
    """Raise Unprocessable for an id that the database cannot store. An empty one is generated."""
    if pool_id and not is_valid_id(pool_id):
        raise Unprocessable(f"pool_id must have 1 to {MAX_ID_CHARACTERS} characters, no NUL and no lone surrogate")


def check_expiry(expires_at: datetime | None, *, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise Unprocessable("expires_at must be in the future")


def insert_pool(owner: Owner, pool: MemoryPool, *, now: datetime) -> MemoryPool:
    """Store a new pool with its audit entry, replacing an expired pool with its id. Runs in the caller's transaction.

    Raises as `raise_taken` if there is a live pool with this id; TooLarge; Unprocessable for what cannot be stored.
    """
    check_storable(require_object(pool.data))
    measured = measure_document(pool.data, limit_bytes=conf.POOL_LIMIT_BYTES)
    pool.entry_count, pool.size_bytes = measured.entry_count, measured.size_bytes
    delete_expired_pools(owner, MemoryPool.objects.filter(account_id=pool.account_id, pool_id=pool.pool_id), now=now)
    MemoryPool.objects.bulk_create([pool], ignore_conflicts=True)
    # None if another pool with this id was first; with the times that the database set
    stored = MemoryPool.objects.filter(account_id=pool.account_id, id=pool.id).defer("data").first()
    if stored is None:
        raise_taken(owner, visible_pools(owner, pool.pool_id, now=now), what="pool")
    record_audit(owner, operation="create", memory_type="pool", affected_ids=[pool.id])
    register_agent(owner.account_id, owner.agent_id)
    return stored


def delete_expired_pools(owner: Owner, rows: PoolQuerySet, *, now: datetime) -> None:
    expired = list(rows.filter(expires_at__lte=now).defer("data").select_for_update(of=("self",)))
    erase_traces_of_pools(owner, expired)
    for pool in expired:
        pool_id = pool.id
        pool.delete()
        record_audit(owner, operation="delete", memory_type="pool", affected_ids=[pool_id])


def forget_expired_pools(account_id: UUID, ids: Sequence[UUID], *, now: datetime) -> int:
    """Delete those of these pools that have expired, with their content and traces, and return their number."""
    rows = MemoryPool.objects.filter(account_id=account_id, id__in=ids, expires_at__lte=now)
    with transaction.atomic():
        expired = list(rows.order_by("id").defer("data").select_for_update(of=("self",)))
        erase_traces_of_pools(Owner(account_id=account_id), expired)
        MemoryPool.objects.filter(account_id=account_id, id__in=[pool.id for pool in expired]).delete()
    return len(expired)


def find_pool(owner: Owner, pool_id: str, *, now: datetime) -> MemoryPool:
    """Return a pool that the owner may read, without its `data`. Raises NotFound."""
    rows = visible_pools(owner, pool_id, now=now).select_related("workflow_run").defer("data")
    return require_found(rows.first(), "pool")


def visible_pools(owner: Owner, pool_id: str, *, now: datetime) -> PoolQuerySet:
    """Return a queryset of the readable live pool with this id, if any."""
    return MemoryPool.objects.visible_to(owner).live(now).filter(pool_id=pool_id)


def lock_pool(owner: Owner, pool_id: str, *, now: datetime) -> MemoryPool:
    """Return a pool that the owner may write to, locked until the transaction ends.

    Raises NotFound, Forbidden if it may only be read, Conflict if its workflow run has ended.
    """
    rows = MemoryPool.objects.writable_by(owner).live(now).filter(pool_id=pool_id)
    pool = rows.select_for_update(no_key=True, of=("self",)).first()
    if pool is None:
        raise_write_refused(visible_pools(owner, pool_id, now=now), what="pool")
    if pool.workflow_run_id is not None:
        check_run_is_running(owner, pool, now=now)
    return pool


def check_run_is_running(owner: Owner, pool: MemoryPool, *, now: datetime) -> None:
    """Check the pool's workflow run again; raises as `lock_pool`.

    It must run after the lock, because the statement that waited for the lock saw the run's old state.
    """
    rows = MemoryPool.objects.writable_by(owner).filter(id=pool.id)
    status = rows.values_list("workflow_run__status", flat=True).first()
    if status is None:
        raise_write_refused(visible_pools(owner, pool.pool_id, now=now), what="pool")
    if status != WorkflowRun.Status.RUNNING:
        raise Conflict("the workflow run has ended, and its pools are read-only")


def lock_managed_pool(owner: Owner, pool_id: str, *, expected: ExpectedVersions, now: datetime) -> MemoryPool:
    """Return a locked pool that the owner may grant, change and delete, without its `data`.

    Raises NotFound, Forbidden, StaleVersion.
    """
    rows = MemoryPool.objects.managed_by(owner).live(now).filter(pool_id=pool_id)
    pool = rows.defer("data").select_for_update(no_key=True, of=("self",)).first()
    if pool is None:
        raise_manage_refused(visible_pools(owner, pool_id, now=now), what="pool")
    check_version(pool.version, expected, row_id=pool.id)
    return pool


def change_pool(
    owner: Owner, pool_id: str, *, changes: Mapping[str, Any], expected: ExpectedVersions, now: datetime
) -> MemoryPool:
    """Change `expires_at` (None: never) or `access_control`, given whole as JSON.

    Raises NotFound, Forbidden, StaleVersion, Unprocessable.
    """
    check_changeable(changes, allowed=CHANGEABLE, what="pool")
    check_expiry(changes.get("expires_at"), now=now)
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        if pool.is_own and changes.get("expires_at") is not None:
            raise Unprocessable("expires_at cannot be set for an agent's own pool, which never expires")
        if changes:
            set_columns(pool, changes)
            save_shared_row(owner, pool, columns=list(changes), operation="update", now=now)
    return pool


def delete_pool(owner: Owner, pool_id: str, *, expected: ExpectedVersions, now: datetime) -> None:
    """Delete the pool with its content. Raises NotFound, Forbidden, StaleVersion."""
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        erase_traces_of_pools(owner, [pool])
        record_audit(owner, operation="delete", memory_type="pool", affected_ids=[pool.id])
        pool.delete()


def erase_traces_of_pools(owner: Owner, pools: Sequence[MemoryPool]) -> None:
    """Erase the kept answers that quote pools, their postings or results, and what the audit log has of them."""
    if not pools:
        return
    rows = {"account_id": owner.account_id, "pool_id__in": [pool.id for pool in pools]}
    parts = (model.objects.filter(**rows).values_list("id", flat=True) for model in (BlackboardPosting, ToolCacheEntry))
    names = (json.dumps({"pool_id": pool.pool_id}, ensure_ascii=False, separators=(",", ":")) for pool in pools)
    quoted_in = reduce(or_, (Q(body__contains=name[1:-1]) for name in names))
    ids = [*(pool.id for pool in pools), *chain(*parts)]
    erase_traces_of_rows(owner, ids, quoted_in=quoted_in, since=min(pool.created_at for pool in pools))


def grant_access(
    owner: Owner, pool_id: str, *, agent_id: str, level: Level, expected: ExpectedVersions, now: datetime
) -> MemoryPool:
    """Grant an agent access. Raises NotFound, Forbidden, StaleVersion, Unprocessable."""
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        pool.access_control = pool.grants.grant(agent_id, level).model_dump()
        save_shared_row(owner, pool, columns=["access_control"], operation="grant", now=now)
    return pool


def revoke_access(
    owner: Owner, pool_id: str, *, agent_id: str, level: Level = Level.READ, expected: ExpectedVersions, now: datetime
) -> MemoryPool:
    """Revoke an agent's granted access: `read` includes `write`. Raises as `grant_access`."""
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        pool.access_control = pool.grants.revoke(agent_id, level).model_dump()
        save_shared_row(owner, pool, columns=["access_control"], operation="revoke", now=now)
    return pool


def pool_statistics(owner: Owner, pool_id: str, *, now: datetime) -> PoolStatistics:
    """Return the statistics of a readable pool. Raises NotFound."""
    pool = find_pool(owner, pool_id, now=now)
    entry_count, size_bytes = measure_pool(pool, now=now)
    return PoolStatistics(
        entry_count=entry_count,
        size_bytes=size_bytes,
        limit_bytes=conf.POOL_LIMIT_BYTES,
        read_count=pool.read_count,
        write_count=pool.write_count,
        last_accessed_at=pool.last_accessed_at,
    )


def measure_pool(pool: MemoryPool, *, now: datetime) -> tuple[int, int]:
    """Return the number of entries and bytes: stored counts, except for tool caches, whose results expire unnoticed."""
    if pool.pool_type != PoolType.TOOL_CACHE:
        return pool.entry_count, pool.size_bytes
    entry_count, size_bytes = ToolCacheEntry.objects.of_pool(pool).live(now).count_and_size()
    return entry_count, EMPTY_BYTES + size_bytes


def ensure_own_pool(owner: Owner, *, now: datetime) -> MemoryPool:
    """Return the pool of the agent's keyed values, without its `data`, creating it if it is new.

    Concurrent calls create one. Raises Unprocessable for an owner without an agent.
    """
    if not owner.agent_id:
        raise Unprocessable("keyed values belong to an agent: name an agent_id")
    mine = find_own_pool(owner).live(now).defer("data")
    found = mine.first()
    if found is not None:
        return found
    pool = MemoryPool(
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        pool_id=f"own-{uuid7()}",
        pool_type=PoolType.AGENT_PRIVATE,
        scope=Scope.AGENT,
        is_own=True,
    )
    with transaction.atomic():
        delete_expired_pools(owner, find_own_pool(owner), now=now)
        try:
            return insert_pool(owner, pool, now=now)
        except Conflict:
            # another request has just created it
            found = mine.first()
            if found is None:
                raise
            return found


def find_own_pool(owner: Owner) -> PoolQuerySet:
    """Return the pool of the agent's keyed values as a queryset, which may be empty or have an expired pool."""
    return MemoryPool.objects.filter(account_id=owner.account_id, agent_id=owner.agent_id, is_own=True)
