"""Alerts: what is behind or broken now, how much of it, and what to do, in sentences for operators.

`/health/ready`, the system check, `/metrics` and the admin's dashboard all call `find_alerts`, so they agree. An alert
states a fact, not a possibility: an installation that has just started gets time to begin work, conversations that are
not idle yet are not behind, and rows whose attempts failed count as waiting since they first became due.

To add an alert: add its name to those of the store that knows about it, and return it from that store's function.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple, Protocol

from redis.exceptions import RedisError

from memory import conf
from memory.models import JobRun
from memory.models.statements import fetch_rows
from memory.services.conversations.queue import EXTRACTION, SUMMARIES
from memory.services.embedding.serving import describe_differing_model
from memory.services.operations.backlogs import (
    MAX_COUNTED,
    QueueBacklog,
    count_embedding_backlog,
    count_queue_backlog,
)
from memory.services.operations.usage import TokenBudget, accounts_over_budget
from memory_project import redis

GRACE_PERIOD = timedelta(minutes=10)
"""Time for which a worker may be silent, and a service that has just started."""
LARGE_BACKLOG = 1_000
MAX_RUNS = 1_000
"""Latest runs that are searched for a sign of a worker."""
FULL_SHARE = 0.9
MAX_NAMED_ACCOUNTS = 3
NO_EVICTION = "noeviction"

ALERTS_OF_ROWS = (
    "embedding_backlog",
    "embedding_model_differs",
    "extraction_lag",
    "extraction_parked",
    "summary_lag",
    "summary_parked",
    "tokens_spent",
    "audit_partition_missing",
    "no_worker",
    "jobs_waiting",
    "job_overdue",
    "job_failed",
    "job_incomplete",
)
ALERTS_OF_REDIS = ("redis_unreachable", "redis_evicts", "redis_nearly_full", "redis_disk")
ALERTS = (*ALERTS_OF_ROWS, *ALERTS_OF_REDIS)
"""All alert names, for those who report each alert as on or off."""

# the installation's start and last migration, its parked conversations, and the days that have a partition
INSTALLATION = """
SELECT greatest(pg_postmaster_start_time(), (SELECT max(applied) FROM django_migrations)),
    (SELECT max(applied) FROM django_migrations),
    (SELECT count(*) FROM (SELECT 1 FROM conversations WHERE extract_parked_at IS NOT NULL LIMIT %s) AS parked),
    (SELECT count(*) FROM (SELECT 1 FROM conversations WHERE summary_parked_at IS NOT NULL LIMIT %s) AS parked),
    ARRAY(SELECT right(relname, 8) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = to_regclass('memory_audit_log'))
"""

# for each job: when a run over all accounts last finished, and how the latest one ended. The ORDER BY names all columns
# of the index, because the planner does not treat a column that IS NULL as constant
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

REDIS_FILES = {
    "aof_last_write_status": ("its append-only file", "refuses"),
    "rdb_last_bgsave_status": ("its snapshot", "may refuse"),
}
"""The files that Redis writes, by the figure that is "err" where it could not, and what it then does to writes.

After a failed snapshot it refuses them unless its `stop-writes-on-bgsave-error` is no.
"""

JOB_TEXTS = {
    "job_overdue": (
        "Jobs that have not finished for two of their periods, with their last finish",
        "Check that worker and beat are running, and start the jobs with `manage.py run_job <name>`.",
    ),
    "job_failed": (
        "Jobs whose last run failed",
        "Read the error on the run in the admin, fix the cause, and start the job with `manage.py run_job <name>`.",
    ),
    "job_incomplete": (
        "Jobs whose last run failed on some rows",
        "Read the error on those rows in the admin, and fix the cause.",
    ),
}
"""The sentences that say what is wrong and what to do, by alert name."""


class ScheduledJob(Protocol):
    """The part of a job that alerts need: its interval, or its time of day; None if it is switched off."""

    @property
    def name(self) -> str: ...
    @property
    def every(self) -> timedelta | time | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A sentence that says what is wrong and how much (`what`), and one that says what to do (`advice`).

    `name` is one of ALERTS. Texts contain nothing about any account.
    """

    name: str
    what: str
    advice: str
    since: datetime | None = None
    """Start of the condition, if known."""

    @property
    def text(self) -> str:
        return f"{self.what} {self.advice}"


