"""Beat and the sweep: which messages there are, and that none of them is needed."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from celery.schedules import crontab
from django.db.models.functions import Now

from memory.maintenance import JOBS
from memory.models import JobRun
from memory.models.jobs import SCHEDULE
from memory.tasks import beat_schedule, run_job, run_scheduled_job, run_soon, sweep_jobs
from memory_project.celery import app
from tests.memory.maintenance.jobs import describe_job

NOON = datetime(2030, 1, 2, 12, 0, tzinfo=UTC)


def test_beat_knows_every_job_and_the_sweep() -> None:
    assert set(app.conf.beat_schedule) == {*(f"run {name}" for name in JOBS), "sweep jobs", "resume jobs"}


def test_beat_schedules_only_existing_tasks() -> None:
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)


def test_a_daily_job_runs_at_its_hour_and_another_at_its_interval() -> None:
    entries = beat_schedule([JOBS["audit_partitions"], describe_job()])

    assert entries["run audit_partitions"]["schedule"] == crontab(hour=0, minute=10)
    assert entries["run describe"]["schedule"] == timedelta(minutes=1)
    assert entries["run describe"]["options"] == {"expires": 60}


@pytest.mark.parametrize(
    ("every", "last_due"),
    [
        (timedelta(hours=1), NOON - timedelta(hours=1)),
        (time(hour=4), datetime(2030, 1, 2, 4, 0, tzinfo=UTC)),
        (time(hour=12), NOON),
        (time(hour=12, minute=1), datetime(2030, 1, 1, 12, 1, tzinfo=UTC)),
    ],
)
def test_a_job_was_last_due(every: timedelta | time, last_due: datetime) -> None:
    assert describe_job(every=every).last_due(NOON) == last_due


@pytest.mark.django_db
def test_a_scheduled_job_leaves_a_run_of_the_installation() -> None:
    run_scheduled_job("expire")

    run = JobRun.objects.get()
    assert (run.status, run.account, run.requested_by) == ("completed", None, SCHEDULE)


@pytest.mark.django_db
def test_of_several_beats_one_schedules_a_run() -> None:
    for name in ("expire", "audit_partitions"):
        run_scheduled_job(name)
        run_scheduled_job(name)
        assert JobRun.objects.scheduled(name).count() == 1
        JobRun.objects.update(created_at=Now() - timedelta(days=2))

        run_scheduled_job(name)

        assert JobRun.objects.scheduled(name).filter(created_at__gt=Now() - timedelta(hours=1)).count() == 1


@pytest.mark.django_db
def test_the_sweep_queues_each_job_missed_by_a_new_or_stopped_service_once() -> None:
    sweep_jobs()
    sweep_jobs()

    assert sorted(JobRun.objects.queued().values_list("job", flat=True)) == sorted(JOBS)


@pytest.mark.django_db
def test_workers_are_notified_of_a_run_once_while_it_waits(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks() as notifications:
        run_soon("summarize")
        run_soon("summarize")
    assert (len(notifications), JobRun.objects.scheduled("summarize").queued().count()) == (1, 1)

    run_job("summarize")
    with django_capture_on_commit_callbacks() as notifications:
        run_soon("summarize")
    assert len(notifications) == 1


@pytest.mark.django_db
def test_a_message_of_another_version_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    run_job("wash_dishes")

    assert "unknown job wash_dishes" in caplog.text
    assert not JobRun.objects.exists()
