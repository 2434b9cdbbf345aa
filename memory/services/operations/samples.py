"""Samples of the installation's figures: those too expensive for each scrape, and all whose history is shown.

The job `measure` takes them; `/metrics` shows the latest, the admin's dashboard the last days, with figures of job runs
and of model usage. Figures cover all accounts together. To add one, count it in a `sample_…` function and describe it
in SAMPLED_METRICS.

Reading figures over time takes a fixed number of statements, whatever is stored: samples are looked up by name and
time, runs by their ids, which are in chronological order.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q, QuerySet, Subquery, Sum
from redis.exceptions import RedisError

from memory import conf
from memory.kinds import all_kinds
from memory.models import JobRun, MetricSample, ModelUsage
from memory.models.statements import execute_statement, fetch_rows
from memory_project import redis
from memory_project.ids import first_uuid7, uuid7
from memory_project.measures import OUTCOMES, QUANTILES, Buckets, outcome_counts, quantile, recall_buckets, since

logger = logging.getLogger(__name__)

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
"""Names of samples, as in `/metrics`."""

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

BUCKETS = "memory_recall_seconds_bucket"
"""The state of a histogram. The next sample needs it for the difference; later it is useless."""
DELAY_WINDOW = timedelta(days=1)
BUCKETS_KEPT = timedelta(hours=1)
MAX_WAITING_CONVERSATIONS = 10_000
"""Conversations whose oldest waiting turn is looked up."""
MAX_SCANNED_KEYS = 100_000
"""Redis keys that are scanned. With more keys, the shares among these are extrapolated: SCAN order is random enough."""
SCAN_PAGE = 5_000
WORKING_KEY_PARTS = frozenset({"working_memory", "working", "agent"})
"""Third part of the keys of working memory, of sessions and of agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMetric:
    """A metric as in `/metrics`: its name, its description, and the name of its label if it has one."""

    name: str
    text: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    name: str
    label: str = ""
    value: float


# metrics that `/metrics` takes from samples only
SAMPLED_METRICS = (
    SampledMetric(name=ROWS, text="Memories, including archived ones.", label="kind"),
    SampledMetric(name="memory_links", text="Links between memories."),
    SampledMetric(
        name=TIER_ITEMS,
        text="Values stored in each tier: Redis keys (working) or rows (the others).",
        label="tier",
    ),
    SampledMetric(name=BACKLOG, text="Rows waiting to be processed, due or not.", label="queue"),
    SampledMetric(name=LAG, text="Age of the oldest turn waiting for extraction."),
    SampledMetric(
        name="memory_consolidation_delay_seconds",
        text="Time from a conversation's last write to its extraction, over the last day.",
        label="quantile",
    ),
    SampledMetric(
        name=RECALL,
        text="Duration of recalls since the previous sample, by quantile.",
        label="quantile",
    ),
    SampledMetric(name=DATABASE_BYTES, text="Size of the database."),
)

# each count uses an index only
ROW_COUNTS = """
SELECT 'memory_rows', kind, count(*) FROM memories GROUP BY kind
UNION ALL SELECT 'memory_links', '', count(*) FROM memory_links
UNION ALL SELECT 'memory_tier_items', 'short_term', count(*) FROM agent_short_term_memories
UNION ALL SELECT 'memory_tier_items', 'shared', count(*) FROM memory_pools
UNION ALL SELECT 'memory_backlog', 'embedding', count(*) FROM memories WHERE embed_after IS NOT NULL
UNION ALL SELECT 'memory_backlog', 'extraction', count(*) FROM conversations WHERE extract_after IS NOT NULL
UNION ALL SELECT 'memory_backlog', 'summary', count(*) FROM conversations WHERE summarize_after IS NOT NULL
UNION ALL SELECT 'memory_database_bytes', '', pg_database_size(current_database())
"""

