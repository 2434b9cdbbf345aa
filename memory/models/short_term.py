"""Short-term memory: what an agent keeps for some hours under a key of a session."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.owner import Owner
from memory_project.fields import VerbatimJSONField
from memory_project.ids import uuid7

PROMOTED_FROM = 3
"""Reads from which on an entry is worth keeping for good."""


class ShortTermQuerySet(models.QuerySet["AgentShortTermMemory"]):
    """Chainable filters; every use starts at `visible_to`, and every read goes on with `live`."""

    def visible_to(self, owner: Owner) -> Self:
        """The agent's own; all of the account's for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows

    def live(self, now: datetime) -> Self:
        """Not expired: what is, cannot be read any more, whether the cleaner came or not."""
        return self.filter(expires_at__gt=now)

    def disposable(self, now: datetime) -> Self:
        """Expired, and read too rarely to be promoted, or promoted already."""
        return self.filter(Q(access_count__lt=PROMOTED_FROM) | Q(promoted_at__isnull=False), expires_at__lte=now)

    def to_promote(self) -> Self:
        """Read often enough, live or expired, and not promoted since they were written."""
        return self.filter(access_count__gte=PROMOTED_FROM, promoted_at=None)


class AgentShortTermMemory(models.Model):
    """One entry: unique by agent, session and key. Read `PROMOTED_FROM` times, it waits for promotion once expired."""

    class MemoryType(models.TextChoices):
        TASK_CONTEXT = "task_context"
        CONVERSATION = "conversation"
        TOOL_RESULT = "tool_result"
        REFLECTION = "reflection"
        OBSERVATION = "observation"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    agent_id = models.CharField(max_length=100)
    session_id = models.CharField(max_length=100, blank=True, default="")
    memory_key = models.CharField(max_length=200)
    memory_value = VerbatimJSONField(null=True)
    memory_type = models.CharField(max_length=20, choices=MemoryType, default=MemoryType.TASK_CONTEXT)
    ttl_seconds = models.PositiveIntegerField()
    expires_at = models.DateTimeField()
    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True, blank=True)
    promoted_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ShortTermQuerySet.as_manager()

    class Meta:
        db_table = "agent_short_term_memories"
        verbose_name_plural = "short-term memories"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "agent_id", "session_id", "memory_key"], name="short_term_once_by_key"
            ),
            models.CheckConstraint(condition=~Q(memory_key=""), name="short_term_has_a_key"),
            models.CheckConstraint(condition=~Q(agent_id=""), name="short_term_has_an_agent"),
            models.CheckConstraint(condition=Q(ttl_seconds__gte=1), name="short_term_lives_a_second"),
        ]
        indexes = [
            models.Index(fields=["expires_at"], name="short_term_expiry"),
            models.Index(
                fields=["account", "agent_id"],
                name="short_term_to_promote",
                condition=Q(access_count__gte=PROMOTED_FROM, promoted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.memory_key} of {self.agent_id}"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at <= now
