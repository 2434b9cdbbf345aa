"""The jobs as Celery tasks: messages that say "look at your rows". Losing one loses nothing."""

import logging
from collections.abc import Iterable
from datetime import time, timedelta
from queue import Full, Queue
from threading import Lock, Thread
from typing import Any

from celery import Celery
from celery.schedules import crontab
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from memory.errors import NotFound
from memory.maintenance import JOBS, Job, find_job, runner
from memory.models import JobRun
from memory.services.operations.jobs import schedule_due_run, schedule_overdue_run, schedule_run
from memory_project.celery import app

logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=30)

RESUME_EVERY = timedelta(seconds=5)

# beat's own message should have queued a run by then
OVERDUE_AFTER = timedelta(minutes=1)

EXPIRES_SECONDS = 60
"""Seconds that a notification stays valid. The next sweep sends another one."""


class WorkerNotifier:
    """Publishes from a thread of its own, which starts with the first notification and therefore after any fork.

    So a dead broker, which can block a publisher for seconds, costs a request neither time nor success.
    """

    def __init__(self, application: Celery, *, max_waiting: int = 100) -> None:
        self._application = application
        self._waiting: Queue[tuple[str, str]] = Queue(max_waiting)
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_closed = False

    def notify(self, task: str, argument: str) -> None:
        """Call `task(argument)` in some worker, soon. Return immediately and never raise."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._publish, name="worker-notifications", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait((task, argument))
        except Full:
            logger.warning("notification for %s dropped: the broker accepts none", task)

    def close(self) -> None:
        """Stop publishing. Waiting notifications are lost; the thread ends with the one in progress."""
        self._is_closed = True

    def _publish(self) -> None:
        while not self._is_closed:
            task, argument = self._waiting.get()
            try:
                self._application.send_task(task, (argument,), retry=False, expires=EXPIRES_SECONDS)
            except (OperationalError, OSError) as err:
                if self._is_closed:
                    return
                logger.warning("notification for %s lost (%s): the sweep finds the row", task, type(err).__name__)


worker_notifier = WorkerNotifier(app)


@app.task  # type: ignore[untyped-decorator]
def run_job(name: str) -> None:
    """Do what waits for this job. Harmless to call at any time, any number of times."""
    try:
        runner.run_waiting(find_job(name), clock=timezone.now)
    except NotFound:
        logger.warning("unknown job %s: the message comes from another version", name)


@app.task  # type: ignore[untyped-decorator]
def run_scheduled_job(name: str) -> None:
    """Queue a run of a job that is due, unless another beat did, and do what waits for it."""
    if name in JOBS:
        schedule_due_run(name, since=JOBS[name].due_since(timezone.now()))
    run_job(name)


@app.task  # type: ignore[untyped-decorator]
def sweep_jobs() -> None:
    """Find work that no message announced.

    That is: runs queued while the broker was down, runs of killed workers, and missed jobs.
    """
    now = timezone.now()
    for job in JOBS.values():
        if (due := job.last_due(now - OVERDUE_AFTER)) is not None:
            schedule_overdue_run(job.name, due=due, now=now)
    for name in JobRun.objects.waiting().values_list("job", flat=True).distinct():
        notify_job_worker(name)


@app.task  # type: ignore[untyped-decorator]
def resume_jobs() -> None:
    """Have the runs of dead workers taken over as soon as their leases end."""
    for name in JobRun.objects.abandoned().values_list("job", flat=True).distinct():
        notify_job_worker(name)


def notify_job_worker(name: str) -> None:
    """Have a worker look at this job's rows now; call it after the commit. Return immediately, broker or not."""
    worker_notifier.notify("memory.tasks.run_job", name)


def run_soon(name: str) -> None:
    """Queue a run of this job and notify a worker once it is committed, unless one is waiting.

    For that one, a worker was notified. If the message was lost, the sweep sends another one.
    """
    if schedule_run(name):
        transaction.on_commit(lambda: notify_job_worker(name))


def beat_schedule(jobs: Iterable[Job]) -> dict[str, dict[str, Any]]:
    """Return beat's entries: one per job, the sweep, and the take-over of runs.

    A message that is not taken in time expires: another one follows.
    """
    entries = {f"run {job.name}": beat_entry(job, job.every) for job in jobs if job.every is not None}
    sweep = {"task": "memory.tasks.sweep_jobs", "schedule": SWEEP_EVERY, "options": {"expires": SWEEP_EVERY.seconds}}
    resume = {
        "task": "memory.tasks.resume_jobs",
        "schedule": RESUME_EVERY,
        "options": {"expires": RESUME_EVERY.seconds},
    }
    return entries | {"sweep jobs": sweep, "resume jobs": resume}


def beat_entry(job: Job, every: timedelta | time) -> dict[str, Any]:
    entry = {"task": "memory.tasks.run_scheduled_job", "args": (job.name,)}
    if isinstance(every, time):
        daily = crontab(hour=every.hour, minute=every.minute)
        return entry | {"schedule": daily, "options": {"expires": 3_600}}
    return entry | {"schedule": every, "options": {"expires": every.total_seconds()}}


app.conf.beat_schedule = beat_schedule(JOBS.values())
