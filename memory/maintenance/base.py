"""The shape of a job: a function that does one batch of its work in one transaction and reports what it did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Protocol

from memory.services.account_walk import Batch, BatchReport

__all__ = ["REGISTERED_JOBS", "Batch", "BatchReport", "Clock", "Job", "JobFunction", "Progress", "RunBatch", "job"]

Clock = Callable[[], datetime]
"""Returns the current time. Passed in from the edge, since only the edge may read the real clock."""


class RunBatch(Protocol):
    """One batch. Idempotent: when a worker is killed before it saved its progress, the same batch runs again."""

    def __call__(self, *, now: datetime, batch: Batch) -> BatchReport: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A registered piece of maintenance.

    `every` is the pause between two runs, or the time of day (UTC) of the daily run; None if it runs on request only.
    `aliases` are former names, which requests, commands and settings may still use. A job `of_installation` does the
    same for all accounts, so that it cannot be narrowed to one.
    """

    name: str
    description: str
    run: RunBatch
    every: timedelta | time | None
    batch_size: int
    aliases: Sequence[str] = ()
    of_installation: bool = False

    def last_due(self, now: datetime) -> datetime | None:
        """Return the latest time at which a run should have been requested; None for a job that is off."""
        if self.every is None:
            return None
        if isinstance(self.every, timedelta):
            return now - self.every
        today = now.replace(hour=self.every.hour, minute=self.every.minute, second=0, microsecond=0)
        return today if today <= now else today - timedelta(days=1)

    def due_since(self, now: datetime) -> datetime:
        """Return the time since which a scheduled run stands for the one that is due now; `now` for a job that is off.

        Beats are a little early or late: the last tenth of an interval is the next run's.
        """
        if isinstance(self.every, timedelta):
            return now - 0.9 * self.every
        return self.last_due(now) or now


Progress = Callable[[BatchReport], None]
"""Called with the report of each batch once it is stored."""

REGISTERED_JOBS: dict[str, Job] = {}
"""The jobs by name, as their modules declare them."""


class JobFunction(RunBatch, Protocol):
    """A function that does one batch, and whose name is the job's."""

    __name__: str


def job(
    *, every: timedelta | time | None, batch_size: int, aliases: Sequence[str] = (), of_installation: bool = False
) -> Callable[[JobFunction], JobFunction]:
    """Register the decorated function as the job of its name, described by the first line of its docstring."""

    def register(run: JobFunction) -> JobFunction:
        description = (run.__doc__ or "").partition("\n")[0]
        REGISTERED_JOBS[run.__name__] = Job(
            name=run.__name__,
            description=description,
            run=run,
            every=every,
            batch_size=batch_size,
            aliases=aliases,
            of_installation=of_installation,
        )
        return run

    return register
