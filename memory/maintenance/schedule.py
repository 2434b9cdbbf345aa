"""The schedule of jobs: their own times, unless MEMORY_JOB_TIMES gives others.

An example of the setting: `decay=03:15,globalize_facts=30m,embed=off`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import time, timedelta

from memory.maintenance.base import Job
from memory_project.env import SettingError

PAUSE = re.compile(r"([1-9][0-9]{0,5})([smh])")
SECONDS = {"h": 3_600, "m": 60, "s": 1}
"""The length of each unit, the largest unit first."""
OFF = "off"


def rescheduled(jobs: Iterable[Job], times: Sequence[str]) -> dict[str, Job]:
    """Return the jobs by name, at these times. Raises SettingError for malformed times and for unknown jobs."""
    known = {job.name: job for job in jobs}
    current = current_names(known.values())
    for entry in times:
        given, _, text = (part.strip() for part in entry.partition("="))
        if given not in current:
            raise SettingError(f"MEMORY_JOB_TIMES names the unknown job {given!r}. Jobs: {', '.join(known)}.")
        name = current[given]
        known[name] = replace(known[name], every=parse_job_time(name, text))
    return known


def current_names(jobs: Iterable[Job]) -> dict[str, str]:
    """Return the names of jobs by each name that is accepted for them: their own, and their aliases."""
    return {accepted: job.name for job in jobs for accepted in (job.name, *job.aliases)}


def parse_job_time(name: str, text: str) -> timedelta | time | None:
    """Parse `04:00` (a time of day, UTC), `30s`, `15m`, `2h` (a pause), or `off`. Raises SettingError.

    >>> parse_job_time("decay", "15m")
    datetime.timedelta(seconds=900)
    """
    if text == OFF:
        return None
    if pause := PAUSE.fullmatch(text):
        return timedelta(seconds=int(pause[1]) * SECONDS[pause[2]])
    try:
        if not re.fullmatch(r"[0-9]{2}:[0-9]{2}", text):
            raise ValueError(text)
        return time.fromisoformat(text)
    except ValueError:
        raise SettingError(
            f"MEMORY_JOB_TIMES: {name} runs at a time of day like 04:00 (UTC), after a pause like 30s, 15m or 2h, or "
            f"is off, not {text!r}."
        ) from None


def format_job_time(every: timedelta | time | None) -> str:
    """Format a job's time as `parse_job_time` reads it.

    >>> format_job_time(timedelta(minutes=90))
    '90m'
    """
    if every is None:
        return OFF
    if isinstance(every, time):
        return f"{every:%H:%M}"
    seconds = int(every.total_seconds())
    unit = next(unit for unit, size in SECONDS.items() if seconds % size == 0)
    return f"{seconds // SECONDS[unit]}{unit}"
