"""Jobs done in this process, each run killed once in the midst of what it does and then taken up again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from lab.simulation.equations import Done
from lab.simulation.month import do_at_once, figures_of_runs
from lab.simulation.timetable import Due
from memory.maintenance.runner import execute, run_waiting
from memory.models import Account, JobRun

WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")


class Killed(BaseException):
    """No job catches it, as none catches a SIGKILL."""


class Interrupting:
    """Does jobs; a run is killed right behind one of its first writes, another one each time.

    What picks up what others left is left alone: by then, their claims have run out.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self.kills = 0

    def __call__(self, due: Due, account: Account) -> Done:
        if due.is_once_more:
            return do_at_once(due, account)
        run = JobRun.objects.create(job=due.job.name, account=account, requested_by="simulation", at=due.at)
        claimed = JobRun.objects.filter(id=run.id).claim(leased_by="the doomed", lease=timedelta(minutes=1))
        assert claimed is not None
        with suppress(Killed), self.killed_at_write(next(self._numbers) % 7):
            execute(due.job, claimed, clock=timezone.now)
        JobRun.objects.filter(id=run.id, status="running").update(lease_until=Now() - timedelta(seconds=1))
        run_waiting(due.job, clock=timezone.now)
        run.refresh_from_db()
        return figures_of_runs([run])

    @contextmanager
    def killed_at_write(self, number: int) -> Iterator[None]:
        writes = count()

        def kill(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
            done = execute(sql, params, many, context)
            if sql.lstrip().startswith(WRITES) and next(writes) == number:
                self.kills += 1
                raise Killed
            return done

        with connection.execute_wrapper(kill):
            yield