class Installation(NamedTuple):
    """The state of the installation, as INSTALLATION returns it.

    `up_since` is the later of the database's start and the last migration, `installed_at` the time of that migration.
    """

    up_since: datetime
    installed_at: datetime
    parked_extractions: int
    parked_summaries: int
    audit_days: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSigns:
    """The last sign of a worker, and the runs that wait for one; times are None if there are none."""

    seen: datetime | None
    queued: int
    queued_since: datetime | None


def find_alerts(now: datetime, *, jobs: Iterable[ScheduledJob]) -> list[Alert]:
    """Return what is behind or broken now, in the order of ALERTS; `jobs` are those that should run (JOBS.values()).

    Seven statements and one round trip to Redis, however much is stored. Raises DatabaseError.
    """
    return [*find_alerts_of_rows(now, jobs=jobs), *find_alerts_of_redis()]


def find_alerts_of_rows(now: datetime, *, jobs: Iterable[ScheduledJob]) -> list[Alert]:
    """Return the alerts that PostgreSQL knows about. Raises DatabaseError."""
    installation, jobs = read_installation(), [job for job in jobs if job.every is not None]
    return [
        *embedding_alerts(count_embedding_backlog(now), now),
        *(Alert(name="embedding_model_differs", what=what, advice=advice) for what, advice in differing_models()),
        *queue_alerts("extraction", count_queue_backlog(EXTRACTION, now), installation.parked_extractions, now),
        *queue_alerts("summary", count_queue_backlog(SUMMARIES, now), installation.parked_summaries, now),
        *budget_alerts(now),
        *partition_alerts(installation.audit_days, now),
        *worker_alerts(installation, read_worker_signs(now), now, jobs=jobs),
        *job_alerts(installation, jobs, now),
    ]


def differing_models() -> list[tuple[str, str]]:
    """Return what is to be said about an embedding model that the settings configure and that does not serve."""
    found = describe_differing_model()
    return [] if found is None else [found]


def read_installation() -> Installation:
    [row] = fetch_rows(INSTALLATION, [MAX_COUNTED, MAX_COUNTED])
    return Installation(*row)


def embedding_alerts(waiting: QueueBacklog, now: datetime) -> list[Alert]:
    if waiting.count <= LARGE_BACKLOG and not waiting.is_late(now):
        return []
    first = format_age(waiting.since, now)
    what = (
        f"Memories without a vector of the serving model: {waiting.count_text}; the first has waited for {first}. "
        "Searches find them by their words only."
    )
    advice = (
        "Check that the embedding provider answers and that the job `embed` runs; "
        "`manage.py memory_stats` shows the errors."
    )
    return [Alert(name="embedding_backlog", what=what, advice=advice, since=waiting.since)]


def queue_alerts(noun: str, waiting: QueueBacklog, parked: int, now: datetime) -> list[Alert]:
    """Return the alerts of a queue of conversations; `noun` is extraction or summary."""
    job = {"extraction": "extract_knowledge", "summary": "summarize"}[noun]
    alerts = []
    if waiting.is_late(now):
        age = format_age(waiting.since, now)
        what = f"Conversations waiting for {noun}: {waiting.count_text}; the first has waited for {age}."
        advice = f"Check that the job `{job}` runs, and read the last error of these conversations in the admin."
        alerts.append(Alert(name=f"{noun}_lag", what=what, advice=advice, since=waiting.since))
    if parked:
        count_text = QueueBacklog(count=parked, since=None).count_text
        what = f"Conversations parked because their {noun} failed too often: {count_text}. It is not tried again."
        advice = "Read their errors in the admin, fix the cause, and choose the action to try again."
        alerts.append(Alert(name=f"{noun}_parked", what=what, advice=advice))
    return alerts


