"""Samples of the installation's figures: what is too dear to count at each scrape, and how figures went over time.

The job `measure` takes them; `/metrics` shows the latest, the admin's dashboard the last days. All accounts together,
nothing of any of them. To add one: where it is counted, and its line in FIGURES.
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
from memory.models import Kind, MetricSample
from memory_project import redis
from memory_project.ids import uuid7
from memory_project.measures import QUANTILES, Buckets, outcome_counts, quantile, recall_buckets, since

logger = logging.getLogger(__name__)

BUCKETS = "memory_recall_seconds_bucket"
"""The histogram as it was: what the next sample takes the difference to, and of no use afterwards."""
RECENT = timedelta(days=1)
BUCKETS_KEPT = timedelta(hours=1)
MOST_WAITING = 10_000
"""Conversations whose oldest turn is looked up."""
MOST_KEYS = 100_000
"""Keys of Redis that are looked at; of more, the shares are reckoned from these, which are as good as drawn."""
SCAN_PAGE = 5_000
WORKING = frozenset({"working_memory", "working", "agent"})
"""What stands third in the keys of working memory, of sessions and of agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A name as in `/metrics`, what it says, and what its label is of, if it has one."""

    name: str
    text: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    name: str
    label: str = ""
    value: float


# what `/metrics` has from samples alone
FIGURES = (
    Figure(name="memory_rows", text="Memories, archived ones too.", label="kind"),
    Figure(name="memory_links", text="Links between memories."),
    Figure(name="memory_tier_items", text="Values: keys of Redis (working), rows (the others).", label="tier"),
    Figure(name="memory_backlog", text="Rows that wait to be worked on, due or not.", label="queue"),
    Figure(name="memory_consolidation_lag_seconds", text="Age of the oldest turn that waits to be looked through."),
    Figure(
        name="memory_consolidation_delay_seconds",
        text="From a conversation's last write until it was looked through, of those of the last day.",
        label="quantile",
    ),
    Figure(name="memory_recall_window_seconds", text="Recalls since the sample before, by quantile.", label="quantile"),
    Figure(name="memory_database_bytes", text="Size of the database."),
)

# each from an index, without a look at the rows
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

# a turn is as old as its row: what is imported was said long ago
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

STORE = """
INSERT INTO metric_samples (id, at, name, label, value)
SELECT id, %s, name, label, value FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::float8[])
    AS sampled (id, name, label, value)
ON CONFLICT (name, label, at) DO NOTHING
"""


def take_samples(now: datetime) -> list[Sample]:
    """All figures as they are. What Redis would know is left out while it is down."""
    return [*count_rows(), *measure_lag(now), *ask_redis(), *measure_recalls(now), *read_counters()]


def minute_of(now: datetime) -> datetime:
    """Samples are of a minute: two of the same are one."""
    return now.replace(second=0, microsecond=0)


def store_samples(samples: Sequence[Sample], *, now: datetime) -> int:
    """Keep those that are not there yet, in one statement; how many."""
    columns: list[list[Any]] = [
        [uuid7() for _ in samples],
        [sample.name for sample in samples],
        [sample.label for sample in samples],
        [float(sample.value) for sample in samples],
    ]
    with connection.cursor() as cursor:
        cursor.execute(STORE, [minute_of(now), *columns])
        return int(cursor.rowcount)


def outdated_samples(now: datetime) -> QuerySet[MetricSample]:
    """Past METRIC_RETENTION_DAYS; of the histogram's buckets, past use."""
    oldest = now - timedelta(days=conf.METRIC_RETENTION_DAYS)
    return MetricSample.objects.filter(Q(at__lt=oldest) | Q(name=BUCKETS, at__lt=now - BUCKETS_KEPT))


def latest_samples(now: datetime) -> QuerySet[MetricSample]:
    """Those of the last minute that has any; one statement."""
    latest = MetricSample.objects.filter(at__lte=now).order_by("-at").values("at")[:1]
    return MetricSample.objects.filter(at=Subquery(latest)).exclude(name=BUCKETS).order_by("name", "label")


def count_rows() -> Iterable[Sample]:
    """What PostgreSQL holds, in one statement. A kind of which there is nothing has none."""
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        found = [Sample(name=name, label=label, value=float(value)) for name, label, value in cursor.fetchall()]
    memories = {sample.label: sample.value for sample in found if sample.name == "memory_rows"}
    missing = [Sample(name="memory_rows", label=kind, value=0.0) for kind in Kind.values if kind not in memories]
    return [*found, *missing, Sample(name="memory_tier_items", label="long_term", value=sum(memories.values()))]


def measure_lag(now: datetime) -> Iterable[Sample]:
    """How far behind extraction is, and was; no delay where nothing was looked through in the last day."""
    with connection.cursor() as cursor:
        cursor.execute(LAG, {"now": now, "most": MOST_WAITING})
        (lag,) = cursor.fetchone()
        cursor.execute(DELAYS, {"now": now, "since": now - RECENT})
        (delays,) = cursor.fetchone()
    yield Sample(name="memory_consolidation_lag_seconds", value=max(float(lag or 0), 0.0))
    for share, delay in zip(("0.5", "0.95"), delays or (), strict=False):
        yield Sample(name="memory_consolidation_delay_seconds", label=share, value=float(delay))


def ask_redis() -> Iterable[Sample]:
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
    """Keys of working memory, sessions and agents; reckoned from MOST_KEYS where there are more. Raises RedisError."""
    client, cursor, kinds = redis.client(), 0, Counter[bool]()
    while kinds.total() < MOST_KEYS:
        cursor, keys = client.scan(cursor=cursor, count=SCAN_PAGE)
        kinds.update(is_working(str(key)) for key in keys)
        if cursor == 0:
            return kinds[True]
    return round(client.dbsize() * kinds[True] / kinds.total())


def is_working(key: str) -> bool:
    parts = key.split(":", 3)
    return len(parts) > 2 and parts[0] == "account" and parts[2] in WORKING


def measure_recalls(now: datetime) -> Iterable[Sample]:
    """How long recalls took since the sample before; of which there is nothing where nobody recalled."""
    counted = recall_buckets(settings.DATA_DIR)
    window = since(counted, read_buckets(now))
    values = {share: quantile(window, share) for share in QUANTILES}
    yield from (Sample(name=BUCKETS, label=str(bound), value=count) for bound, count in counted.items())
    for share, value in values.items():
        if value is not None:
            yield Sample(name="memory_recall_window_seconds", label=str(share), value=value)


def read_counters() -> Iterable[Sample]:
    """As they stand: `trends.read_increases` tells how far they rose."""
    for (name, outcome), count in outcome_counts(settings.DATA_DIR).items():
        yield Sample(name=name, label=outcome, value=count)


def read_buckets(now: datetime) -> Buckets:
    """Of the sample before this minute's; empty where that is too long ago to compare with."""
    before = MetricSample.objects.filter(name=BUCKETS, at__lt=minute_of(now), at__gte=now - BUCKETS_KEPT)
    latest = before.order_by("-at").values("at")[:1]
    return {float(label): value for label, value in before.filter(at=Subquery(latest)).values_list("label", "value")}
