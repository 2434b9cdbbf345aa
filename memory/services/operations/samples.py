"""Samples of the installation's figures: those too expensive for each scrape, and all whose history is shown.

The job `measure` takes them; `/metrics` shows the latest, the admin's dashboard the last days. Figures cover all
accounts together. To add one, count it in a `sample_…` function and describe it in SAMPLED_METRICS.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet, Subquery
from redis.exceptions import RedisError

from memory import conf
from memory.kinds import all_kinds
from memory.models import MetricSample
from memory_project import redis
from memory_project.ids import uuid7
from memory_project.measures import QUANTILES, Buckets, outcome_counts, quantile, recall_buckets, since

logger = logging.getLogger(__name__)

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
    SampledMetric(name="memory_rows", text="Memories, including archived ones.", label="kind"),
    SampledMetric(name="memory_links", text="Links between memories."),
    SampledMetric(
        name="memory_tier_items",
        text="Values stored in each tier: Redis keys (working) or rows (the others).",
        label="tier",
    ),
    SampledMetric(name="memory_backlog", text="Rows waiting to be processed, due or not.", label="queue"),
    SampledMetric(name="memory_consolidation_lag_seconds", text="Age of the oldest turn waiting for extraction."),
    SampledMetric(
        name="memory_consolidation_delay_seconds",
        text="Time from a conversation's last write to its extraction, over the last day.",
        label="quantile",
    ),
    SampledMetric(
        name="memory_recall_window_seconds",
        text="Duration of recalls since the previous sample, by quantile.",
        label="quantile",
    ),
    SampledMetric(name="memory_database_bytes", text="Size of the database."),
)

# each count uses an index only
ROWS = """
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
LAG = """
SELECT extract(epoch FROM %(now)s - min(memories.created_at)) FROM (
    SELECT id, extracted_count FROM conversations WHERE extract_after IS NOT NULL ORDER BY extract_after LIMIT %(most)s
) AS waiting
JOIN turns ON turns.log_id = waiting.id AND turns.index = waiting.extracted_count
JOIN memories ON memories.id = turns.memory_ptr_id
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
    with connection.cursor() as cursor:
        cursor.execute(STORE_SAMPLES, [minute_of(now), *columns])
        return int(cursor.rowcount)


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
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        found = [Sample(name=name, label=label, value=float(value)) for name, label, value in cursor.fetchall()]
    memories = {sample.label: sample.value for sample in found if sample.name == "memory_rows"}
    missing = [Sample(name="memory_rows", label=kind.value, value=0.0) for kind in all_kinds() if kind not in memories]
    return [*found, *missing, Sample(name="memory_tier_items", label="long_term", value=sum(memories.values()))]


def sample_lag(now: datetime) -> Iterable[Sample]:
    """Measure how long extraction takes now and took in the last day; no delay if nothing was extracted in that day."""
    with connection.cursor() as cursor:
        cursor.execute(LAG, {"now": now, "most": MAX_WAITING_CONVERSATIONS})
        (lag,) = cursor.fetchone()
        cursor.execute(DELAYS, {"now": now, "since": now - DELAY_WINDOW})
        (delays,) = cursor.fetchone()
    yield Sample(name="memory_consolidation_lag_seconds", value=max(float(lag or 0), 0.0))
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
        Sample(name="memory_redis_used_bytes", value=float(memory["used_memory"])),
        Sample(name="memory_tier_items", label="working", value=float(working)),
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
            yield Sample(name="memory_recall_window_seconds", label=str(share), value=value)


def sample_counters() -> Iterable[Sample]:
    """Return the counters' values; `trends.read_increases` computes how much they rose."""
    for (name, outcome), count in outcome_counts(settings.DATA_DIR).items():
        yield Sample(name=name, label=outcome, value=count)


def read_buckets(now: datetime) -> Buckets:
    """Return the histogram of the previous minute's sample; empty if that is too old to compare with."""
    before = MetricSample.objects.filter(name=BUCKETS, at__lt=minute_of(now), at__gte=now - BUCKETS_KEPT)
    latest = before.order_by("-at").values("at")[:1]
    return {float(label): value for label, value in before.filter(at=Subquery(latest)).values_list("label", "value")}
