"""The timetable of a day's jobs: daily ones at their times, the others some hours after people were active.

Queues are processed once more an hour later: what a killed worker held is free again by then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from memory.maintenance import Job

TALKS_AT = (time(9), time(14), time(19))
JOBS_AFTER = timedelta(hours=2)
ONCE_MORE_AFTER = timedelta(minutes=61)
QUEUES = frozenset({"embed", "extract_knowledge", "summarize"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A job as of a time."""

    at: datetime
    job: Job
    is_once_more: bool = False


def talk_times(day: date, hours: Sequence[time] = TALKS_AT) -> list[datetime]:
    return [datetime.combine(day, hour, tzinfo=UTC) for hour in hours]


def jobs_of_day(day: date, jobs: Mapping[str, Job], hours: Sequence[time] = TALKS_AT) -> list[Due]:
    """Return the jobs in the order of their times, and by name at the same time. People talk at these hours."""
    found = [due for job in jobs.values() for due in times_of_job(job, day, hours)]
    return sorted(found, key=lambda due: (due.at, due.job.name))


def times_of_job(job: Job, day: date, hours: Sequence[time]) -> Iterable[Due]:
    if job.every is None:
        return
    if isinstance(job.every, time):
        yield Due(at=datetime.combine(day, job.every, tzinfo=UTC), job=job)
        return
    for talked_at in talk_times(day, hours):
        yield Due(at=talked_at + JOBS_AFTER, job=job)
        if job.name in QUEUES:
            yield Due(at=talked_at + JOBS_AFTER + ONCE_MORE_AFTER, job=job, is_once_more=True)
