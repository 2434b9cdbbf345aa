"""Runs jobs batch by batch, under a lease, keeping their progress in their rows.

A job runs once at a time over all accounts, and once at a time for each account that asked for a run: a run of one
account does not keep the others waiting.
"""

import logging
import os
import socket
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

from django.db import Error, IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from memory import conf
from memory.errors import Conflict, MemoryServiceError
from memory.maintenance.base import Batch, BatchReport, Clock, Job, Progress
from memory.models import JobRun
from memory.models.jobs import SCHEDULE
from memory_project.ids import uuid7
from memory_project.logs import logged_as_job
from memory_project.tracing import span

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 3
MAX_SILENCE_SECONDS = 3_600


def lease() -> timedelta:
    return timedelta(seconds=conf.JOB_LEASE_SECONDS)


class Heartbeat:
    """The thread that renews the lease of one run, however long a statement or a call takes.

    So leases are short, and another worker soon takes over what a dead one left. A worker that is alive but has noted
    no progress for MAX_SILENCE_SECONDS counts as hung, and loses its lease.
    """

    def __init__(self, run: JobRun) -> None:
        self.run = run
        self._stop = Event()
        self._progress_at = monotonic()

    def note_progress(self) -> None:
        self._progress_at = monotonic()

    def beat(self) -> None:
        """Renew the lease until the run ends or the lease is lost. Over a connection of its own."""
        try:
            while not self._stop.wait(lease().total_seconds() / BEATS_PER_LEASE):
                if monotonic() - self._progress_at > MAX_SILENCE_SECONDS or not self._renew():
                    return
        finally:
            connection.close()

    def _renew(self) -> bool:
        try:
            return bool(JobRun.objects.held_by(self.run).update(lease_until=Now() + lease()))
        except Error as err:
            logger.warning("the lease of run %s was not renewed: %s", self.run.id, type(err).__name__)
            connection.close()
            return True

    def stop(self) -> None:
        self._stop.set()


@contextmanager
def beating(run: JobRun) -> Iterator[Heartbeat]:
    """Renew the lease of a claimed run meanwhile."""
    heartbeat = Heartbeat(run)
    thread = Thread(target=heartbeat.beat, name=f"heartbeat of {run.id}", daemon=True)
    thread.start()
    try:
        yield heartbeat
    finally:
        heartbeat.stop()
        thread.join()


class LeaseLost(Exception):  # noqa: N818 - it says what happened
    """The lease of a run that another worker has taken over; this worker must stop."""


class CursorStuck(MemoryServiceError):  # noqa: N818 - as in the rest of the tree
    """A job asked for the same batch again: it would keep its worker for ever."""

    code = "cursor_stuck"


def run_waiting(job: Job, *, clock: Clock) -> None:
    """Run what waits for this job until nothing does, started runs first.

    Returns immediately if another worker is at it. The clock is read for each batch: a run may take hours, and may have
    been requested while another one was on.
    """
    give_up_hopeless_runs(job)
    runs = JobRun.objects.filter(job=job.name)
    while run := runs.claim(leased_by=new_lease_holder(), lease=lease()):
        execute(job, run, clock=clock)


def run_at_once(job: Job, run: JobRun, *, clock: Clock, on_progress: Progress | None = None) -> JobRun:
    """Run this new run now, after the one that a killed worker may have left. Raises Conflict if another is on."""
    give_up_hopeless_runs(job)
    if (
        left := JobRun.objects.filter(job=job.name, account=run.account_id)
        .abandoned()
        .claim(leased_by=new_lease_holder(), lease=lease())
    ):
        execute(job, left, clock=clock)
    try:
        with transaction.atomic():
            run.save(force_insert=True)
            run.begin(leased_by=new_lease_holder(), lease=lease())
    except IntegrityError as err:  # job_runs_once_at_a_time, job_runs_once_per_account
        raise Conflict(f"another run of {job.name} is on") from err
    return execute(job, run, clock=clock, on_progress=on_progress)


