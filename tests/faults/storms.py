"""Jobs done by a real worker while it is killed and its servers are stopped, until all of them are done."""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from lab.simulation.equations import Done
from lab.simulation.month import figures_of_runs
from lab.simulation.timetable import Due
from memory.models import Account, JobRun
from memory.tasks import notify_job_worker
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer
from tests.faults.servers import Servers
from tests.memory.maintenance.workers import Worker, worker_started

NOTIFY_SECONDS = 0.5
LOOK_SECONDS = 0.003
PATIENCE_SECONDS = 180
MOST_RUNS = 20
"""Of one job at one time: a run that failed is asked for again, as beat does."""
AWAY_SECONDS = 1.0

T = TypeVar("T")
Strike = Callable[[], None]


@dataclass(slots=True, kw_only=True)
class Storm:
    """Queues each run as a row for the worker, and strikes while it is at it, at the steps of the plan.

    `seconds` are what the steps took in a calm month: a strike comes at a random moment of that.
    """

    servers: Servers
    plan: Mapping[int, str]
    seconds: Sequence[float]
    draw: random.Random
    stack: ExitStack
    folder: Path
    number: int = -1
    workers: int = 0
    worker: Worker | None = None
    met: Counter[str] = field(default_factory=Counter)
    """Strikes, by what was struck and the state in which that found the run."""

    def __call__(self, due: Due, account: Account) -> Done:
        self.number += 1
        run = self.queue(due, account)
        notify_job_worker(due.job.name)
        if what := self.plan.get(self.number):
            self.strike(what, run)
        return figures_of_runs(self.see_through(due, account, [run]))

    def queue(self, due: Due, account: Account) -> JobRun:
        run = JobRun(job=due.job.name, account=account, requested_by="simulation", at=due.at)
        persistently(lambda: JobRun.objects.bulk_create([run], ignore_conflicts=True))
        return run

    def see_through(self, due: Due, account: Account, runs: list[JobRun]) -> list[JobRun]:
        """Wait until the last run is done. A run that failed because its server was gone is followed by another."""
        deadline, notified = time.monotonic() + PATIENCE_SECONDS, time.monotonic()
        while True:
            assert time.monotonic() < deadline, f"{due.job.name} as of {due.at} is not done"
            status = status_of(runs[-1])
            if status == JobRun.Status.FAILED:
                assert len(runs) < MOST_RUNS, f"{due.job.name} as of {due.at} fails: {runs[-1].error}"
                runs.append(self.queue(due, account))
                notify_job_worker(due.job.name)
            elif status in JobRun.FINISHED:
                return runs
            if time.monotonic() - notified > NOTIFY_SECONDS:
                notify_job_worker(due.job.name)
                notified = time.monotonic()
            time.sleep(LOOK_SECONDS)

    def strike(self, what: str, run: JobRun) -> None:
        """Once the worker has begun, at a random moment of as long as it took in calm weather."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while status_of(run) == JobRun.Status.QUEUED and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        time.sleep(self.draw.uniform(0, self.seconds[self.number]))
        strikes: Mapping[str, Strike] = {
            "worker": self.kill_worker,
            "postgres": lambda: self.restart(self.servers.postgres),
            "valkey": lambda: self.restart(self.servers.valkey),
        }
        strikes[what]()
        self.met[f"{what}: run was {status_of(run)}"] += 1
        if self.worker is None:
            self.start_worker()

    def start_worker(self) -> None:
        self.workers += 1
        self.worker = self.stack.enter_context(worker_started(self.folder, f"worker-{self.workers}"))

    def kill_worker(self) -> None:
        assert self.worker is not None
        self.worker.kill()
        self.worker = None

    def restart(self, server: PostgresServer | ValkeyServer) -> None:
        server.stop()
        time.sleep(AWAY_SECONDS)
        server.start()


@contextmanager
def storm_raised(
    servers: Servers, *, plan: Mapping[int, str], seconds: Sequence[float], draw: random.Random
) -> Iterator[Storm]:
    """Start a storm with its first worker, and end its last worker with the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agent-memory-storm-")))
        storm = Storm(servers=servers, plan=plan, seconds=seconds, draw=draw, stack=stack, folder=folder)
        storm.start_worker()
        yield storm


def status_of(run: JobRun) -> str:
    persistently(run.refresh_from_db)
    return run.status


def persistently(act: Callable[[], T]) -> T:
    """Again and again while the database is away."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return act()
        except (OperationalError, InterfaceError):
            if time.monotonic() > deadline:
                raise
            connection.close()
            time.sleep(LOOK_SECONDS)