# the age of a turn is that of its row, because imported turns were said long ago
EXTRACTION_LAG = """
SELECT extract(epoch FROM %(now)s - min(turn.created_at)) FROM (
    SELECT account_id, id, extracted_count FROM conversations
    WHERE extract_after IS NOT NULL ORDER BY extract_after LIMIT %(most)s
) AS waiting
JOIN memories turn ON turn.account_id = waiting.account_id AND turn.log_id = waiting.id
    AND turn.index = waiting.extracted_count AND turn.kind = 'turn'
"""

DELAYS = """
SELECT percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (
    ORDER BY greatest(extract(epoch FROM consolidated_at - updated_at), 0)
) FROM conversations WHERE consolidated_at > %(since)s AND consolidated_at <= %(now)s
"""

STORE_SAMPLES = """
INSERT INTO metric_samples (id, at, name, label, value)
SELECT id, %s, name, label, value FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::float8[])
    AS sampled (id, name, label, value)
ON CONFLICT (name, label, at) DO NOTHING
"""

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
SELECT last.* FROM unnest(%(names)s::text[]) AS asked (name)
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


def take_samples(now: datetime) -> list[Sample]:
    """Return the current value of all figures, without those from Redis if it is down."""
    return [*sample_row_counts(), *sample_lag(now), *sample_redis(), *sample_recalls(now), *sample_counters()]


def minute_of(now: datetime) -> datetime:
    """Return the minute of a sample: two samples of the same minute are one."""
    return now.replace(second=0, microsecond=0)


def store_samples(samples: Sequence[Sample], *, now: datetime) -> int:
    """Store the samples that are not stored yet and return their number. One statement."""
    columns: list[list[Any]] = [
        [uuid7() for _ in samples],
        [sample.name for sample in samples],
        [sample.label for sample in samples],
        [float(sample.value) for sample in samples],
    ]
    return execute_statement(STORE_SAMPLES, [minute_of(now), *columns])


def outdated_samples(now: datetime) -> QuerySet[MetricSample]:
    """Return samples older than METRIC_RETENTION_DAYS, and histogram states that are no longer needed."""
    oldest = now - timedelta(days=conf.METRIC_RETENTION_DAYS)
    return MetricSample.objects.filter(Q(at__lt=oldest) | Q(name=BUCKETS, at__lt=now - BUCKETS_KEPT))


def latest_samples(now: datetime) -> QuerySet[MetricSample]:
    """Return the samples of the latest minute that has any. One statement."""
    latest = MetricSample.objects.filter(at__lte=now).order_by("-at").values("at")[:1]
    return MetricSample.objects.filter(at=Subquery(latest)).exclude(name=BUCKETS).order_by("name", "label")


def sample_row_counts() -> Iterable[Sample]:
    """Count what PostgreSQL holds, in one statement. A missing kind counts as 0."""
    found = [Sample(name=name, label=label, value=float(value)) for name, label, value in fetch_rows(ROW_COUNTS)]
    memories = {sample.label: sample.value for sample in found if sample.name == ROWS}
    missing = [Sample(name=ROWS, label=kind.value, value=0.0) for kind in all_kinds() if kind not in memories]
    return [*found, *missing, Sample(name=TIER_ITEMS, label="long_term", value=sum(memories.values()))]


def sample_lag(now: datetime) -> Iterable[Sample]:
    """Measure how long extraction takes now and took in the last day; no delay if nothing was extracted in that day."""
    [(lag,)] = fetch_rows(EXTRACTION_LAG, {"now": now, "most": MAX_WAITING_CONVERSATIONS})
    [(delays,)] = fetch_rows(DELAYS, {"now": now, "since": now - DELAY_WINDOW})
    yield Sample(name=LAG, value=max(float(lag or 0), 0.0))
    for share, delay in zip(("0.5", "0.95"), delays or (), strict=False):
        yield Sample(name="memory_consolidation_delay_seconds", label=share, value=float(delay))


def sample_redis() -> Iterable[Sample]:
    try:
        memory = redis.client().info("memory")
        working = count_working_keys()
    except RedisError as err:
        logger.warning("Redis is not measured: %s", type(err).__name__)
        return []
    return [
        Sample(name=REDIS_BYTES, value=float(memory["used_memory"])),
        Sample(name=TIER_ITEMS, label="working", value=float(working)),
    ]