def execute(job: Job, run: JobRun, *, clock: Clock, on_progress: Progress | None = None) -> JobRun:
    """Run a claimed run to its end and return its row. Whatever it raises is stored in the row."""
    with logged_as_job(run.id):
        logger.debug("job %s run %s begins, attempt %s", job.name, run.id, run.attempts)
        try:
            with beating(run) as heartbeat, span("job", job=job.name) as traced:
                cursor, more = run.cursor, True
                while more:
                    batch = Batch(
                        size=job.batch_size,
                        cursor=cursor,
                        account_id=run.account_id,
                        dry_run=run.dry_run,
                        is_resumed=run.attempts > 1 and cursor == run.cursor,
                        renew=partial(renew_lease, run, heartbeat),
                    )
                    report = job.run(now=run.at or clock(), batch=batch)
                    if report.cursor and report.cursor == cursor:
                        raise CursorStuck(f"{job.name} did not move its cursor")
                    keep_progress(run, report)
                    heartbeat.note_progress()
                    cursor, more = report.cursor, bool(report.cursor)
                    if on_progress is not None:
                        on_progress(report)
                run.refresh_from_db()
                report_end(run)
                traced.note(examined=run.examined, changed=run.changed, failed=run.failed)
        except LeaseLost:
            logger.warning("job %s run %s stops: it lost its lease, another worker has taken it up", job.name, run.id)
        except Exception as error:  # noqa: BLE001 - the outermost loop of every job
            fail(run, error)
        run.refresh_from_db()
    return run


def report_end(run: JobRun) -> None:
    """Log the result. Scheduled runs that found nothing leave little trace, so log and table grow with work only."""
    idle = run.requested_by == SCHEDULE and run.examined == run.failed == 0
    figures = (run.examined, run.changed, run.failed)
    level = logging.DEBUG if idle else logging.INFO
    logger.log(level, "job %s run %s done: %s examined, %s changed, %s failed", run.job, run.id, *figures)
    if idle:
        JobRun.objects.scheduled(run.job).found_nothing().filter(created_at__lt=run.created_at).delete()


def keep_progress(run: JobRun, report: BatchReport) -> None:
    """Add a batch's figures and renew the lease, or end the run with them. Raises LeaseLost."""
    columns: dict[str, Any] = {name: F(name) + getattr(report, name) for name in ("examined", "changed", "failed")}
    if report.figures:
        run.figures = columns["figures"] = dict(Counter(run.figures) + Counter(report.figures))
    if report.cursor:
        state = {"lease_until": Now() + lease(), "attempts": 1}
    else:
        state = {"lease_until": None, "status": ended(run, report), "finished_at": Now()}
    if not JobRun.objects.held_by(run).update(cursor=report.cursor, **columns, **state):
        raise LeaseLost
    run.failed += report.failed


def ended(run: JobRun, last: BatchReport) -> JobRun.Status:
    """Return the status of a run that came to its end: complete only if nothing failed."""
    return JobRun.Status.INCOMPLETE if run.failed + last.failed else JobRun.Status.COMPLETED


def renew_lease(run: JobRun, heartbeat: Heartbeat) -> None:
    """Renew the lease within a batch. Raises LeaseLost."""
    heartbeat.note_progress()
    if not JobRun.objects.held_by(run).update(lease_until=Now() + lease()):
        raise LeaseLost


def fail(run: JobRun, error: Exception) -> None:
    frames = traceback.extract_tb(error.__traceback__)
    # without the exception's own message, which may quote what is remembered
    logger.error("job %s run %s failed: %s\n%s", run.job, run.id, describe(error), "".join(frames.format()))
    if connection.errors_occurred:  # it may have broken under the job: note the failure on another
        connection.close()
    JobRun.objects.held_by(run).update(
        status=JobRun.Status.FAILED, lease_until=None, finished_at=Now(), error=describe(error)[:500]
    )


def describe(error: Exception) -> str:
    """Return the class and message of our own errors, which hold no contents, or else where the error was raised."""
    if isinstance(error, MemoryServiceError):
        return f"{type(error).__name__}: {error}"
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    return f"{type(error).__name__} in {Path(ours[-1].filename).name}, line {ours[-1].lineno}"


def give_up_hopeless_runs(job: Job) -> None:
    """Give up runs on which JOB_ATTEMPTS workers died at the same batch: they would kill the next worker too."""
    hopeless = JobRun.objects.filter(job=job.name, attempts__gte=conf.JOB_ATTEMPTS).abandoned()
    error = f"Given up: {conf.JOB_ATTEMPTS} workers in a row were killed, or hung, on the same batch."
    if hopeless.update(status=JobRun.Status.FAILED, lease_until=None, finished_at=Now(), error=error):
        logger.error("job %s: %s", job.name, error)


def new_lease_holder() -> str:
    """Return machine and process, for people to read, and a new id, since process ids are reused."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}:{uuid7()}"
