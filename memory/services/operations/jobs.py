"""Requests for runs of jobs. A run is a row; after the commit, the caller may notify a worker."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit
from memory.models import JobRun
from memory.models.jobs import SCHEDULE
from memory.owner import Owner

RETRY_FAILED_AFTER = timedelta(minutes=10)


def request_run(owner: Owner, *, job: str, dry_run: bool = False, at: datetime | None = None) -> JobRun:
    """Queue a run for the owner's account; `at` sets the time that the job works with."""
    with transaction.atomic():
        run = JobRun.objects.create(
            account_id=owner.account_id, job=job, requested_by=owner.actor, dry_run=dry_run, at=at
        )
        asked = {"job": job, "dry_run": dry_run}
        record_audit(owner, operation="run_job", memory_type="job", affected_ids=[run.id], config_snapshot=asked)
    run.refresh_from_db(fields=["created_at"])
    return run


def request_installation_run(actor: str, *, job: str, dry_run: bool = False, at: datetime | None = None) -> JobRun:
    """Queue a run over all accounts. It is in no account's audit log; `requested_by` says who asked."""
    run = JobRun.objects.create(job=job, requested_by=actor, dry_run=dry_run, at=at)
    run.refresh_from_db(fields=["created_at"])
    return run


def schedule_run(job: str) -> None:
    """Queue a run over all accounts, unless one is waiting already (a constraint enforces it)."""
    JobRun.objects.bulk_create([JobRun(job=job, requested_by=SCHEDULE)], ignore_conflicts=True)


def schedule_overdue_run(job: str, *, due: datetime, now: datetime) -> None:
    """Queue a run if none was queued since `due`, because beat or the whole service was down then.

    A failed run counts for RETRY_FAILED_AFTER only.
    """
    lately = JobRun.objects.scheduled(job).filter(created_at__gte=due)
    if not lately.filter(~Q(status=JobRun.Status.FAILED) | Q(created_at__gte=now - RETRY_FAILED_AFTER)).exists():
        schedule_run(job)
