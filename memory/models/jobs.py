"""Job runs: each run of a job is a row with a lease, so that what a killed worker left is seen and taken up again."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory_project.ids import uuid7


class JobRun(models.Model):
    """Asked for (queued), claimed under a lease (running), then completed or failed, with what it examined and changed."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, null=True, blank=True, related_name="+", db_index=False)
    job = models.CharField(max_length=50)
    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    requested_by = models.CharField(max_length=150, blank=True, default="")
    dry_run = models.BooleanField(default=False)
    attempts = models.PositiveSmallIntegerField(default=0)
    examined = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    cursor = models.CharField(max_length=200, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "job_runs"
        constraints = [
            models.UniqueConstraint(fields=["job"], condition=Q(status="running"), name="job_runs_once_at_a_time"),
        ]
        indexes = [models.Index(fields=["account", "job", "created_at"], name="job_run_history")]

    def __str__(self) -> str:
        return f"{self.job} {self.status}"
