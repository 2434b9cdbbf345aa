"""When jobs run: the documented times, unless MEMORY_JOB_TIMES says otherwise (`decay=03:15,promote=30m,embed=off`)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import time, timedelta

from memory.maintenance.base import Job
from memory_project.knobs import SettingError

PAUSE = re.compile(r"([1-9][0-9]{0,5})([smh])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}
SECONDS = {"h": 3_600, "m": 60, "s": 1}
"""The largest unit first."""
OFF = "off"


def rescheduled(jobs: Iterable[Job], times: Sequence[str]) -> dict[str, Job]:
    """The jobs by their names, at these times. Raises SettingError for times that are none, and for unknown jobs."""
    known = {job.name: job for job in jobs}
    for entry in times:
        name, _, text = (part.strip() for part in entry.partition("="))
        if name not in known:
            raise SettingError(f"MEMORY_JOB_TIMES names {name!r}, and there is no such job: {', '.join(known)}.")
        known[name] = replace(known[name], every=parse_time(name, text))
    return known


def parse_time(name: str, text: str) -> timedelta | time | None:
    """`04:00` (a time of day, UTC), `30s`, `15m`, `2h` (a pause), or `off`.

    >>> parse_time("decay", "15m")
    datetime.timedelta(seconds=900)
    """
    if text == OFF:
        return None
    if pause := PAUSE.fullmatch(text):
        return timedelta(**{UNITS[pause[2]]: int(pause[1])})
    try:
        return time.fromisoformat(text) if re.fullmatch(r"[0-9]{2}:[0-9]{2}", text) else refuse(name, text)
    except ValueError:
        return refuse(name, text)


def tell_time(every: timedelta | time | None) -> str:
    """What `parse_time` reads.

    >>> tell_time(timedelta(minutes=90))
    '90m'
    """
    if every is None:
        return OFF
    if isinstance(every, time):
        return f"{every:%H:%M}"
    seconds = int(every.total_seconds())
    unit = next(unit for unit, size in SECONDS.items() if seconds % size == 0)
    return f"{seconds // SECONDS[unit]}{unit}"


def refuse(name: str, text: str) -> time:
    raise SettingError(
        f"MEMORY_JOB_TIMES: {name} runs at a time of day like 04:00 (UTC), after a pause like 30s, 15m or 2h, or is "
        f"off, not {text!r}."
    )