def count_working_keys() -> int:
    """Count keys of working memory, sessions and agents, extrapolated from MAX_SCANNED_KEYS. Raises RedisError."""
    client, cursor, kinds = redis.client(), 0, Counter[bool]()
    while kinds.total() < MAX_SCANNED_KEYS:
        cursor, keys = client.scan(cursor=cursor, count=SCAN_PAGE)
        kinds.update(is_working_key(str(key)) for key in keys)
        if cursor == 0:
            return kinds[True]
    return round(client.dbsize() * kinds[True] / kinds.total())


def is_working_key(key: str) -> bool:
    parts = key.split(":", 3)
    return len(parts) > 2 and parts[0] == "account" and parts[2] in WORKING_KEY_PARTS


def sample_recalls(now: datetime) -> Iterable[Sample]:
    """Measure the duration of recalls since the previous sample; nothing if there were none."""
    counted = recall_buckets(settings.DATA_DIR)
    window = since(counted, read_buckets(now))
    values = {share: quantile(window, share) for share in QUANTILES}
    yield from (Sample(name=BUCKETS, label=str(bound), value=count) for bound, count in counted.items())
    for share, value in values.items():
        if value is not None:
            yield Sample(name=RECALL, label=str(share), value=value)


def sample_counters() -> Iterable[Sample]:
    """Return the counters' values; `read_increases` computes how much they rose."""
    for (name, outcome), count in outcome_counts(settings.DATA_DIR).items():
        yield Sample(name=name, label=outcome, value=count)


def read_buckets(now: datetime) -> Buckets:
    """Return the histogram of the previous minute's sample; empty if that is too old to compare with."""
    before = MetricSample.objects.filter(name=BUCKETS, at__lt=minute_of(now), at__gte=now - BUCKETS_KEPT)
    latest = before.order_by("-at").values("at")[:1]
    return {float(label): value for label, value in before.filter(at=Subquery(latest)).values_list("label", "value")}


class JobDay(NamedTuple):
    """Sums over all runs of a job that were requested on a day (UTC)."""

    day: date
    job: str
    examined: int
    changed: int
    failed: int
    archived: int


class ModelDay(NamedTuple):
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
    for place, slot, value in fetch_rows(SAMPLES, asked):
        found[figures[place - 1]][slot] = value
    return found


def read_increases(figures: Sequence[SampleKey], *, since: datetime, now: datetime) -> Mapping[SampleKey, float]:
    """Return how much each counter rose between its first and last sample in that time; 0 with fewer than two.

    One statement.
    """
    asked: dict[str, Any] = {"names": [name for name, _ in figures], "labels": [label for _, label in figures]}
    rows = fetch_rows(INCREASES, asked | {"since": since, "now": now})
    found = {figures[place - 1]: float(rise) for place, rise in rows}
    return {figure: found.get(figure, 0.0) for figure in figures}


def read_last_runs(jobs: Sequence[str]) -> Mapping[str, JobRun]:
    """Return the latest run of each job over all accounts, by the job's name; jobs that never ran are missing."""
    return {run.job: run for run in JobRun.objects.raw(LATEST_RUNS, {"names": list(jobs)})}


def read_job_days(*, since: datetime) -> Sequence[JobDay]:
    """Return sums by day and job, over runs of accounts and of the installation, without dry runs."""
    rows = fetch_rows(DAILY, {"since": since, "first": first_uuid7(since - CLOCK_SKEW)})
    return [JobDay(*row) for row in rows]


def read_model_days(*, since: date) -> Mapping[date, ModelDay]:
    sums: dict[str, Any] = {f"all_{name}": Sum(name) for name in USAGE_COLUMNS}
    rows = ModelUsage.objects.filter(day__gte=since).values("day").annotate(**sums).values_list("day", *sums)
    return {day: ModelDay(day, *figures) for day, *figures in rows.order_by("day")}


def last_days(now: datetime, count: int) -> Sequence[date]:
    """Return the last `count` days (UTC) up to today."""
    today = now.astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in reversed(range(count))]
