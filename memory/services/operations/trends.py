"""The installation's figures over time, for the dashboard: from samples, runs of jobs and model usage.

A fixed number of statements, whatever is stored: samples are looked up by name and time, runs by their ids, which are
in chronological order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Sum

from memory.kinds import all_kinds
from memory.models import ModelUsage
from memory.models.binary import fetch_dicts
from memory_project.ids import first_uuid7
from memory_project.measures import OUTCOMES, QUANTILES

ROWS = "memory_rows"
RECALL = "memory_recall_window_seconds"
TIER_ITEMS = "memory_tier_items"
TIERS = ("working", "short_term", "long_term", "shared")
BACKLOG = "memory_backlog"
QUEUES = ("embedding", "extraction", "summary")
LAG = "memory_consolidation_lag_seconds"
REDIS_BYTES = "memory_redis_used_bytes"
DATABASE_BYTES = "memory_database_bytes"
EMBEDDING_CACHE = "memory_embedding_cache_lookups_total"
SESSION_BUFFERS = "memory_session_buffer_reads_total"
EMBEDDING_REQUESTS = "memory_embedding_requests_total"
"""Names of samples, as in `/metrics` (`operations.samples`)."""

SampleKey = tuple[str, str]
"""Name and label of a sample."""

BY_KIND: Sequence[SampleKey] = [(ROWS, kind.value) for kind in all_kinds()]
BY_TIER: Sequence[SampleKey] = [(TIER_ITEMS, tier) for tier in TIERS]
COUNTERS: Sequence[SampleKey] = [(name, outcome) for name, outcomes in OUTCOMES.items() for outcome in outcomes]
SIZES: Sequence[SampleKey] = [(REDIS_BYTES, ""), (DATABASE_BYTES, "")]
RECENT: Sequence[SampleKey] = [
    *((RECALL, str(share)) for share in QUANTILES),
    *((BACKLOG, queue) for queue in QUEUES),
    (LAG, ""),
]

# the highest value of each slot, because peaks are what operators look for
SAMPLES = """
SELECT asked.place, slot.number, measured.value
FROM unnest(%(names)s::text[], %(labels)s::text[]) WITH ORDINALITY AS asked (name, label, place)
CROSS JOIN generate_series(0, %(slots)s - 1) AS slot (number)
CROSS JOIN LATERAL (
    SELECT max(value) AS value FROM metric_samples
    WHERE name = asked.name AND label = asked.label
        AND at > %(now)s - (%(slots)s - slot.number) * %(step)s::interval
        AND at <= %(now)s - (%(slots)s - slot.number - 1) * %(step)s::interval
) AS measured
WHERE measured.value IS NOT NULL
"""

# a counter that fell was reset: its whole value is new
INCREASES = """
SELECT asked.place, sum(CASE WHEN counted.value < counted.before THEN counted.value
    ELSE counted.value - counted.before END)
FROM unnest(%(names)s::text[], %(labels)s::text[]) WITH ORDINALITY AS asked (name, label, place)
CROSS JOIN LATERAL (
    SELECT value, lag(value) OVER (ORDER BY at) AS before FROM metric_samples
    WHERE name = asked.name AND label = asked.label AND at > %(since)s AND at <= %(now)s
) AS counted
WHERE counted.before IS NOT NULL
GROUP BY asked.place
"""

# ORDER BY names all columns of the index, as in `alerts.LAST_RUNS`
LATEST_RUNS = """
SELECT asked.name AS job, last.status, last.created_at, last.started_at, last.finished_at, last.examined, last.changed,
    last.failed
