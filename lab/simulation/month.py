"""The month: what people do and what jobs do, one after the other, with the counts before and after each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from time import perf_counter
from typing import Protocol
from uuid import UUID

from django.db import connection
from django.utils import timezone

from lab.simulation.counts import Counts, changes, count_everything, count_extracted_links
from lab.simulation.dating import date_rows
from lab.simulation.equations import EXTRACTED_LINKS, Done, Unexplained, explain, explain_fading
from lab.simulation.lives import Life, World, make_world
from lab.simulation.script import ScriptedConversation, ScriptSize, former_talks, talks_of_day
from lab.simulation.timetable import TALKS_AT, Due, jobs_of_day, talk_times
from memory.maintenance import JOBS, Job
from memory.maintenance.runner import run_at_once
from memory.models import Account, JobRun

FORMER_DAYS = 85
"""Ago: the last of what was said before the month. In it, retention comes to it."""
SALIENCES = "SELECT id, kind, salience FROM memories WHERE account_id = %s"
CONFIDENCES = "SELECT id, 'confidence', confidence FROM memories WHERE account_id = %s AND kind = 'fact'"


class Doer(Protocol):
    """Runs a job at a time and returns what its runs counted."""

    def __call__(self, due: Due, account: Account) -> Done: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthStep:
    """One job at one time: its figures, how long it took, and what nothing explains."""

    job: str
    at: datetime
    is_once_more: bool
    done: Done
    seconds: float
    unexplained: Sequence[Unexplained]


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """The place and time of the simulation, and what runs its jobs. `is_counted`: counts are taken around each job."""

    extent: ScriptSize
    account: Account
    first_day: date
    since: datetime
    """Start of the simulation on the wall clock. Everything with a later time was dated by the database."""
    do: Doer
    is_counted: bool = True
    jobs: Mapping[str, Job] = field(default_factory=lambda: JOBS)
    hours: Sequence[time] = TALKS_AT
    """Hours of every day at which people talk."""

    def live(self) -> Iterator[MonthStep]:
        """Yield the steps as they are made."""
        world = make_world(self.account, self.extent, now=talk_times(self.first_day)[0])
        yield from self.live_before(world)
        for number in range(self.extent.days):
            yield from self.live_day(world, number)

    def live_before(self, world: World) -> Iterator[MonthStep]:
        """Yield the steps of long before: a day each, and what jobs made of it on the eve of the month."""
        for number, talk in enumerate(former_talks(self.extent)):
            day = self.first_day - timedelta(days=FORMER_DAYS - number % self.extent.days)
            self.talk(world, talk, talk_times(day)[0])
        eve = self.first_day - timedelta(days=1)
        often = {name: job for name, job in self.jobs.items() if isinstance(job.every, timedelta)}
        for due in jobs_of_day(eve, often, self.hours[-1:]):
            yield self.step(due)

    def live_day(self, world: World, number: int) -> Iterator[MonthStep]:
        day = self.first_day + timedelta(days=number)
        times, talks = talk_times(day, self.hours), talks_of_day(self.extent, number)
        waiting = {at: talks[turn :: len(times)] for turn, at in enumerate(times)}
        for due in jobs_of_day(day, self.jobs, self.hours):
            for at in [each for each in waiting if each < due.at]:
                for talk in waiting.pop(at):
                    self.talk(world, talk, at)
            yield self.step(due)

    def talk(self, world: World, talk: ScriptedConversation, at: datetime) -> None:
        Life(world=world, talk=talk, at=at).live()
        date_rows(self.account.id, since=self.since, at=at)

    def step(self, due: Due) -> MonthStep:
        before, faded, began_at = self.count(), self.look_at_fading(due), timezone.now()
        began = perf_counter()
        done = self.do(due, self.account)
        seconds = perf_counter() - began
        date_rows(self.account.id, since=self.since, at=due.at)
        changed = {**changes(before, self.count()), **self.look_at_extracted(due, began_at)}
        unexplained = explain(due.job.name, changed, done) if self.is_counted else []
        unexplained += explain_fading(due.job.name, faded, self.look_at_fading(due), done)
        return MonthStep(
            job=due.job.name,
            at=due.at,
            is_once_more=due.is_once_more,
            done=done,
            seconds=seconds,
            unexplained=unexplained,
        )

    def count(self) -> Counts:
        return count_everything(self.account.id) if self.is_counted else {}

    def look_at_extracted(self, due: Due, since: datetime) -> Counts:
        """Count the links that the extraction job has made since."""
        if not self.is_counted or due.job.name != "extract_knowledge":
            return {}
        made = count_extracted_links(self.account.id, since)
        return {EXTRACTED_LINKS: made} if made else {}

    def look_at_fading(self, due: Due) -> dict[tuple[UUID, str], float]:
        """Read the salience of every memory, for the job `decay`."""
        if not self.is_counted or due.job.name != "decay":
            return {}
        with connection.cursor() as cursor:
            cursor.execute(f"{SALIENCES} UNION ALL {CONFIDENCES}", [self.account.id] * 2)
            return {(memory_id, what): worth for memory_id, what, worth in cursor.fetchall()}


def first_day_of(extent: ScriptSize, now: datetime) -> date:
    """Return the first day, such that the last day ended before now and nothing lies in the future."""
    return now.astimezone(UTC).date() - timedelta(days=extent.days)


def do_at_once(due: Due, account: Account) -> Done:
    """Run a job in this process."""
    run = JobRun(job=due.job.name, account=account, requested_by="simulation", at=due.at)
    return figures_of_runs([run_at_once(due.job, run, clock=timezone.now)])


def figures_of_runs(runs: Sequence[JobRun]) -> Done:
    """Add up the figures of the runs. A failed run counts as one failure."""
    figures: dict[str, int] = {}
    for run in runs:
        for name, number in run.figures.items():
            figures[name] = figures.get(name, 0) + number
    broken = sum(run.status == JobRun.Status.FAILED for run in runs)
    return Done(
        runs=len(runs),
        examined=sum(run.examined for run in runs),
        changed=sum(run.changed for run in runs),
        failed=sum(run.failed for run in runs) + broken,
        figures=figures,
    )
