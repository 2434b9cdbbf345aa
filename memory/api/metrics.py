"""`/metrics`, for Prometheus: requests as counted by all processes, and the stores as they are at the scrape."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis import RedisError

from memory.api.metrics_rows import read_rows
from memory.maintenance import JOBS
from memory.services.operations.alerts import (
    ALERTS_OF_REDIS,
    ALERTS_OF_ROWS,
    Alert,
    find_alerts_of_redis,
    find_alerts_of_rows,
)
from memory.tiers import access_log, audit_reads
from memory_project.counters import VARIABLE
from memory_project.deadlines import POSTGRESQL, REDIS, Deadline
from memory_project.http.metrics import LATENCY, REQUESTS
from memory_project.measures import MEASURES, QUANTILES, CountedTogether, buckets_of, quantile
from memory_project.redis import client

MOST_SECONDS = 2.5


@csrf_exempt
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """No key, and only figures of the installation: nothing of any account."""
    registry = CollectorRegistry()
    registry.register(ProcessCollector())
    registry.register(StoreCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class ProcessCollector(Collector):
    """What the processes counted: all of them where they share a folder, else this one."""

    def collect(self) -> Iterable[Metric]:
        counted = list(CountedTogether().collect() if VARIABLE in os.environ else count_alone())
        quantiles = GaugeMetricFamily(
            "memory_recall_quantile_seconds",
            "Of memory_recall_seconds, since the processes started.",
            labels=["quantile"],
        )
        buckets = buckets_of(counted)
        for share in QUANTILES:
            if (seconds := quantile(buckets, share)) is not None:
                quantiles.add_metric([str(share)], seconds)
        return [*counted, quantiles]


def count_alone() -> Iterable[Metric]:
    for measure in (REQUESTS, LATENCY, access_log.LOST_LINES, *MEASURES):
        yield from measure.collect()


class StoreCollector(Collector):
    """Read at each scrape; a store that is down shows as such and hides nothing of the other."""

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("memory_store_up", "1 where the store answers.", labels=["store"])
        alerts = GaugeMetricFamily("memory_alert", "1 while it is on; `/health/ready` has its text.", labels=["name"])
        found: list[Metric] = []
        deadline, now = Deadline(MOST_SECONDS), timezone.now()
        asked = {"postgresql": POSTGRESQL.ask(lambda: ask_postgresql(now)), "redis": REDIS.ask(ask_redis)}
        for store, question in asked.items():
            try:
                answer = deadline.wait_for(question)
            except (DatabaseError, RedisError, TimeoutError):
                answer = Answer(is_up=False, alerts={"redis_unreachable": True} if store == "redis" else {})
            up.add_metric([store], answer.is_up)
            found += answer.figures
            for name, is_on in answer.alerts.items():
                alerts.add_metric([name], is_on)
        return [up, alerts, *found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A store's figures, and which of the alerts that it knows of are on; of one that is down there is neither."""

    is_up: bool
    figures: Sequence[Metric] = ()
    alerts: Mapping[str, bool] = field(default_factory=dict)


def ask_postgresql(now: datetime) -> Answer:
    return Answer(
        is_up=True,
        figures=read_rows(now),
        alerts=told(find_alerts_of_rows(now, jobs=JOBS.values()), among=ALERTS_OF_ROWS),
    )


def ask_redis() -> Answer:
    figures = read_redis()
    return Answer(is_up=True, figures=figures, alerts=told(find_alerts_of_redis(), among=ALERTS_OF_REDIS))


def told(alerts: Iterable[Alert], *, among: Iterable[str]) -> dict[str, bool]:
    on = {alert.name for alert in alerts}
    return {name: name in on for name in among}


def read_redis() -> list[Metric]:
    memory = client().info("memory")
    return [
        GaugeMetricFamily("memory_redis_used_bytes", "Memory that Redis uses.", value=memory["used_memory"]),
        GaugeMetricFamily("memory_redis_max_bytes", "Its limit; 0: none.", value=memory.get("maxmemory", 0)),
        GaugeMetricFamily(
            "memory_access_log_waiting_lines",
            "Lines of the contexts' access log that are not in their table yet.",
            value=access_log.waiting(),
        ),
        GaugeMetricFamily(
            "memory_audit_reads_waiting_lines",
            "Audited reads that are not in the audit log's table yet.",
            value=audit_reads.waiting(),
        ),
    ]
