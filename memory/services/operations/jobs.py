"""Requests for runs of jobs. A run is a row; after the commit, the caller may notify a worker."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Max, Min, Q, QuerySet
from django.db.models.functions import Now

from memory.audit import record_audit
from memory.errors import Conflict, TooManyRuns
from memory.models import JobRun
from memory.models.jobs import SCHEDULE
from memory.models.statements import fetch_rows
from memory.owner import Owner

ALLOWANCE_PERIOD = timedelta(hours=1)
RETRY_FAILED_AFTER = timedelta(minutes=10)
FIND_WAITING = f"""
SELECT id FROM job_runs
WHERE account_id IS NULL AND job = %s AND requested_by = '{SCHEDULE}' AND status = '{JobRun.Status.QUEUED}'
"""  # noqa: S608 (constants)


def request_run(
    owner: Owner, *, job: str, dry_run: bool = False, at: datetime | None = None, max_per_hour: int = 0
) -> JobRun:
    """Queue a run for the owner's account; `at` sets the time that the job works with.

    The same run that the same actor requested, and that waits already, is returned instead: it will find whatever a
    second one could, and keys of agents see their own runs only. Raises TooManyRuns for a new run of an account that
    has requested `max_per_hour` of them lately, unless that is 0.
    """
    same = {"account_id": owner.account_id, "job": job, "requested_by": owner.actor, "dry_run": dry_run, "at": at}
    with transaction.atomic():
        run = JobRun.objects.filter(**same).queued().order_by("created_at").first()
        if run is None:
            refuse_many_runs(owner.account_id, max_per_hour)
            run = JobRun.objects.create(**same)
        asked = {"job": job, "dry_run": dry_run}
        record_audit(owner, operation="run_job", memory_type="job", affected_ids=[run.id], config_snapshot=asked)
    run.refresh_from_db(fields=["created_at"])
    return run


def refuse_many_runs(account_id: UUID, max_per_hour: int) -> None:
    """Raise TooManyRuns for an account with this many new runs within an hour, unless it is 0."""
    if not max_per_hour:
        return
    lately = JobRun.objects.filter(account_id=account_id, created_at__gt=Now() - ALLOWANCE_PERIOD)
    found = lately.aggregate(runs=Count("id"), first=Min("created_at"), now=Max(Now()))
    if found["runs"] >= max_per_hour:
        wait = found["first"] + ALLOWANCE_PERIOD - found["now"]
        message = f"the account has requested {max_per_hour} runs of jobs within an hour"
        raise TooManyRuns(message, retry_after_seconds=wait.total_seconds())


def request_installation_run(actor: str, *, job: str, dry_run: bool = False, at: datetime | None = None) -> JobRun:
    """Queue a run over all accounts. It is in no account's audit log; `requested_by` says who asked."""
    run = JobRun.objects.create(job=job, requested_by=actor, dry_run=dry_run, at=at)
    run.refresh_from_db(fields=["created_at"])
    return run


def cancel_run(owner: Owner, run_id: UUID) -> None:
    """Cancel a run of the owner's account that has not ended. Raises Conflict.

    What it did until now stays. A worker that performs it stops after the batch that it is at, or within it where it
    renews its lease.
    """
    with transaction.atomic():
        end_run(JobRun.objects.filter(account_id=owner.account_id, id=run_id), owner.actor)
        record_audit(owner, operation="cancel_job", memory_type="job", affected_ids=[run_id])


def cancel_installation_run(actor: str, run_id: UUID) -> None:
    """Cancel a run over all accounts, as `cancel_run` does. It is in no account's audit log."""
    end_run(JobRun.objects.filter(account=None, id=run_id), actor)


def end_run(runs: QuerySet[JobRun], actor: str) -> None:
    unfinished = runs.exclude(status__in=JobRun.FINISHED)
    cancelled = {"error": f"cancelled by {actor}"[:500], "lease_until": None, "finished_at": Now()}
    if not unfinished.update(status=JobRun.Status.FAILED, **cancelled):
        raise Conflict("the run has ended already")


def schedule_run(job: str) -> bool:
    """Queue a run over all accounts, unless one is waiting already (a constraint enforces it); return whether."""
    # in SQL: each turn of a conversation asks until its summary is written
    if fetch_rows(FIND_WAITING, [job]):
        return False
    JobRun.objects.bulk_create([JobRun(job=job, requested_by=SCHEDULE)], ignore_conflicts=True)
    return True


def schedule_due_run(job: str, *, since: datetime) -> None:
    """Queue a run unless another worker's beat has queued it since: each worker has one."""
    if not JobRun.objects.scheduled(job).filter(created_at__gte=since).exists():
        schedule_run(job)


def schedule_overdue_run(job: str, *, due: datetime, now: datetime) -> None:
    """Queue a run if none was queued since `due`, because beat or the whole service was down then.

    A failed run counts for RETRY_FAILED_AFTER only.
    """
    lately = JobRun.objects.scheduled(job).filter(created_at__gte=due)
    if not lately.filter(~Q(status=JobRun.Status.FAILED) | Q(created_at__gte=now - RETRY_FAILED_AFTER)).exists():
        schedule_run(job)
