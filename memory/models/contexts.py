"""Persistent contexts: long-lived containers of entries, for one agent or for several, and the access log of them."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.access import SharedQuerySet, SharedRow
from memory.models.accounts import AccountRow
from memory_project.ids import uuid7
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

OWN_CONTEXT = "agent_memory"
"""Name and type of the context that holds an agent's long-term memory."""

TEAM_CONTEXT = "learnings"
"""Name of the context, owned by the account, that holds the learnings of a team."""


class ContextQuerySet(SharedQuerySet["PersistentContext"]):
    """Chainable filters; every use starts at `visible_to`, `writable_by` or `managed_by`."""

    def active(self) -> Self:
        """Filter to contexts that may be written to and searched: those that are not archived."""
        return self.filter(archived=False)

    def open_to_all(self) -> Q:
        return Q(scope__in=("global", "account"))

    def open_to_members(self) -> Q:
        return ~Q(scope="agent")


class PersistentContext(SharedRow):
    """A persistent context. Its scope says which agents it is open to without a grant (see `models.access`).

    Scopes account and global: every agent of the account reads. Scope team: its members read and write. Scope agent:
    only its owner. An archived context is read-only and left out of searches. `version` counts changes of the context
    itself, not of its entries.
    """

    class ContextType(models.TextChoices):
        AGENT_MEMORY = "agent_memory"
        KNOWLEDGE_BASE = "knowledge_base"
        SHARED_CONTEXT = "shared_context"
        TOOL_CACHE = "tool_cache"
        PROJECT_CONTEXT = "project_context"

    class Scope(models.TextChoices):
        AGENT = "agent"
        ACCOUNT = "account"
        TEAM = "team"
        GLOBAL = "global"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    context_type = models.CharField(max_length=20, choices=ContextType, default=ContextType.AGENT_MEMORY)
    scope = models.CharField(max_length=20, choices=Scope, default=Scope.AGENT)
    archived = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ContextQuerySet.as_manager()

    class Meta:
        db_table = "persistent_contexts"
        constraints = [
            ReferenceInAccount("team", name="persistent_contexts_team_in_account"),
            models.UniqueConstraint(
                fields=["account", "agent_id", "team", "name"],
                name="context_once_by_name",
                nulls_distinct=False,
                # contexts of deleted teams keep their names, so several may have the same
                condition=Q(team__isnull=False) | Q(scope__in=("agent", "account", "global")),
            ),
            models.CheckConstraint(
                condition=~Q(name=OWN_CONTEXT) | Q(context_type="agent_memory", scope="agent"),
                name="context_own_is_private",
            ),
            models.CheckConstraint(condition=~Q(name=""), name="context_has_a_name"),
        ]
        indexes = [models.Index(fields=["account", "team"], name="context_team", condition=Q(team__isnull=False))]

    def __str__(self) -> str:
        return self.name

    def is_open_to_all(self) -> bool:
        return self.scope in ("global", "account")

    def is_open_to_members(self) -> bool:
        return self.scope != "agent"


class ContextAccessLog(AccountRow):
    """One line of the access log: which agent read or wrote which entry, and when. It outlives its entry.

    A line with the action `lost` counts lines that were never written. `id` is made where the access
    happens, so that a line that is written twice is stored once.
    """

    class Action(models.TextChoices):
        READ = "read"
        SEARCH = "search"
        CREATE = "create"
        UPDATE = "update"
        BOOST = "boost"
        REDUCE = "reduce"
        ARCHIVE = "archive"
        RESTORE = "restore"
        LOST = "lost"

    # the database deletes lines with their context
    context = AccountForeignKey(PersistentContext, models.CASCADE, null=True, related_name="access_logs")
    entry_id = models.UUIDField(null=True)
    agent_id = models.CharField(max_length=100, blank=True, default="")
    actor = models.CharField(max_length=150, blank=True, default="")
    action = models.CharField(max_length=20, choices=Action)
    count = models.PositiveIntegerField(default=1)
    accessed_at = models.DateTimeField()

    class Meta:
        db_table = "context_access_logs"
        constraints = [
            ReferenceInAccount("context", name="context_access_logs_context_in_account"),
        ]
        indexes = [
            models.Index(fields=["account", "context", "accessed_at"], name="access_of_context"),
            models.Index(fields=["account", "entry_id", "accessed_at"], name="access_of_entry"),
            models.Index(fields=["accessed_at"], name="access_time"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.action} {self.entry_id}"
