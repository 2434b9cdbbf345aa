"""Job runs: each run of a job is a row with a lease, so that another worker resumes what a killed one left.

Leases use the clock of the database alone, so that workers whose clocks differ agree on who holds them.
"""

from datetime import timedelta
from typing import Any, Self

from django.db import IntegrityError, models, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now
from django.db.models.lookups import IsNull

from memory.models.accounts import Account
from memory_project.ids import uuid7
from memory_project.tenancy import AccountQuerySet

SCHEDULE = "schedule"
"""`requested_by` of runs that the schedule started."""
MAX_CLAIM_TRIES = 10


class JobRunQuerySet(AccountQuerySet["JobRun"]):
    def scheduled(self, job: str) -> Self:
        return self.filter(account=None, job=job, requested_by=SCHEDULE)

    def queued(self) -> Self:
        return self.filter(status=JobRun.Status.QUEUED)

    def finished(self) -> Self:
        return self.filter(status__in=JobRun.FINISHED)

    def abandoned(self) -> Self:
        """Filter to running runs whose lease has expired, because the worker was killed or hangs."""
        return self.filter(status=JobRun.Status.RUNNING, lease_until__lte=Now())

    def live_beside(self, job: Any, account_id: Any) -> Self:
        """Filter to running runs of a job for the account, or for all accounts where it is null."""
        same = Q(account_id=account_id) | Q(IsNull(account_id, True), account=None)
        return self.filter(same, job=job, status=JobRun.Status.RUNNING, lease_until__gt=Now())

    def waiting(self) -> Self:
        """Filter to runs that a worker may claim: queued or abandoned ones."""
        return self.queued() | self.abandoned()

    def found_nothing(self) -> Self:
        return self.filter(status=JobRun.Status.COMPLETED, examined=0, failed=0)

    def held_by(self, run: "JobRun") -> Self:
        """Filter to the row of `run`, or to nothing once another worker has claimed it."""
        return self.filter(id=run.id, leased_by=run.leased_by, status=JobRun.Status.RUNNING)

    def claim(self, *, leased_by: str, lease: timedelta) -> "JobRun | None":
        """Claim the next of these runs (of one job), abandoned ones first.

        Returns None if there is none whose account, or lack of one, has no other run of the job running.
        """
        # "running" sorts after "queued"
        free = self.waiting().exclude(Exists(JobRun.objects.live_beside(OuterRef("job"), OuterRef("account_id"))))
        waiting = free.order_by("-status", "created_at", "id").select_for_update(skip_locked=True, of=("self",))
        for _ in range(MAX_CLAIM_TRIES):
            try:
                with transaction.atomic():
                    run = waiting.first()
                    return run and run.begin(leased_by=leased_by, lease=lease)
            except IntegrityError:  # another worker has begun a run of the same account meanwhile
                continue
        return None


class JobRun(models.Model):
    """One run of a job with its figures: queued, running under a lease, then completed, incomplete or failed.

    `at` is the time that the job takes for now, None the current time. A worker that resumes the run keeps it.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        INCOMPLETE = "incomplete"
        """It ended, but failed on some rows, which are retried or wait for staff."""
        FAILED = "failed"

    FINISHED = (Status.COMPLETED, Status.INCOMPLETE, Status.FAILED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, null=True, blank=True, related_name="+", db_index=False)
    job = models.CharField(max_length=50)
    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    requested_by = models.CharField(max_length=150, blank=True, default="")
    dry_run = models.BooleanField(default=False)
    at = models.DateTimeField(
        null=True, blank=True, help_text="Time that the job takes for now. Empty: the current time."
    )
    attempts = models.PositiveSmallIntegerField(
        default=0, help_text="Number of times that workers began the current batch."
    )
    examined = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    figures = models.JSONField(
        default=dict, blank=True, help_text="Sums of the other figures that the job counts, by name."
    )
    cursor = models.CharField(max_length=200, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    leased_by = models.CharField(max_length=150, blank=True, default="", editable=False)

    objects = JobRunQuerySet.as_manager()

    class Meta:
        db_table = "job_runs"
        constraints = [
            models.UniqueConstraint(
                fields=["job"], condition=Q(status="running", account=None), name="job_runs_once_at_a_time"
            ),
            models.UniqueConstraint(
                fields=["account", "job"], condition=Q(status="running"), name="job_runs_once_per_account"
            ),
            models.UniqueConstraint(
                fields=["job"],
                condition=Q(status="queued", requested_by=SCHEDULE),
                name="job_runs_one_scheduled_waits",
            ),
            models.CheckConstraint(
                condition=Q(status="running", lease_until__isnull=False)
                | (~Q(status="running") & Q(lease_until__isnull=True)),
                name="job_run_leased_while_running",
            ),
        ]
        indexes = [models.Index(fields=["account", "job", "created_at"], name="job_run_history")]

    def __str__(self) -> str:
        return f"{self.job} {self.status}"

    @property
    def duration_seconds(self) -> float | None:
        """The time from the first batch to the end, None before the end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()

    def begin(self, *, leased_by: str, lease: timedelta) -> Self:
        """Mark the run as running under a lease. Raises IntegrityError if another run of the job is running."""
        # not by COALESCE, in which a distributed database refuses the time
        first = {"started_at": Now()} if self.started_at is None else {}
        JobRun.objects.filter(id=self.id).update(
            status=JobRun.Status.RUNNING,
            leased_by=leased_by,
            lease_until=Now() + lease,
            attempts=F("attempts") + 1,
            **first,
        )
        self.refresh_from_db()
        return self
