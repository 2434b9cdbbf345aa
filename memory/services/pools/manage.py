"""Memory pools (P2, P3): made, found, changed, shared. What they hold is in `pool_data`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.audit import record
from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import AccessControl, Level, MemoryPool, ToolCacheEntry, WorkflowRun
from memory.models.pools import PoolQuerySet
from memory.owner import Owner
from memory.services.accounts.access import (
    Versions,
    change_grant,
    check_version,
    find_team_to_share_with,
    refuse_managing,
    refuse_write,
)
from memory.services.accounts.register import note_agent
from memory.services.conversations.lifecycle import LONGEST_ID, is_id
from memory.tiers.json_documents import as_object, check_part, measure
from memory_project.ids import uuid7

Scope, PoolType = MemoryPool.Scope, MemoryPool.PoolType

EMPTY_BYTES = 2
"""Of a pool with nothing in it: its empty `data`."""

CHANGEABLE = frozenset({"access_control", "expires_at"})
"""What may be changed later; `data` has ways of its own."""

SCOPE_OF: Mapping[str, str] = {
    PoolType.SHARED: Scope.ACCOUNT,
    PoolType.AGENT_PRIVATE: Scope.AGENT,
    PoolType.TEAM_SHARED: Scope.TEAM,
    PoolType.TASK_SCOPED: Scope.TASK,
}
"""The scope of a pool that does not say its own, by type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDraft:
    """A pool before it is made. An empty `pool_id` is made up; an empty `scope` is its type's (SCOPE_OF)."""

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
    """Of a pool: what it holds, in entries and in bytes as compact JSON, and how often it was read and written.

    Entries are the names at the top of its data, postings, or results that have not expired.
    """

    entry_count: int
    size_bytes: int
    limit_bytes: int
    read_count: int
    write_count: int
    last_accessed_at: datetime | None


def create_pool(owner: Owner, draft: PoolDraft, *, now: datetime) -> MemoryPool:
    """Make one that the acting agent owns.

    Raises Conflict when the account has a live pool of this id, whoever's; TooLarge; Unprocessable for a type of
    workflow runs, a scope without its team or task, a team that the agent is not in, and an end that is over.
    """
    scope = draft.scope or SCOPE_OF.get(draft.pool_type, "")
    check_draft(draft, scope=scope, now=now)
    pool = MemoryPool(
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        pool_id=draft.pool_id or str(uuid7()),
        pool_type=draft.pool_type,
        scope=scope,
        task_id=draft.task_id,
        data=draft.data,
        access_control=draft.access_control.model_dump(),
        expires_at=draft.expires_at,
    )
    with transaction.atomic():
        pool.team = find_team_to_share_with(owner, draft.team_id) if draft.team_id else None
        return insert_pool(owner, pool, now=now)


def check_draft(draft: PoolDraft, *, scope: str, now: datetime) -> None:
    """Raises Unprocessable."""
    if draft.pool_type not in SCOPE_OF or scope not in Scope.values:
        raise Unprocessable(
            "a pool has one of the types and scopes that pools have; those of workflow runs have theirs"
        )
    if draft.pool_id and not is_id(draft.pool_id):
        raise Unprocessable(f"an id has 1 to {LONGEST_ID} characters, no NUL and no lone surrogate")
    if scope == Scope.TEAM and draft.team_id is None:
        raise Unprocessable("a pool of scope team names its team")
    if scope == Scope.TASK and not draft.task_id:
        raise Unprocessable("a pool of scope task names its task_id")
    check_expiry(draft.expires_at, now=now)


