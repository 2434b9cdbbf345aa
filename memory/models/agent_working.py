"""What agents saved of their working memory: from Redis into the database, until they load it again."""

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
        """The agent's own; all of the account's for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows


class SavedWorkingMemory(models.Model):
    """One working memory of an agent: its own, or that for a task, a workflow run, or both.

    `values` maps each key to its JSON text (`json`, as Redis had it, so that types and numbers stay exact) and to the
    milliseconds that it had left (`ttl_ms`): while it is saved, its clock stands still.
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