FROM unnest(%(names)s::text[]) AS asked (name)
CROSS JOIN LATERAL (
    SELECT * FROM job_runs WHERE account_id IS NULL AND job = asked.name AND NOT dry_run
    ORDER BY account_id DESC, job DESC, created_at DESC LIMIT 1
) AS last
"""

# jobs report what they archive in figures whose name contains that word
DAILY = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day, job, sum(examined)::bigint AS examined,
    sum(changed)::bigint AS changed, sum(failed)::bigint AS failed, coalesce(sum((
        SELECT sum(value::text::numeric) FROM jsonb_each(figures)
        WHERE key LIKE '%%archive%%' AND jsonb_typeof(value) = 'number'
    )), 0)::bigint AS archived
FROM job_runs WHERE id >= %(first)s AND created_at >= %(since)s AND NOT dry_run
GROUP BY 1, 2
"""

CLOCK_SKEW = timedelta(minutes=1)
"""Allowed difference between the clocks of the machines that generate ids."""

USAGE_COLUMNS = ("calls", "failed_calls", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The last run of a job over all accounts, which may still be running."""

    job: str
    status: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    examined: int
    changed: int
    failed: int

    @property
    def seconds(self) -> float | None:
        """Duration from the first batch to the end, None before that."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDay:
    """Sums over all runs of a job that were requested on a day (UTC)."""

    day: date
    job: str
    examined: int
    changed: int
    failed: int
    archived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDay:
    """Requests to language models on a day (UTC), for all accounts."""

    day: date
    calls: int
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


def read_samples(
    figures: Sequence[SampleKey], *, step: timedelta, slots: int, now: datetime
) -> Mapping[SampleKey, Sequence[float | None]]:
    """Return the highest sample of each figure in each of the `slots` of length `step` up to now, oldest first.

    None for a slot without samples. One statement.
    """
    asked: dict[str, Any] = {"names": [name for name, _ in figures], "labels": [label for _, label in figures]}
    asked |= {"slots": slots, "step": step, "now": now}
    found: dict[SampleKey, list[float | None]] = {figure: [None] * slots for figure in figures}
    with connection.cursor() as cursor:
        cursor.execute(SAMPLES, asked)
        for place, slot, value in cursor.fetchall():
            found[figures[place - 1]][slot] = value
    return found


def read_increases(figures: Sequence[SampleKey], *, since: datetime, now: datetime) -> Mapping[SampleKey, float]:
    """Return how much each counter rose between its first and last sample in that time; 0 with fewer than two.

    One statement.
    """
    asked: dict[str, Any] = {"names": [name for name, _ in figures], "labels": [label for _, label in figures]}
    with connection.cursor() as cursor:
        cursor.execute(INCREASES, asked | {"since": since, "now": now})
        found = {figures[place - 1]: float(rise) for place, rise in cursor.fetchall()}
    return {figure: found.get(figure, 0.0) for figure in figures}


def read_last_runs(jobs: Sequence[str]) -> Mapping[str, LastRun]:
    """Return the latest run of each job over all accounts, by the job's name; jobs that never ran are missing."""
    with connection.cursor() as cursor:
        cursor.execute(LATEST_RUNS, {"names": list(jobs)})
        return {row["job"]: LastRun(**row) for row in fetch_dicts(cursor)}


def read_job_days(*, since: datetime) -> Sequence[JobDay]:
    """Return sums by day and job, over runs of accounts and of the installation, without dry runs."""
    with connection.cursor() as cursor:
        cursor.execute(DAILY, {"since": since, "first": first_uuid7(since - CLOCK_SKEW)})
        return [JobDay(**row) for row in fetch_dicts(cursor)]


def read_model_days(*, since: date) -> Mapping[date, ModelDay]:
    sums: dict[str, Any] = {f"all_{name}": Sum(name) for name in USAGE_COLUMNS}
    rows = ModelUsage.objects.filter(day__gte=since).values("day").annotate(**sums).values_list("day", *sums)
    return {
        day: ModelDay(day=day, **dict(zip(USAGE_COLUMNS, figures, strict=True)))
        for day, *figures in rows.order_by("day")
    }


def last_days(now: datetime, count: int) -> Sequence[date]:
    """Return the last `count` days (UTC) up to today."""
    today = now.astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in reversed(range(count))]