def check_expiry(expires_at: datetime | None, *, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise Unprocessable("expires_at is over: the pool would be gone at once")


def insert_pool(owner: Owner, pool: MemoryPool, *, now: datetime) -> MemoryPool:
    """Store a new pool with its audit row, in place of one of its id that has expired. In the caller's transaction.

    Raises Conflict when there is a live one, TooLarge, Unprocessable for data that cannot be.
    """
    check_part(as_object(pool.data))
    measured = measure(pool.data, limit_bytes=conf.POOL_LIMIT_BYTES)
    pool.entry_count, pool.size_bytes = measured.entry_count, measured.size_bytes
    delete_expired(owner, MemoryPool.objects.filter(account_id=pool.account_id, pool_id=pool.pool_id), now=now)
    MemoryPool.objects.bulk_create([pool], ignore_conflicts=True)
    # without those that came first, and with the times that the database gave it
    stored = MemoryPool.objects.filter(id=pool.id).defer("data").first()
    if stored is None:
        raise Conflict("there is a pool of this id")
    record(owner, operation="create", memory_type="pool", affected_ids=[pool.id])
    note_agent(owner.account_id, owner.agent_id)
    return stored


def delete_expired(owner: Owner, rows: PoolQuerySet, *, now: datetime) -> None:
    expired = list(rows.filter(expires_at__lte=now).defer("data").select_for_update(of=("self",)))
    for pool in expired:
        pool_id = pool.id
        pool.delete()
        record(owner, operation="delete", memory_type="pool", affected_ids=[pool_id])


def find_pool(owner: Owner, pool_id: str, *, now: datetime) -> MemoryPool:
    """One that the owner may read, without its `data`. Raises NotFound."""
    pool = visible_pools(owner, pool_id, now=now).select_related("workflow_run").defer("data").first()
    if pool is None:
        raise NotFound("no such pool")
    return pool


def visible_pools(owner: Owner, pool_id: str, *, now: datetime) -> PoolQuerySet:
    """The one of this id or none."""
    return MemoryPool.objects.visible_to(owner).live(now).filter(pool_id=pool_id)


def lock_pool(owner: Owner, pool_id: str, *, now: datetime) -> MemoryPool:
    """One that the owner may write to, until the transaction ends.

    Raises NotFound, Forbidden where it only reads, Conflict where the workflow run that it belongs to has ended.
    """
    rows = MemoryPool.objects.writable_by(owner).live(now).filter(pool_id=pool_id)
    pool = rows.select_for_update(no_key=True, of=("self",)).first()
    if pool is None:
        refuse_write(visible_pools(owner, pool_id, now=now), what="pool")
    if pool.workflow_run_id is not None:
        check_run(owner, pool, now=now)
    return pool


def check_run(owner: Owner, pool: MemoryPool, *, now: datetime) -> None:
    """Raises as `lock_pool`. Asked with the lock in hand: the statement that waited for it saw the run as it was."""
    rows = MemoryPool.objects.writable_by(owner).filter(id=pool.id)
    status = rows.values_list("workflow_run__status", flat=True).first()
    if status is None:
        refuse_write(visible_pools(owner, pool.pool_id, now=now), what="pool")
    if status != WorkflowRun.Status.RUNNING:
        raise Conflict("the run has ended: its pools are read-only")


def lock_managed_pool(owner: Owner, pool_id: str, *, expected: Versions, now: datetime) -> MemoryPool:
    """One that the owner may grant, change and delete, without its `data`. Raises NotFound, Forbidden, StaleVersion."""
    rows = MemoryPool.objects.managed_by(owner).live(now).filter(pool_id=pool_id)
    pool = rows.defer("data").select_for_update(no_key=True, of=("self",)).first()
    if pool is None:
        refuse_managing(visible_pools(owner, pool_id, now=now), what="pool")
    check_version(pool.version, expected, row_id=pool.id)
    return pool


def change_pool(
    owner: Owner, pool_id: str, *, changes: Mapping[str, Any], expected: Versions, now: datetime
) -> MemoryPool:
    """Give it another `expires_at` (None: never) or another `access_control`, whole, as JSON.

    Raises NotFound, Forbidden, StaleVersion, Unprocessable.
    """
    if refused := set(changes) - CHANGEABLE:
        raise Unprocessable(f"cannot be changed: {', '.join(sorted(refused))}")
    check_expiry(changes.get("expires_at"), now=now)
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        if pool.is_own and changes.get("expires_at") is not None:
            raise Unprocessable("an agent's own pool does not expire")
        for name, value in changes.items():
            setattr(pool, name, AccessControl.parse(value).model_dump() if name == "access_control" else value)
        save_pool(owner, pool, columns=list(changes), operation="update", now=now)
    return pool


def save_pool(owner: Owner, pool: MemoryPool, *, columns: list[str], operation: str, now: datetime) -> None:
    """Store these columns of a locked pool, at the next version, and the audit row."""
    pool.version += 1
    pool.updated_at = now
    pool.save(update_fields=[*columns, "version", "updated_at"])
    record(
        owner, operation=operation, memory_type="pool", affected_ids=[pool.id], metadata={"columns": sorted(columns)}
    )


def delete_pool(owner: Owner, pool_id: str, *, expected: Versions, now: datetime) -> None:
    """Delete it with what it holds. Raises NotFound, Forbidden, StaleVersion."""
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        record(owner, operation="delete", memory_type="pool", affected_ids=[pool.id])
        pool.delete()


def grant_access(
    owner: Owner, pool_id: str, *, agent_id: str, level: Level, expected: Versions, now: datetime
) -> MemoryPool:
    """Let an agent in. Raises NotFound, Forbidden, StaleVersion, Unprocessable."""
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        change_grant(pool, agent_id, level, is_granted=True)
        save_pool(owner, pool, columns=["access_control"], operation="grant", now=now)
    return pool


def revoke_access(
    owner: Owner, pool_id: str, *, agent_id: str, level: Level | None = None, expected: Versions, now: datetime
) -> MemoryPool:
    """Shut an agent out again, as far as grants let it in; without a level, of both. Raises as `grant_access`."""
    with transaction.atomic():
        pool = lock_managed_pool(owner, pool_id, expected=expected, now=now)
        change_grant(pool, agent_id, level, is_granted=False)
        save_pool(owner, pool, columns=["access_control"], operation="revoke", now=now)
    return pool


def pool_statistics(owner: Owner, pool_id: str, *, now: datetime) -> PoolStatistics:
    """Raises NotFound."""
    pool = find_pool(owner, pool_id, now=now)
    entry_count, size_bytes = held_by(pool, now=now)
    return PoolStatistics(
        entry_count=entry_count,
        size_bytes=size_bytes,
        limit_bytes=conf.POOL_LIMIT_BYTES,
        read_count=pool.read_count,
        write_count=pool.write_count,
        last_accessed_at=pool.last_accessed_at,
    )


def held_by(pool: MemoryPool, *, now: datetime) -> tuple[int, int]:
    """Its entries and their bytes: as kept with each write, but for results of tools, which expire without one."""
    if pool.pool_type != PoolType.TOOL_CACHE:
        return pool.entry_count, pool.size_bytes
    entry_count, size_bytes = ToolCacheEntry.objects.of_pool(pool).live(now).measured()
    return entry_count, EMPTY_BYTES + size_bytes


def own_pool(owner: Owner, *, now: datetime) -> MemoryPool:
    """The pool of the agent's keyed values, without its `data`; made when it is new, by one of those who ask at once.

    Raises Unprocessable for an owner without an agent.
    """
    if not owner.agent_id:
        raise Unprocessable("a pool of one's own is an agent's: name one")
    mine = MemoryPool.objects.filter(account_id=owner.account_id, agent_id=owner.agent_id, is_own=True)
    found = mine.live(now).defer("data").first()
    if found is not None:
        return found
    with transaction.atomic():
        return insert_own_pool(owner, mine, now=now)


def insert_own_pool(owner: Owner, mine: PoolQuerySet, *, now: datetime) -> MemoryPool:
    """Or the one that another request made a moment ago."""
    delete_expired(owner, mine, now=now)
    pool = MemoryPool(
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        pool_id=f"own-{uuid7()}",
        pool_type=PoolType.AGENT_PRIVATE,
        scope=Scope.AGENT,
        is_own=True,
    )
    try:
        return insert_pool(owner, pool, now=now)
    except Conflict:
        other = mine.live(now).defer("data").first()
        if other is None:
            raise
        return other
