"""The jobs delete what has passed its retention, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest

from memory import conf
from memory.maintenance import Batch, RunBatch
from memory.maintenance.retention_jobs import CLEANUP_STAGES, EXPIRE_STAGES
from memory.models import Account, IdempotentRequest, JobRun
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key

pytestmark = pytest.mark.django_db

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=conf.JOB_RUN_RETENTION_DAYS + 1)


def keep_answers(account: Account, count: int, *, expires_at: datetime) -> None:
    key = issue_key(account, scopes=READ_WRITE_OPERATE).key
    IdempotentRequest.objects.bulk_create(
        IdempotentRequest(
            account=account, api_key=key, request_hash=f"{expires_at}{number}", status=200, expires_at=expires_at
        )
        for number in range(count)
    )


def run_to_the_end(run: RunBatch, batch: Batch) -> list[int]:
    """Return how many rows each batch changed."""
    report = run(now=NOW, batch=batch)
    changed = [report.changed]
    while report.cursor:
        report = run(now=NOW, batch=Batch(size=batch.size, cursor=report.cursor, dry_run=batch.dry_run))
        changed.append(report.changed)
    return changed


def test_expired_answers_are_deleted_in_batches_and_fresh_ones_kept(account: Account) -> None:
    keep_answers(account, 5, expires_at=NOW)
    keep_answers(account, 2, expires_at=NOW + timedelta(seconds=1))

    changed = run_to_the_end(EXPIRE_STAGES["answers"], Batch(size=2))

    assert changed == [2, 2, 1]
    assert IdempotentRequest.objects.count() == 2


def test_a_dry_run_counts_the_same_and_deletes_none(account: Account) -> None:
    keep_answers(account, 5, expires_at=NOW)

    changed = run_to_the_end(EXPIRE_STAGES["answers"], Batch(size=2, dry_run=True))

    assert changed == [2, 2, 1]
    assert IdempotentRequest.objects.count() == 5


def test_a_run_of_an_account_deletes_only_its_answers(account: Account, stranger: Account) -> None:
    for owner in (account, stranger):
        keep_answers(owner, 2, expires_at=NOW)

    EXPIRE_STAGES["answers"](now=NOW, batch=Batch(size=10, account_id=account.id))

    assert list(IdempotentRequest.objects.values_list("account", flat=True)) == [stranger.id] * 2


def test_runs_that_finished_long_ago_are_deleted() -> None:
    for status in ("completed", "failed"):
        JobRun.objects.create(job="embed", status=status, finished_at=LONG_AGO)
    recent = JobRun.objects.create(job="embed", status="completed", finished_at=NOW - timedelta(days=1))
    queued = JobRun.objects.create(job="embed")
    running = JobRun.objects.create(job="embed").begin(leased_by="worker", lease=timedelta(minutes=1))

    CLEANUP_STAGES["job_runs"](now=NOW, batch=Batch(size=10))

    assert set(JobRun.objects.all()) == {recent, queued, running}
