"""What is behind or broken, in sentences that say what, how much and what to do: the one place that knows.

`/health/ready`, the system check, `/metrics` and the admin's dashboard ask `find_alerts`, so that they say the same. An
alert tells what is so, not what may be: an installation that has just started is given time to begin, what waits for a
conversation to fall idle is not behind, and what was tried in vain waits since it was due first.

To add one: its name among those of the store that knows of it, and a line in that store's function.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from math import floor, log2
from typing import Any, Protocol, cast

from django.db import connection
from django.db.models import (
    Case,
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    Min,
    Q,
    QuerySet,
    When,
)
from django.db.models.functions import Greatest, Least, Power
from redis.exceptions import RedisError

from memory import conf
from memory.models import Conversation, JobRun, Memory
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, Queue
from memory_project import redis

QUIET = timedelta(minutes=10)
"""So long nothing need be heard of a worker, or of a service that has just started."""
LATE = timedelta(hours=1)
LARGE_BACKLOG = 1_000
MOST_COUNTED = 10_000
"""Rows of a queue that are looked at; beyond, the text says that there are more."""
MOST_RUNS = 1_000
"""The latest runs are looked at for a sign of a worker."""
FULL = 0.9
NO_EVICTION = "noeviction"

ALERTS_OF_ROWS = (
    "embedding_backlog",
    "extraction_lag",
    "extraction_parked",
    "summary_lag",
    "summary_parked",
    "audit_partition_missing",
    "no_worker",
    "jobs_waiting",
    "job_overdue",
    "job_failed",
    "job_incomplete",
)
ALERTS_OF_REDIS = ("redis_unreachable", "redis_evicts", "redis_nearly_full")
ALERTS = (*ALERTS_OF_ROWS, *ALERTS_OF_REDIS)
"""The names that there are, for who tells of each whether it is on."""

# of the installation: since when it is up and as it is, what staff is to decide, and the days that have a partition
INSTALLATION = """
SELECT greatest(pg_postmaster_start_time(), (SELECT max(applied) FROM django_migrations)),
    (SELECT max(applied) FROM django_migrations),
    (SELECT count(*) FROM (SELECT FROM conversations WHERE extract_parked_at IS NOT NULL LIMIT %s) AS parked),
    (SELECT count(*) FROM (SELECT FROM conversations WHERE summary_parked_at IS NOT NULL LIMIT %s) AS parked),
    ARRAY(SELECT right(relname, 8) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = to_regclass('memory_audit_log'))
