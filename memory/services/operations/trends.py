"""How the installation's figures went over time, for who looks at them: from samples, runs of jobs and model usage.

A fixed number of statements, whatever is stored: samples are looked up by name and time, runs by their ids, which are
in the order of time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Sum

from memory.models import Kind, ModelUsage
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
"""Names of samples, as in `/metrics` (`services.samples`)."""

Figure = tuple[str, str]
"""Name and label of a sample."""

BY_KIND: Sequence[Figure] = [(ROWS, kind.value) for kind in Kind]
BY_TIER: Sequence[Figure] = [(TIER_ITEMS, tier) for tier in TIERS]
COUNTED: Sequence[Figure] = [(name, outcome) for name, outcomes in OUTCOMES.items() for outcome in outcomes]
SIZES: Sequence[Figure] = [(REDIS_BYTES, ""), (DATABASE_BYTES, "")]
LATELY: Sequence[Figure] = [
    *((RECALL, str(share)) for share in QUANTILES),
    *((BACKLOG, queue) for queue in QUEUES),
    (LAG, ""),
]

# the highest of each slot, which ends at its time: a peak is what somebody looks for
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

# a counter that fell has begun anew: all that it has then is new
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

# in the whole order of the index, as the alerts' statement of runs that ended
LATEST_RUNS = """
SELECT asked.name AS job, last.status, last.created_at, last.started_at, last.finished_at, last.examined, last.changed,
    last.failed
FROM unnest(%(names)s::text[]) AS asked (name)
CROSS JOIN LATERAL (
    SELECT * FROM job_runs WHERE account_id IS NULL AND job = asked.name AND NOT dry_run
    ORDER BY account_id DESC, job DESC, created_at DESC LIMIT 1
) AS last
"""

# what a job archives it says in its figures, under a name with that word in it
DAILY = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day, job, sum(examined)::bigint AS examined,
    sum(changed)::bigint AS changed, sum(failed)::bigint AS failed, coalesce(sum((
        SELECT sum(value::text::numeric) FROM jsonb_each(figures)
        WHERE key LIKE '%%archive%%' AND jsonb_typeof(value) = 'number'
    )), 0)::bigint AS archived
FROM job_runs WHERE id >= %(first)s AND created_at >= %(since)s AND NOT dry_run
GROUP BY 1, 2
"""

SKEW = timedelta(minutes=1)
"""By so much the clocks of the machines that make ids may differ."""

USED = ("calls", "failed_calls", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """Of a job over all accounts, as far as it has come."""

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
        """From its first batch to its end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfJob:
    """What all runs of a job that were asked for on a day (UTC) did."""

    day: date
    job: str
    examined: int
    changed: int
    failed: int
    archived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfModels:
    """What language models were asked for on a day (UTC), for all accounts."""

    day: date
    calls: int
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


def read_samples(
    figures: Sequence[Figure], *, step: timedelta, slots: int, now: datetime
) -> Mapping[Figure, Sequence[float | None]]:
    """The highest sample of each figure in each of the `slots` of length `step` up to now, the first first.

    None where there is none. One statement.
    """
    asked: dict[str, Any] = {"names": [name for name, _ in figures], "labels": [label for _, label in figures]}
    asked |= {"slots": slots, "step": step, "now": now}
    found: dict[Figure, list[float | None]] = {figure: [None] * slots for figure in figures}
    with connection.cursor() as cursor:
        cursor.execute(SAMPLES, asked)
        for place, slot, value in cursor.fetchall():
            found[figures[place - 1]][slot] = value
    return found


def read_increases(figures: Sequence[Figure], *, since: datetime, now: datetime) -> Mapping[Figure, float]:
    """By how much each counter rose between its first sample in that time and its last; 0 with fewer than two.

    One statement.
    """
    asked: dict[str, Any] = {"names": [name for name, _ in figures], "labels": [label for _, label in figures]}
    with connection.cursor() as cursor:
        cursor.execute(INCREASES, asked | {"since": since, "now": now})
        found = {figures[place - 1]: float(rise) for place, rise in cursor.fetchall()}
    return {figure: found.get(figure, 0.0) for figure in figures}


def read_last_runs(jobs: Sequence[str]) -> Mapping[str, LastRun]:
    """The latest run of each job over all accounts, by the job's name; those that never ran are left out."""
    with connection.cursor() as cursor:
        cursor.execute(LATEST_RUNS, {"names": list(jobs)})
        return {row["job"]: LastRun(**row) for row in fetch_dicts(cursor)}


def read_days_of_jobs(*, since: datetime) -> Sequence[DayOfJob]:
    """By day and job, of accounts and of the installation, without dry runs."""
    with connection.cursor() as cursor:
        cursor.execute(DAILY, {"since": since, "first": first_uuid7(since - SKEW)})
        return [DayOfJob(**row) for row in fetch_dicts(cursor)]


def read_days_of_models(*, since: date) -> Mapping[date, DayOfModels]:
    sums: dict[str, Any] = {f"all_{name}": Sum(name) for name in USED}
    rows = ModelUsage.objects.filter(day__gte=since).values("day").annotate(**sums).values_list("day", *sums)
    return {
        day: DayOfModels(day=day, **dict(zip(USED, figures, strict=True))) for day, *figures in rows.order_by("day")
    }


def days_until(now: datetime, count: int) -> Sequence[date]:
    """So many days (UTC) up to today's."""
    today = now.astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in reversed(range(count))]
