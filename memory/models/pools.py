"""Memory pools: JSON that agents share, read and written whole or in part. Each write makes a version.

Agents that execute a workflow together (`WorkflowRun`) share pools meanwhile.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Self
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Count, Exists, Func, OuterRef, Q, Sum
from django.db.models.functions import Cast, Coalesce, Now

from memory.models.access import SharedQuerySet, SharedRow
from memory.models.accounts import AccountRow
from memory.owner import Owner
from memory_project.fields import VerbatimJSONField
from memory_project.ids import uuid7
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount


class WorkflowRunQuerySet(models.QuerySet["WorkflowRun"]):
    """Chainable filters; every use starts at `visible_to`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to runs that the owner's agent began or takes part in, or to all of the account without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(has_agent(owner)) if owner.agent_id else rows

    def managed_by(self, owner: Owner) -> Self:
        """Filter to runs that the owner's agent began, or to all of the account for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows


def has_agent(owner: Owner) -> Q:
    """Return the condition on runs that the owner's agent began or takes part in."""
    return Q(agent_id=owner.agent_id) | Q(agents__contains=[owner.agent_id])


class WorkflowRun(AccountRow):
    """One run of a workflow. The agent `agent_id` began it; `agents` are the nodes that share its pools."""

    class Status(models.TextChoices):
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"

    workflow_run_id = models.CharField(max_length=100)
    workflow = models.CharField(max_length=200, blank=True, default="", help_text="Name of the workflow.")
    agent_id = models.CharField(max_length=100, blank=True, default="", help_text="Agent that began the run.")
    agents = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.RUNNING)
    metadata = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = WorkflowRunQuerySet.as_manager()

    class Meta:
        db_table = "workflow_runs"
        constraints = [
            models.UniqueConstraint(fields=["account", "workflow_run_id"], name="workflow_run_once_in_account"),
            models.CheckConstraint(condition=~Q(workflow_run_id=""), name="workflow_run_has_an_id"),
            models.CheckConstraint(
                condition=Q(status="running", ended_at=None) | (~Q(status="running") & Q(ended_at__isnull=False)),
                name="workflow_run_ends_once",
            ),
        ]

    def __str__(self) -> str:
        return self.workflow_run_id


WORKFLOW_POOL_TYPES = ("shared_memory", "tool_cache", "blackboard")
"""Types of pools that belong to a workflow run, whose agents are their members. The type restricts nothing further."""


