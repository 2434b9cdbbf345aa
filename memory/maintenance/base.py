"""The shape of a job: a function that does one batch of its work in one transaction and reports what it did."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import Protocol, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memory.services.account_walk import AccountPage, read_account_page

Row = TypeVar("Row", bound=Model)

Clock = Callable[[], datetime]
"""Returns the current time. Passed in from the edge, since only the edge may read the real clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch to do: at most `size` rows after `cursor` (that of the last report), in one account or in all of them."""

    size: int
    cursor: str = ""
    account_id: UUID | None = None
    dry_run: bool = False
    """Count without changing anything; `changed` is then how many rows would have changed."""
    is_resumed: bool = field(default=False, compare=False)
    """True if a worker died on this batch before."""
    renew: Callable[[], None] = field(default=lambda: None, compare=False)
    """Renew the lease, from within a batch that may outlast it. Raises if another worker has taken over."""

    def page_of(self, rows: QuerySet[Row]) -> AccountPage[Row]:
        """Return the rows of this batch, by account and id, and the cursor of the next (`services.account_walk`)."""
        return read_account_page(rows, after=self.cursor, limit=self.size, account_id=self.account_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """The result of one batch.

    `cursor` (at most 200 characters) is where the next batch starts, and never where this one did; it is empty when
    nothing is left. `figures` are further counts of the job, which a run adds up.
    """

    examined: int
    changed: int
    failed: int = 0
    cursor: str = ""
    figures: Mapping[str, int] = field(default_factory=dict)


class RunBatch(Protocol):
    """One batch. Idempotent: when a worker is killed before it saved its progress, the same batch runs again."""

    def __call__(self, *, now: datetime, batch: Batch) -> BatchReport: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A registered piece of maintenance.

    `every` is the pause between two runs, or the time of day (UTC) of the daily run; None if it runs on request only.
    `aliases` are former names, which requests, commands and settings may still use.
    """

    name: str
    description: str
    run: RunBatch
    every: timedelta | time | None
    batch_size: int
    aliases: Sequence[str] = ()

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
    *, every: timedelta | time | None, batch_size: int, aliases: Sequence[str] = ()
) -> Callable[[JobFunction], JobFunction]:
    """Register the decorated function as the job of its name, described by the first line of its docstring."""

    def register(run: JobFunction) -> JobFunction:
        description = (run.__doc__ or "").partition("\n")[0]
        REGISTERED_JOBS[run.__name__] = Job(
            name=run.__name__, description=description, run=run, every=every, batch_size=batch_size, aliases=aliases
        )
        return run

    return register
