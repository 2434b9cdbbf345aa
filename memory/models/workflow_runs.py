"""Workflow runs: agents that execute a workflow together and share memory pools meanwhile."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.owner import Owner
from memory_project.ids import uuid7


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


class WorkflowRun(models.Model):
    """One run of a workflow. The agent `agent_id` began it; `agents` are the nodes that share its pools."""

    class Status(models.TextChoices):
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
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