"""

# of each job: when a run of the installation's came to its end last, and how the last one ended. In the whole order of
# the index, since IS NULL makes no column a constant to the planner
LAST_RUNS = """
SELECT job.name, ended.finished_at, last.status, last.finished_at
FROM unnest(%s::text[]) AS job (name)
LEFT JOIN LATERAL (
    SELECT finished_at FROM job_runs
    WHERE account_id IS NULL AND job = job.name AND NOT dry_run AND status IN ('completed', 'incomplete')
    ORDER BY account_id DESC, job DESC, created_at DESC LIMIT 1
) AS ended ON TRUE
LEFT JOIN LATERAL (
    SELECT status, finished_at FROM job_runs
    WHERE account_id IS NULL AND job = job.name AND NOT dry_run AND status IN ('completed', 'incomplete', 'failed')
    ORDER BY account_id DESC, job DESC, created_at DESC LIMIT 1
) AS last ON TRUE
ORDER BY job.name
"""


class Scheduled(Protocol):
    """A job as far as alerts look at it: the pause between two runs, the time of day, or None for one that is off."""

    @property
    def name(self) -> str: ...
    @property
    def every(self) -> timedelta | time | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """`name` is one of ALERTS; `what` (and how much) and `advice` are whole sentences, with nothing of any account."""

    name: str
    what: str
    advice: str
    since: datetime | None = None
    """Where that is known."""

    @property
    def text(self) -> str:
        return f"{self.what} {self.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """`up_since`: the later of the database's start and the last migration, which is `installed_at`."""

    up_since: datetime
    installed_at: datetime
    parked_extractions: int
    parked_summaries: int
    audit_days: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """When one was seen at work last, and the runs that wait for one; None where there is none."""

    seen: datetime | None
    queued: int
    queued_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How many rows wait in a queue (MOST_COUNTED at most), and since when the first of them does."""

    count: int
    since: datetime | None

    @property
    def told(self) -> str:
        return f"{self.count:,} or more" if self.count >= MOST_COUNTED else f"{self.count:,}"

    def is_late(self, now: datetime) -> bool:
        return self.since is not None and now - self.since > LATE


def find_alerts(now: datetime, *, jobs: Iterable[Scheduled]) -> list[Alert]:
    """What is behind or broken now, in the order of ALERTS; `jobs` are those that should run (JOBS.values()).

    Six statements and a trip to Redis, however much is stored. Raises DatabaseError.
    """
    return [*find_alerts_of_rows(now, jobs=jobs), *find_alerts_of_redis()]


def find_alerts_of_rows(now: datetime, *, jobs: Iterable[Scheduled]) -> list[Alert]:
    """What PostgreSQL knows of. Raises DatabaseError."""
    installation, jobs = look_at_installation(), [job for job in jobs if job.every is not None]
    return [
        *complain_of_embeddings(count_embeddings(now), now),
        *complain_of_queue("extraction", count_queue(EXTRACTION, now), installation.parked_extractions, now),
        *complain_of_queue("summary", count_queue(SUMMARIES, now), installation.parked_summaries, now),
        *complain_of_partitions(installation.audit_days, now),
        *complain_of_workers(installation, look_for_workers(now), now, jobs=jobs),
        *complain_of_jobs(installation, jobs, now),
    ]


def look_at_installation() -> Installation:
    with connection.cursor() as cursor:
        cursor.execute(INSTALLATION, [MOST_COUNTED, MOST_COUNTED])
        up_since, installed_at, extractions, summaries, days = cursor.fetchone()
    return Installation(
        up_since=up_since,
        installed_at=installed_at,
        parked_extractions=extractions,
        parked_summaries=summaries,
        audit_days=frozenset(days),
    )


def count_embeddings(now: datetime) -> Waiting:
    knobs = {"base": conf.EMBED_BACKOFF_SECONDS, "limit": conf.EMBED_BACKOFF_LIMIT_SECONDS}
    due = Greatest(waiting_since("embed_after", F("embed_attempts"), **knobs), F("created_at"))
    return count_waiting(Memory.objects.awaiting_embedding().order_by("embed_after"), due, now)


def count_queue(queue: Queue, now: datetime) -> Waiting:
    knobs = {"base": queue.knob("BACKOFF_SECONDS"), "limit": queue.knob("BACKOFF_LIMIT_SECONDS")}
    due_or_failed = Q(**{f"{queue.due}__lte": now}) | Q(**{f"{queue.due}__isnull": False, f"{queue.attempts}__gt": 0})
    rows = Conversation.objects.filter(due_or_failed).order_by(queue.due)
    # an attempt is counted when it begins, and puts off what failed when it ends
    under_way = Case(When(**{f"{queue.lease}__gt": now}, then=1.0), default=0.0)
    return count_waiting(rows, waiting_since(queue.due, F(queue.attempts) - under_way, **knobs), now)


def count_waiting(rows: "QuerySet[Any]", since: Any, now: datetime) -> Waiting:
    """Without those that are due later, such as conversations that may go on."""
    found = (
        rows.annotate(waits_since=since)
        .filter(waits_since__lte=now)[:MOST_COUNTED]
        .aggregate(count=Count("pk"), since=Min("waits_since"))
    )
    return Waiting(**cast("dict[str, Any]", found))


def waiting_since(due: str, attempts: Any, *, base: int, limit: int) -> Any:
    """When a row was due first: now it is due behind a pause for each attempt, of `base` seconds doubled up to `limit`.

    The pauses of n attempts, of which the first m are below the limit: base (2^min(n, m) - 1) + limit max(n - m, 0).
    """
    doubled = max(0, floor(log2(limit / base)) + 1)
    tried = attempts * 1.0
    pauses = base * (Power(2.0, Least(tried, float(doubled))) - 1.0) + limit * Greatest(tried - float(doubled), 0.0)
    seconds = ExpressionWrapper(pauses, output_field=FloatField())
    interval = Func(seconds, template="make_interval(secs => %(expressions)s)", output_field=DurationField())
    return ExpressionWrapper(F(due) - interval, output_field=DateTimeField())


def complain_of_embeddings(waiting: Waiting, now: datetime) -> list[Alert]:
    if waiting.count <= LARGE_BACKLOG and not waiting.is_late(now):
        return []
    first = ago(waiting.since, now)
    what = f"Memories wait for their embedding, and are found by words only: {waiting.told}, the first for {first}."
    advice = "See that the embedder answers and the job `embed` runs."
    return [Alert(name="embedding_backlog", what=what, advice=advice, since=waiting.since)]


def complain_of_queue(noun: str, waiting: Waiting, parked: int, now: datetime) -> list[Alert]:
    """`noun` is extraction or summary."""
    job = {"extraction": "consolidate", "summary": "summarize"}[noun]
    alerts = []
    if waiting.is_late(now):
        what = f"Conversations wait for {noun}: {waiting.told}, the first for {ago(waiting.since, now)}."
        advice = f"See that the job `{job}` runs, and what the conversations say of their last failure."
        alerts.append(Alert(name=f"{noun}_lag", what=what, advice=advice, since=waiting.since))
    if parked:
        told = f"{parked:,} or more" if parked >= MOST_COUNTED else f"{parked:,}"
        what = f"Conversations are parked, since their {noun} failed as often as it may: {told}."
        advice = "See their reason in the admin, mend it, and have them tried again."
        alerts.append(Alert(name=f"{noun}_parked", what=what, advice=advice))
    return alerts


def complain_of_partitions(days: frozenset[str], now: datetime) -> list[Alert]:
    """The last day ahead may be missing from midnight until the job runs."""
    today = now.astimezone(UTC).date()
    wanted = [today + timedelta(days=ahead) for ahead in range(conf.AUDIT_PARTITIONS_AHEAD)]
    missing = [str(day) for day in wanted if f"{day:%Y%m%d}" not in days]
    if not missing:
        return []
    what = f"The audit log has no partition for {', '.join(missing)}."
    return [Alert(name="audit_partition_missing", what=what, advice="Run `manage.py run_job audit_partitions`.")]


def look_for_workers(now: datetime) -> Workers:
    """From the latest runs, but for those that a command did by itself; one statement."""
    # ids are in the order of time
    latest = JobRun.objects.exclude(requested_by="command").order_by("-id")
    runs = list(latest.values_list("status", "created_at", "started_at", "finished_at", "lease_until")[:MOST_RUNS])
    signs = [at for _, _, started, finished, _ in runs for at in (started, finished) if at is not None]
    queued = [created for status, created, *_ in runs if status == JobRun.Status.QUEUED]
    return Workers(
        seen=now if any(until is not None and until > now for *_, until in runs) else max(signs, default=None),
        queued=len(queued),
        queued_since=min(queued, default=None),
    )


def complain_of_workers(
    installation: Installation, workers: Workers, now: datetime, *, jobs: Sequence[Scheduled]
) -> list[Alert]:
    """No sign of a worker where there should be one (two periods of the most frequent job), or runs nobody takes."""
    alerts, seen, since = [], workers.seen, workers.queued_since
    silence = now - max(installation.up_since, seen or installation.up_since)
    if silence > max(QUIET, 2 * min(map(period_of, jobs), default=QUIET / 2)):
        told = "No worker has ever run a job" if seen is None else f"No worker has run a job for {ago(seen, now)}"
        what = f"{told}: nothing is embedded, summarized, learnt or forgotten."
        advice = "See that worker and beat run."
        alerts.append(Alert(name="no_worker", what=what, advice=advice, since=seen or installation.up_since))
    if since is not None and now - since > QUIET:
        what = f"Runs of jobs wait for a worker: {workers.queued}, the first for {ago(since, now)}."
        advice = "See that workers run, and that they are enough."
        alerts.append(Alert(name="jobs_waiting", what=what, advice=advice, since=since))
    return alerts


def complain_of_jobs(installation: Installation, jobs: Iterable[Scheduled], now: datetime) -> list[Alert]:
    """Jobs that did not come to their end for two periods, and those whose last run failed, or failed on some rows."""
    periods = {job.name: period_of(job) for job in jobs}
    with connection.cursor() as cursor:
        cursor.execute(LAST_RUNS, [list(periods)])
        last_runs = cursor.fetchall()
    overdue = {
        name: ended
        for name, ended, *_ in last_runs
        if now - (ended or installation.installed_at) > max(2 * periods[name], QUIET)
        and now - installation.up_since > QUIET
    }
    failed = {name: at for name, _, status, at in last_runs if status == JobRun.Status.FAILED}
    incomplete = {name: at for name, _, status, at in last_runs if status == JobRun.Status.INCOMPLETE}
    return [
        *name_jobs("job_overdue", "Jobs have not come to their end for two periods", overdue, "See that workers run."),
        *name_jobs("job_failed", "Jobs failed when they ran last", failed, "Their runs say why."),
        *name_jobs("job_incomplete", "Jobs failed on some rows when they ran last", incomplete, "The rows say why."),
    ]


def period_of(job: Scheduled) -> timedelta:
    return job.every if isinstance(job.every, timedelta) else timedelta(days=1)


def name_jobs(name: str, intro: str, jobs: Mapping[str, datetime | None], advice: str) -> list[Alert]:
    """The alert, if there are such jobs; each with the time of its run, or never."""
    if not jobs:
        return []
    told = ", ".join(
        f"{job} ({at.astimezone(UTC):%Y-%m-%d %H:%M} UTC)" if at else f"{job} (never)" for job, at in jobs.items()
    )
    times = [at for at in jobs.values() if at is not None]
    return [Alert(name=name, what=f"{intro}: {told}.", advice=advice, since=min(times, default=None))]


def find_alerts_of_redis() -> list[Alert]:
    """What Redis knows of; that it does not answer is an alert too."""
    try:
        memory = redis.client().info("memory")
    except RedisError as err:
        what = f"Redis does not answer ({type(err).__name__}): sessions, working memory and ledgers cannot be had."
        advice = "See that its server is up and REDIS_URL names it."
        return [Alert(name="redis_unreachable", what=what, advice=advice)]
    return [*complain_of_eviction(memory), *complain_of_fullness(memory)]


def complain_of_eviction(memory: Mapping[str, Any]) -> list[Alert]:
    policy = memory.get("maxmemory_policy", NO_EVICTION)
    if policy == NO_EVICTION:
        return []
    what = f"Redis evicts by {policy}: when memory is short it throws away ledgers and queued jobs."
    return [Alert(name="redis_evicts", what=what, advice=f"Set its maxmemory-policy to {NO_EVICTION}.")]


def complain_of_fullness(memory: Mapping[str, Any]) -> list[Alert]:
    used, most = int(memory["used_memory"]), int(memory.get("maxmemory", 0))
    if not most or used < FULL * most:
        return []
    what = f"Redis uses {used / most:.0%} of the {most:,} bytes that it may: beyond, it refuses writes."
    return [Alert(name="redis_nearly_full", what=what, advice="Raise its maxmemory.")]


def ago(since: datetime | None, now: datetime) -> str:
    """How long that was, in the largest unit that fits twice.

    >>> ago(datetime(2030, 1, 1, 10), datetime(2030, 1, 1, 13))
    '3 hours'
    """
    seconds = 0.0 if since is None else max((now - since).total_seconds(), 0.0)
    units: Sequence[tuple[str, int]] = (("days", 86_400), ("hours", 3_600), ("minutes", 60))
    for unit, size in units:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
