"""What a job is: a function that does one batch of its work in a transaction of its own and says what it did."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import Protocol
from uuid import UUID

Clock = Callable[[], datetime]
"""Tells the time when it is asked; given from the edge, since only the edge may read the real one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What to do in one go: at most `size` rows, after `cursor` (the last report's), in one account or in all."""

    size: int
    cursor: str = ""
    account_id: UUID | None = None
    dry_run: bool = False
    """Look and count, change nothing. `changed` is then what would have changed."""
    renew: Callable[[], None] = field(default=lambda: None, compare=False)
    """To be called now and then by a batch that may outlast the lease. Raises where another worker has taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one batch did. `cursor` (at most 200 characters) is where the next one starts, never where this
    one did; empty: nothing is left. `figures` are whatever else the job counts; a run adds them up."""

    examined: int
    changed: int
    failed: int = 0
    cursor: str = ""
    figures: Mapping[str, int] = field(default_factory=dict)


class Run(Protocol):
    """One batch. Idempotent: a worker killed after it, before its progress was saved, leads to the same batch again."""

    def __call__(self, *, now: datetime, batch: Batch) -> Report: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A piece of maintenance under its name. `every`: the pause between two runs, or the time of day (UTC).

    None: nobody but who asks for it."""

    name: str
    description: str
    run: Run
    every: timedelta | time | None
    batch_size: int

    def last_due(self, now: datetime) -> datetime | None:
        """When, at the latest, a run should have been asked for; None for a job that is off."""
        if self.every is None:
            return None
        if isinstance(self.every, timedelta):
            return now - self.every
        today = now.replace(hour=self.every.hour, minute=self.every.minute, second=0, microsecond=0)
        return today if today <= now else today - timedelta(days=1)


Progress = Callable[[Report], None]
"""Told the report of each batch once it is kept."""
