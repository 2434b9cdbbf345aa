"""Working memories that agents saved from Redis into the database, until they load them again."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.owner import Owner
from memory_project.fields import VerbatimJSONField
from memory_project.ids import uuid7


class SavedWorkingMemoryQuerySet(models.QuerySet["SavedWorkingMemory"]):
    """Every use starts at `visible_to`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to rows of the owner's agent, or of the whole account for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows


class SavedWorkingMemory(models.Model):
    """A saved working memory of an agent: its general one, or the one for a task, a workflow run, or both.

    `values` maps each key to its JSON text (`json`, as Redis had it, so that types and numbers stay exact) and to the
    time to live that it had left in milliseconds (`ttl_ms`), which does not run while it is saved.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    agent_id = models.CharField(max_length=100)
    task_id = models.CharField(max_length=100, blank=True, default="")
    workflow_run_id = models.CharField(max_length=100, blank=True, default="")
    values = VerbatimJSONField(default=dict)
    saved_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = SavedWorkingMemoryQuerySet.as_manager()

    class Meta:
        db_table = "agent_working_memories"
        verbose_name_plural = "saved working memories"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "agent_id", "task_id", "workflow_run_id"], name="saved_once_a_working_memory"
            ),
            models.CheckConstraint(condition=~Q(agent_id=""), name="saved_memory_has_an_agent"),
        ]

    def __str__(self) -> str:
        return f"working memory of {self.agent_id}"
