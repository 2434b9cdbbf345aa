"""Asking for runs of jobs. A run is a row; whoever asked may nudge a worker once it is committed."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from memory.audit import record
from memory.models import JobRun
from memory.models.jobs import SCHEDULE
from memory.owner import Owner

RETRY_FAILED_AFTER = timedelta(minutes=10)


def request_run(owner: Owner, *, job: str, dry_run: bool = False, at: datetime | None = None) -> JobRun:
    """Queue a run that is narrowed to the owner's account; `at`: as of then."""
    with transaction.atomic():
        run = JobRun.objects.create(
            account_id=owner.account_id, job=job, requested_by=owner.actor, dry_run=dry_run, at=at
        )
        asked = {"job": job, "dry_run": dry_run}
        record(owner, operation="run_job", memory_type="job", affected_ids=[run.id], config_snapshot=asked)
    run.refresh_from_db(fields=["created_at"])
    return run


def request_installation_run(actor: str, *, job: str, dry_run: bool = False, at: datetime | None = None) -> JobRun:
    """Queue a run over all accounts. It belongs to no account's audit log; `requested_by` says who asked."""
    run = JobRun.objects.create(job=job, requested_by=actor, dry_run=dry_run, at=at)
    run.refresh_from_db(fields=["created_at"])
    return run


def schedule_run(job: str) -> None:
    """Queue a run of the installation's, unless one waits already (a constraint sees to that)."""
    JobRun.objects.bulk_create([JobRun(job=job, requested_by=SCHEDULE)], ignore_conflicts=True)


def schedule_overdue_run(job: str, *, due: datetime, now: datetime) -> None:
    """Queue a run if none was asked for since `due`: beat, or the whole service, was down then.

    A failed one counts for RETRY_FAILED_AFTER only.
    """
    lately = JobRun.objects.scheduled(job).filter(created_at__gte=due)
    if not lately.filter(~Q(status=JobRun.Status.FAILED) | Q(created_at__gte=now - RETRY_FAILED_AFTER)).exists():
        schedule_run(job)
