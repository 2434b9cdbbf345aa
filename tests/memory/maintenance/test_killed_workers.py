"""Workers are killed in mid batch, started twice, or never notified: each piece of work is done exactly once."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Event, Thread
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from memory import conf
from memory.audit import build_audit_entry, write_audit_entry
from memory.maintenance import JOBS, Batch, runner
from memory.maintenance.runner import run_at_once, run_waiting
from memory.models import Account, AuditEntry, JobRun
from memory.owner import Owner
from memory.tasks import resume_jobs, run_job, sweep_jobs
from memory_project.celery import app
from memory_project.ids import uuid7
from tests.api_client import ServiceClient
from tests.concurrency import PATIENCE_SECONDS, over_own_connection, wait_until
from tests.memory.maintenance.jobs import NOW, clock, describe_job, describing, descriptions, make_agents, queue_run
from tests.memory.maintenance.workers import Worker, worker_started

pytestmark = pytest.mark.django_db(transaction=True)

SLOW = "tests.memory.maintenance.slow_worker"


@pytest.fixture(autouse=True)
def _empty_queue() -> Iterator[None]:
    app.control.purge()
    yield
    app.control.purge()


def start_slow_worker(stack: ExitStack, folder: Path, name: str, **variables: str) -> Worker:
    worker = worker_started(folder, name, include=SLOW, SLOW_WORKER_FOLDER=str(folder), **variables)
    return stack.enter_context(worker)


def finished(run: JobRun) -> bool:
    run.refresh_from_db()
    return run.status in ("completed", "failed")


def test_a_batch_of_a_killed_worker_is_rolled_back_and_completed_by_another(account: Account, tmp_path: Path) -> None:
    make_agents(account, "abc")
    run = queue_run()
    (tmp_path / "gate-b").touch()
    with ExitStack() as stack:
        doomed = start_slow_worker(stack, tmp_path, "doomed", MEMORY_JOB_LEASE_SECONDS="2")
        run_job.delay("describe")
        wait_until((tmp_path / "begun-b").exists)
        doomed.kill()

        run.refresh_from_db()
        assert descriptions() == {"a": "x", "b": "x", "c": ""}
        assert (run.status, run.examined, run.cursor) == ("running", 2, "b")

        (tmp_path / "gate-b").unlink()
        wait_until(JobRun.objects.abandoned().exists)
        start_slow_worker(stack, tmp_path, "heir")
        sweep_jobs()
        wait_until(lambda: finished(run))

    assert descriptions() == {"a": "x", "b": "x", "c": "x"}
    assert (run.status, run.examined, run.attempts, run.error) == ("completed", 3, 2, "")


def test_a_living_worker_keeps_its_lease_during_a_long_batch(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "JOB_LEASE_SECONDS", 0.6)
    make_agents(account, "a")
    run = queue_run()

    def wait_in_one_statement(batch: Batch) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(2)")
        assert not over_own_connection(JobRun.objects.abandoned().exists)

    run_waiting(describe_job(describing(wait_in_one_statement)), clock=clock)

    assert finished(run)
    assert (run.status, run.attempts) == ("completed", 1)


def test_a_worker_that_finishes_nothing_for_too_long_loses_its_lease(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "JOB_LEASE_SECONDS", 0.6)
    monkeypatch.setattr(runner, "MAX_SILENCE_SECONDS", 0.5)
    make_agents(account, "a")
    run = queue_run()

    run_waiting(describe_job(describing(lambda batch: wait_until(JobRun.objects.abandoned().exists))), clock=clock)

    assert finished(run)


@pytest.mark.slow
def test_the_run_of_a_killed_worker_is_taken_over_within_seconds(account: Account, tmp_path: Path) -> None:
    make_agents(account, "abc")
    run = queue_run()
    (tmp_path / "gate-b").touch()
    with ExitStack() as stack:
        heir = start_slow_worker(stack, tmp_path, "heir")
        app.control.cancel_consumer("celery", destination=[f"heir@{socket.gethostname()}"])
        doomed = start_slow_worker(stack, tmp_path, "doomed")
        run_job.delay("describe")
        wait_until((tmp_path / "begun-b").exists)
        doomed.kill()
        killed = monotonic()
        (tmp_path / "gate-b").unlink()
        app.control.add_consumer("celery", destination=[f"heir@{socket.gethostname()}"])
        while not finished(run):
            resume_jobs()
            sleep(1)
        assert heir.process.poll() is None

    assert monotonic() - killed < conf.JOB_LEASE_SECONDS + 60
    assert descriptions() == {"a": "x", "b": "x", "c": "x"}


@pytest.mark.slow
def test_only_one_of_two_workers_runs_a_job(account: Account, tmp_path: Path) -> None:
    make_agents(account, "a")
    run = queue_run()
    (tmp_path / "gate-").touch()
    with ExitStack() as stack:
        workers = [start_slow_worker(stack, tmp_path, name) for name in ("one", "other")]
        run_job.delay("describe")
        wait_until((tmp_path / "begun-").exists)

        def other_looks() -> bool:
            # the one that runs the job may reserve the next message, and keep it until it is done
            run_job.delay("describe")
            return any(worker.finished_tasks() for worker in workers)

        wait_until(other_looks)

        assert descriptions() == {"a": ""}
        (tmp_path / "gate-").unlink()
        wait_until(lambda: finished(run))

    assert (tmp_path / "begun-").read_text() == "x"
    assert descriptions() == {"a": "x"}


@pytest.mark.slow
def test_a_run_requested_over_http_is_executed_by_a_worker(api: ServiceClient, tmp_path: Path) -> None:
    with worker_started(tmp_path, "worker"):
        job_id = api.post("/jobs/expire/run").json()["job_id"]

        wait_until(lambda: api.get(f"/jobs/{job_id}").json()["status"] == "completed")


@pytest.mark.slow
def test_a_run_with_a_lost_message_is_found_by_the_sweep(tmp_path: Path) -> None:
    run = JobRun.objects.create(job="expire")

    with worker_started(tmp_path, "worker"):
        app.send_task("memory.tasks.sweep_jobs")
        wait_until(lambda: finished(run))

    assert run.status == "completed"


def test_a_run_is_claimed_by_one_of_many_simultaneous_workers() -> None:
    queue_run()
    queue_run()
    together, claimed = Barrier(6), list[JobRun | None]()

    def claim() -> None:
        together.wait(PATIENCE_SECONDS)
        claimed.append(JobRun.objects.claim(leased_by="a worker", lease=timedelta(minutes=1)))

    threads = [Thread(target=over_own_connection, args=[claim]) for _ in range(together.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len([run for run in claimed if run is not None]) == 1


@pytest.mark.slow
def test_a_run_with_a_broken_connection_is_marked_failed_over_another_connection(account: Account) -> None:
    make_agents(account, "a")
    run = queue_run()

    def break_connection(batch: Batch) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    run_waiting(describe_job(describing(break_connection)), clock=clock)

    assert finished(run)
    assert run.error.startswith("OperationalError in test_killed_workers.py, line ")
    assert descriptions() == {"a": ""}


def test_an_entry_logged_while_its_partition_is_made_is_not_lost(account: Account) -> None:
    stop, logged, owner = Event(), list[UUID](), Owner(account_id=account.id)

    def log_entries() -> None:
        while not stop.is_set():
            fields: dict[str, Any] = {"id": uuid7(), "timestamp": NOW}
            write_audit_entry(
                build_audit_entry(owner, operation="store", memory_type="t", affected_ids=[], **fields), needed="writes"
            )
            logged.append(fields["id"])

    writers = [Thread(target=over_own_connection, args=[log_entries]) for _ in range(2)]
    for writer in writers:
        writer.start()
    wait_until(lambda: len(logged) > 20)
    done = run_at_once(JOBS["audit_partitions"], JobRun(job="audit_partitions"), clock=clock)
    stop.set()
    for writer in writers:
        writer.join()

    assert done.status == "completed"
    assert set(AuditEntry.objects.values_list("id", flat=True)) == set(logged)