class PoolQuerySet(SharedQuerySet["MemoryPool"]):
    """Chainable filters. Every use starts at `visible_to`, `writable_by` or `managed_by` and continues with `live`."""

    def live(self, now: datetime) -> Self:
        """Filter to pools that have not expired. An expired pool counts as deleted even before the cleanup."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now))

    def open_to_all(self) -> Q:
        return Q(scope__in=("global", "account"), pool_type__in=("shared", *WORKFLOW_POOL_TYPES))

    def open_to_members(self) -> Q:
        return ~Q(scope="agent") & ~Q(pool_type="agent_private")

    def membership(self, owner: Owner) -> Q:
        runs = WorkflowRun.objects.filter(has_agent(owner), account_id=owner.account_id)
        return super().membership(owner) | Q(Exists(runs.filter(id=OuterRef("workflow_run_id"))))


class MemoryPool(SharedRow):
    """A memory pool. Scope and type both restrict whom it is open to; the narrower one counts (see `models.access`).

    - Scopes global and account: every agent reads. Team and task: only members. Agent: only the owner.
    - Type shared: no restriction. Team_shared and task_scoped: only members. Agent_private: only the owner.

    Grants open it to further agents by name. A pool of scope task names a task id, and its agents are the members of a
    team or have a grant. `is_own` marks the pool that holds the agent's keyed values of the shared tier.
    """

    class PoolType(models.TextChoices):
        SHARED = "shared"
        AGENT_PRIVATE = "agent_private"
        TEAM_SHARED = "team_shared"
        TASK_SCOPED = "task_scoped"
        SHARED_MEMORY = "shared_memory"
        TOOL_CACHE = "tool_cache"
        BLACKBOARD = "blackboard"

    class Scope(models.TextChoices):
        GLOBAL = "global"
        ACCOUNT = "account"
        TEAM = "team"
        AGENT = "agent"
        TASK = "task"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    pool_id = models.CharField(max_length=100)
    pool_type = models.CharField(max_length=20, choices=PoolType, default=PoolType.SHARED)
    scope = models.CharField(max_length=20, choices=Scope, default=Scope.ACCOUNT)
    task_id = models.CharField(max_length=100, blank=True, default="")
    workflow_run = AccountForeignKey(WorkflowRun, models.CASCADE, null=True, blank=True, related_name="pools")
    is_own = models.BooleanField(default=False, editable=False)
    data = VerbatimJSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)
    expires_at = models.DateTimeField(null=True, blank=True)
    # each write updates both, so that a list of pools does not read the data
    entry_count = models.PositiveIntegerField(default=0, editable=False)
    size_bytes = models.PositiveIntegerField(default=2, editable=False)
    read_count = models.PositiveBigIntegerField(default=0, editable=False)
    write_count = models.PositiveBigIntegerField(default=0, editable=False)
    last_accessed_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = PoolQuerySet.as_manager()

    class Meta:
        db_table = "memory_pools"
        constraints = [
            ReferenceInAccount("team", name="memory_pools_team_in_account"),
            ReferenceInAccount("workflow_run", name="memory_pools_workflow_run_in_account"),
            models.UniqueConstraint(fields=["account", "pool_id"], name="pool_once_in_account"),
            models.UniqueConstraint(fields=["account", "agent_id"], name="pool_own_once", condition=Q(is_own=True)),
            models.CheckConstraint(condition=~Q(pool_id=""), name="pool_has_an_id"),
            models.CheckConstraint(condition=Q(version__gte=1), name="pool_version_from_one"),
            models.CheckConstraint(condition=~Q(scope="task", task_id=""), name="pool_of_a_task_names_it"),
            models.CheckConstraint(
                condition=Q(is_own=False) | (Q(scope="agent", pool_type="agent_private") & ~Q(agent_id="")),
                name="pool_own_is_private",
            ),
            models.CheckConstraint(
                condition=Q(workflow_run=None, pool_type__in=("shared", "agent_private", "team_shared", "task_scoped"))
                | Q(workflow_run__isnull=False, pool_type__in=WORKFLOW_POOL_TYPES),
                name="pool_of_a_run_has_its_types",
            ),
        ]
        indexes = [
            models.Index(fields=["account", "agent_id"], name="pool_agent"),
            models.Index(fields=["account", "team"], name="pool_team", condition=Q(team__isnull=False)),
            models.Index(fields=["account", "task_id"], name="pool_task", condition=~Q(task_id="")),
            models.Index(fields=["account", "workflow_run"], name="pool_run", condition=Q(workflow_run__isnull=False)),
            models.Index(fields=["expires_at"], name="pool_expiry", condition=Q(expires_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.pool_id

    def is_open_to_all(self) -> bool:
        return self.scope in ("global", "account") and self.pool_type in ("shared", *WORKFLOW_POOL_TYPES)

    def is_open_to_members(self) -> bool:
        return self.scope != "agent" and self.pool_type != "agent_private"

    def has_member(self, agent_id: str, team_ids: Collection[UUID]) -> bool:
        run = self.workflow_run
        has_part = run is not None and (run.agent_id == agent_id or agent_id in run.agents)
        return has_part or super().has_member(agent_id, team_ids)

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class SharedContextPool(MemoryPool):
    """A pool of a workflow run: shared_memory (its `data`), tool_cache or blackboard (rows of their own)."""

    class Meta:
        proxy = True


class BlackboardPosting(AccountRow):
    """A posting of an agent on a blackboard. Append-only: the database refuses changes."""

    pool = AccountForeignKey(MemoryPool, models.CASCADE, related_name="postings")
    position = models.PositiveIntegerField(help_text="Number of the posting on its blackboard, from 0 without gaps.")
    agent_id = models.CharField(max_length=100, blank=True, default="")
    content = VerbatimJSONField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "blackboard_postings"
        constraints = [
            ReferenceInAccount("pool", name="blackboard_postings_pool_in_account"),
            models.UniqueConstraint(fields=["account", "pool", "position"], name="posting_position_once"),
        ]

    def __str__(self) -> str:
        return f"posting {self.position}"


class ToolCacheEntryQuerySet(models.QuerySet["ToolCacheEntry"]):
    def of_pool(self, pool: MemoryPool) -> Self:
        return self.filter(account_id=pool.account_id, pool_id=pool.id)

    def live(self, now: datetime) -> Self:
        return self.filter(expires_at__gt=now)

    def count_and_size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their keys and values."""
        value = Func(Cast("value", models.TextField()), function="octet_length", output_field=models.IntegerField())
        key = Func("key", function="octet_length", output_field=models.IntegerField())
        found = self.aggregate(count=Count("id"), size_bytes=Coalesce(Sum(value + key), 0))
        return found["count"], found["size_bytes"]


class ToolCacheEntry(AccountRow):
    """A result of a tool, shared with the other agents of the run until it expires."""

    pool = AccountForeignKey(MemoryPool, models.CASCADE, related_name="cached")
    key = models.CharField(max_length=200)
    value = VerbatimJSONField(null=True)
    agent_id = models.CharField(max_length=100, blank=True, default="")
    ttl_seconds = models.PositiveIntegerField()
    expires_at = models.DateTimeField(db_index=True)
    hit_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ToolCacheEntryQuerySet.as_manager()

    class Meta:
        db_table = "tool_cache_entries"
        verbose_name_plural = "tool cache entries"
        constraints = [
            ReferenceInAccount("pool", name="tool_cache_entries_pool_in_account"),
            models.UniqueConstraint(fields=["account", "pool", "key"], name="cached_once_by_key"),
            models.CheckConstraint(condition=~Q(key=""), name="cached_has_a_key"),
        ]

    def __str__(self) -> str:
        return self.key