def budget_alerts(now: datetime) -> list[Alert]:
    """Report accounts that have spent their tokens of the day. No statement where tokens are not limited."""
    alerts = []
    for budget, waiting in ((TokenBudget.EMBEDDING, "embedding"), (TokenBudget.LANGUAGE, "summaries and extraction")):
        if accounts := accounts_over_budget(budget, now=now):
            what = f"Accounts that have spent their {budget.tokens_per_day:,} {budget}-model tokens of today"
            ids = ", ".join(map(str, accounts[:MAX_NAMED_ACCOUNTS]))
            what = f"{what}: {len(accounts)} ({ids}). Their {waiting} wait until midnight (UTC)."
            advice = "Raise MEMORY_EMBEDDED_TOKENS_PER_DAY or MEMORY_MODEL_TOKENS_PER_DAY, or find out what they send."
            alerts.append(Alert(name="tokens_spent", what=what, advice=advice))
    return alerts


def partition_alerts(days: Collection[str], now: datetime) -> list[Alert]:
    """Report missing partitions of the audit log. The last one ahead may be missing between midnight and the job."""
    today = now.astimezone(UTC).date()
    wanted = [today + timedelta(days=ahead) for ahead in range(conf.AUDIT_PARTITIONS_AHEAD)]
    missing = [str(day) for day in wanted if f"{day:%Y%m%d}" not in days]
    if not missing:
        return []
    what = f"The audit log has no partition for {', '.join(missing)}."
    advice = "Run `manage.py run_job audit_partitions`, and check that worker and beat run: the job runs every night."
    return [Alert(name="audit_partition_missing", what=what, advice=advice)]


def read_worker_signs(now: datetime) -> WorkerSigns:
    """Look for signs of a worker in the latest runs, except those that a command did itself. One statement."""
    # ids are in chronological order
    latest = JobRun.objects.exclude(requested_by="command").order_by("-id")
    runs = list(latest.values_list("status", "created_at", "started_at", "finished_at", "lease_until")[:MAX_RUNS])
    signs = [at for _, _, started, finished, _ in runs for at in (started, finished) if at is not None]
    queued = [created for status, created, *_ in runs if status == JobRun.Status.QUEUED]
    return WorkerSigns(
        seen=now if any(until is not None and until > now for *_, until in runs) else max(signs, default=None),
        queued=len(queued),
        queued_since=min(queued, default=None),
    )


def worker_alerts(
    installation: Installation, workers: WorkerSigns, now: datetime, *, jobs: Sequence[ScheduledJob]
) -> list[Alert]:
    """Report a missing worker, after two periods of the most frequent job, and runs that no worker takes."""
    alerts, seen, since = [], workers.seen, workers.queued_since
    silence = now - max(installation.up_since, seen or installation.up_since)
    if silence > max(GRACE_PERIOD, 2 * min(map(period_of, jobs), default=GRACE_PERIOD / 2)):
        silence_text = "ever run a job" if seen is None else f"run a job for {format_age(seen, now)}"
        what = f"No worker has {silence_text}: nothing is embedded, summarized, extracted or deleted."
        advice = "Check that the Celery worker and beat are running and reach Redis; restart them if not."
        alerts.append(Alert(name="no_worker", what=what, advice=advice, since=seen or installation.up_since))
    if since is not None and now - since > GRACE_PERIOD:
        what = f"Job runs waiting for a worker: {workers.queued}; the first has waited for {format_age(since, now)}."
        advice = "Check that workers are running; if all of them are busy, start more."
        alerts.append(Alert(name="jobs_waiting", what=what, advice=advice, since=since))
    return alerts


def job_alerts(installation: Installation, jobs: Iterable[ScheduledJob], now: datetime) -> list[Alert]:
    """Report jobs that have not finished for two periods, and jobs whose last run failed, or failed on some rows."""
    periods = {job.name: period_of(job) for job in jobs}
    last_runs = fetch_rows(LAST_RUNS, [list(periods)])
    overdue = {
        name: ended
        for name, ended, *_ in last_runs
        if now - (ended or installation.installed_at) > max(2 * periods[name], GRACE_PERIOD)
        and now - installation.up_since > GRACE_PERIOD
    }
    failed = {name: at for name, _, status, at in last_runs if status == JobRun.Status.FAILED}
    incomplete = {name: at for name, _, status, at in last_runs if status == JobRun.Status.INCOMPLETE}
    return [
        *alert_about_jobs("job_overdue", overdue),
        *alert_about_jobs("job_failed", failed),
        *alert_about_jobs("job_incomplete", incomplete),
    ]


def period_of(job: ScheduledJob) -> timedelta:
    return job.every if isinstance(job.every, timedelta) else timedelta(days=1)


def alert_about_jobs(name: str, jobs: Mapping[str, datetime | None]) -> list[Alert]:
    """Return the alert if there are such jobs; each is named with the time of its run, or "never"."""
    if not jobs:
        return []
    intro, advice = JOB_TEXTS[name]
    times = {job: f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "never" for job, at in jobs.items()}
    what = f"{intro}: {', '.join(f'{job} ({time})' for job, time in times.items())}."
    since = min((at for at in jobs.values() if at is not None), default=None)
    return [Alert(name=name, what=what, advice=advice, since=since)]


def find_alerts_of_redis() -> list[Alert]:
    """Return the alerts that Redis knows about, or one that says that it does not answer."""
    try:
        # all sections, as few servers take the names of several
        info = redis.client().info()
    except RedisError as err:
        what = f"Redis does not answer ({type(err).__name__}): sessions, working memory and ledgers are unavailable."
        advice = "Check that the Redis server is running and that REDIS_URL points to it."
        return [Alert(name="redis_unreachable", what=what, advice=advice)]
    alerts, policy = [], info.get("maxmemory_policy", NO_EVICTION)
    if policy != NO_EVICTION:
        what = f"Redis evicts keys (policy {policy}): when memory runs short, it deletes ledgers and queued jobs."
        advice = f"Set `maxmemory-policy {NO_EVICTION}` in its configuration."
        alerts.append(Alert(name="redis_evicts", what=what, advice=advice))
    used, limit = int(info["used_memory"]), int(info.get("maxmemory", 0))
    if limit and used >= FULL_SHARE * limit:
        what = f"Redis uses {used / limit:.0%} of its limit of {limit:,} bytes: when it is full, it refuses writes."
        advice = "Raise its `maxmemory`, and give the server more memory if needed."
        alerts.append(Alert(name="redis_nearly_full", what=what, advice=advice))
    if failing := [name for name, noun in REDIS_FILES.items() if info.get(name) == "err"]:
        file, refusal = REDIS_FILES[failing[0]]
        what = f"Redis could not write {file} to its disk: until it can, it {refusal} writes."
        advice = "Make space on the disk of its data folder, or read in its log why it cannot."
        alerts.append(Alert(name="redis_disk", what=what, advice=advice))
    return alerts


def format_age(since: datetime | None, now: datetime) -> str:
    """Return the time since then, in the largest unit that fits twice.

    >>> format_age(datetime(2030, 1, 1, 10), datetime(2030, 1, 1, 13))
    '3 hours'
    """
    seconds = 0.0 if since is None else max((now - since).total_seconds(), 0.0)
    units: Sequence[tuple[str, int]] = (("days", 86_400), ("hours", 3_600), ("minutes", 60))
    for unit, size in units:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
