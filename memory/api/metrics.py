"""`/metrics` for Prometheus: requests counted by all processes, and the state of the stores at the scrape."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis import RedisError

from memory.maintenance import JOBS
from memory.models import Conversation, Memory, ModelUsage
from memory.models.statements import fetch_rows
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, ConversationQueue
from memory.services.operations.alerts import (
    ALERTS_OF_REDIS,
    ALERTS_OF_ROWS,
    Alert,
    find_alerts_of_redis,
    find_alerts_of_rows,
)
from memory.services.operations.samples import SAMPLED_METRICS, latest_samples
from memory.services.operations.statistics import count_waiting_conversations
from memory.tiers import access_log, audit_reads
from memory_project.counters import VARIABLE
from memory_project.deadlines import POSTGRESQL, REDIS, AnswerDeadline
from memory_project.http.metrics import LATENCY, REQUESTS
from memory_project.ids import first_uuid7
from memory_project.measures import MEASURES, QUANTILES, CountedTogether, buckets_of, quantile
from memory_project.postgresql.replicas import replicas
from memory_project.redis import client

TO_SUMMARIZE = "Conversations to be summarized, now or when they become idle."
TO_EXTRACT = "Conversations with turns that are still to be searched for knowledge."
RECENT_PERIOD = timedelta(days=1)
MAX_CLOCK_DIFFERENCE = timedelta(minutes=5)
"""Possible difference between the application's clock, which makes ids, and the database's, which sets times."""
MAX_PENDING = 100_000
USAGE = {
    "calls": "Requests to language models.",
    "failed_calls": "Requests that were refused, not answered, or answered with invalid data.",
    "prompt_tokens": "Tokens sent, as counted by the endpoints.",
    "completion_tokens": "Tokens received, as counted by the endpoints.",
    "cost": "Cost of the tokens, in the currency of the prices.",
}
"""Help text of each counter, by column of ModelUsage."""

# rows are found by their primary keys, which are in the order of creation
RUNS = """
WITH recent AS MATERIALIZED (
    SELECT * FROM job_runs WHERE id >= %(first)s AND created_at > %(since)s
)
SELECT 'runs', job, status, count(*) FROM recent GROUP BY job, status
UNION ALL
SELECT 'figures', job, figure, sum(value) FROM recent
CROSS JOIN LATERAL (
    VALUES ('examined', examined::numeric), ('changed', changed), ('failed', failed)
    UNION ALL SELECT key, value::numeric FROM jsonb_each_text(figures)
) AS reported (figure, value)
WHERE NOT dry_run GROUP BY job, figure
ORDER BY 1, 2, 3
"""


def postgresql_metrics(now: datetime) -> list[Metric]:
    return [
        pending_embeddings_metric(),
        *run_metrics(now),
        *queue_metrics(SUMMARIES, "summaries", TO_SUMMARIZE, now),
        *queue_metrics(EXTRACTION, "extractions", TO_EXTRACT, now),
        *usage_metrics(),
        *sample_metrics(now),
    ]


def pending_embeddings_metric() -> Metric:
    pending = Memory.objects.awaiting_embedding().order_by("embed_after")[:MAX_PENDING].count()
    return GaugeMetricFamily(
        "memory_pending_embeddings",
        f"Memories without their vector. {MAX_PENDING:,} stands for that many or more.",
        value=pending,
    )


def run_metrics(now: datetime) -> Sequence[Metric]:
    """Return the runs of the last day. Labels are the names of our jobs and of what they count."""
    runs = GaugeMetricFamily(
        "memory_job_runs",
        "Runs requested in the last day, without scheduled ones that had nothing to do.",
        labels=["job", "status"],
    )
    figures = GaugeMetricFamily(
        "memory_job_rows",
        "Rows examined, changed and failed by runs of the last day, and other counts of the job.",
        labels=["job", "figure"],
    )
    for source, job, label, value in fetch_rows(
        RUNS, {"first": first_uuid7(now - RECENT_PERIOD - MAX_CLOCK_DIFFERENCE), "since": now - RECENT_PERIOD}
    ):
        {"runs": runs, "figures": figures}[source].add_metric([job, label], float(value))
    return runs, figures


def queue_metrics(queue: ConversationQueue, noun: str, pending: str, now: datetime) -> list[Metric]:
    """Return how many conversations wait in a queue, how many of them failed, and how many are parked."""
    waiting = count_waiting_conversations(queue, Conversation.objects.all(), now=now)
    return [
        GaugeMetricFamily(f"memory_pending_{noun}", pending, value=waiting.waiting),
        GaugeMetricFamily(
            f"memory_failing_{noun}",
            "Waiting conversations whose last attempt failed, or whose worker died.",
            value=waiting.failing,
        ),
        GaugeMetricFamily(
            f"memory_parked_{noun}",
            "Conversations that failed too often and are not tried again.",
            value=waiting.parked,
        ),
    ]


def usage_metrics() -> Sequence[Metric]:
    """Return usage over all accounts and days. Labels are our uses and configured models; clients cannot add any."""
    counters = [
        CounterMetricFamily(f"memory_model_{name}", help_text, labels=["use", "model"])
        for name, help_text in USAGE.items()
    ]
    totals = {f"all_{name}": Sum(name) for name in USAGE}
    by_model = ModelUsage.objects.values("use", "model").annotate(**totals).order_by("use", "model")
    for use, model, *figures in by_model.values_list("use", "model", *totals):
        for counter, figure in zip(counters, figures, strict=True):
            counter.add_metric([use, model], float(figure))
    return counters


def sample_metrics(now: datetime) -> Iterable[Metric]:
    """Return the latest samples and their age; nothing if there are no samples."""
    samples = list(latest_samples(now).values_list("name", "label", "value", "at"))
    if not samples:
        return
    age = (now - samples[0][3]).total_seconds()
    yield GaugeMetricFamily(
        "memory_samples_age_seconds", "Seconds since the job `measure` took the samples.", value=age
    )
    for figure in SAMPLED_METRICS:
        metric = GaugeMetricFamily(
            figure.name, f"{figure.text} Sampled.", labels=[figure.label] if figure.label else []
        )
        for name, label, value, _at in samples:
            if name == figure.name:
                metric.add_metric([label] if figure.label else [], value)
        yield metric


TIMEOUT_SECONDS = 2.5


@csrf_exempt
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the installation's figures. Needs no key and shows no account."""
    registry = CollectorRegistry()
    registry.register(ProcessCollector())
    registry.register(StoreCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


@require_safe
def process_metrics(request: HttpRequest) -> HttpResponse:
    """Answer the counts of this process and those forked from it; the installation's figures are the web server's."""
    registry = CollectorRegistry()
    registry.register(ProcessCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class ProcessCollector(Collector):
    """The counts of all processes if they share a folder, else those of this process."""

    def collect(self) -> Iterable[Metric]:
        if VARIABLE in os.environ:
            counted = list(CountedTogether().collect())
        else:
            measures = (REQUESTS, LATENCY, access_log.LOST_LINES, *MEASURES)
            counted = [metric for measure in measures for metric in measure.collect()]
        quantiles = GaugeMetricFamily(
            "memory_recall_quantile_seconds",
            "Quantiles of memory_recall_seconds since the processes started.",
            labels=["quantile"],
        )
        buckets = buckets_of(counted)
        for share in QUANTILES:
            if (seconds := quantile(buckets, share)) is not None:
                quantiles.add_metric([str(share)], seconds)
        return [*counted, quantiles]


class StoreCollector(Collector):
    """The figures of both stores, read at each scrape. A store that is down does not hide those of the other."""

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("memory_store_up", "1 if the store answers, else 0.", labels=["store"])
        alerts = GaugeMetricFamily(
            "memory_alert", "1 while the alert is on, else 0. `/health/ready` has its text.", labels=["name"]
        )
        found: list[Metric] = []
        deadline, now = AnswerDeadline(TIMEOUT_SECONDS), timezone.now()
        asked = {
            "postgresql": POSTGRESQL.ask(lambda: collect_postgresql_figures(now)),
            "redis": REDIS.ask(collect_redis_figures),
        }
        for store, question in asked.items():
            try:
                answer = deadline.wait_for(question)
            except (DatabaseError, RedisError, TimeoutError):
                answer = StoreFigures(is_up=False, alerts={"redis_unreachable": True} if store == "redis" else {})
            up.add_metric([store], answer.is_up)
            found += answer.figures
            for name, is_on in answer.alerts.items():
                alerts.add_metric([name], is_on)
        return [up, alerts, *replica_metrics(), *found]


def replica_metrics() -> Iterable[Metric]:
    """Return the state of each replica, as the answering process knows it; nothing if there are none."""
    known = replicas()
    if not known:
        return
    usable = GaugeMetricFamily(
        "memory_replica_usable", "1 if the replica may answer requests, else 0.", labels=["replica"]
    )
    lag = GaugeMetricFamily(
        "memory_replica_lag_seconds", "How far the replica was behind the primary.", labels=["replica"]
    )
    for replica in known:
        usable.add_metric([replica.alias], replica.is_usable())
        if (seconds := replica.lag_seconds()) is not None:
            lag.add_metric([replica.alias], seconds)
    yield from (usable, lag)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """The figures of one store, and the state of its alerts by name. A store that is down has neither."""

    is_up: bool
    figures: Sequence[Metric] = ()
    alerts: Mapping[str, bool] = field(default_factory=dict)


def collect_postgresql_figures(now: datetime) -> StoreFigures:
    return StoreFigures(
        is_up=True,
        figures=postgresql_metrics(now),
        alerts=alert_states(find_alerts_of_rows(now, jobs=JOBS.values()), among=ALERTS_OF_ROWS),
    )


def collect_redis_figures() -> StoreFigures:
    return StoreFigures(
        is_up=True, figures=redis_metrics(), alerts=alert_states(find_alerts_of_redis(), among=ALERTS_OF_REDIS)
    )


def alert_states(alerts: Iterable[Alert], *, among: Iterable[str]) -> dict[str, bool]:
    """Return whether each of the named alerts is on."""
    on = {alert.name for alert in alerts}
    return {name: name in on for name in among}


def redis_metrics() -> list[Metric]:
    memory = client().info("memory")
    return [
        GaugeMetricFamily("memory_redis_used_bytes", "Memory that Redis uses.", value=memory["used_memory"]),
        GaugeMetricFamily(
            "memory_redis_max_bytes", "Memory limit of Redis. 0: none.", value=memory.get("maxmemory", 0)
        ),
        GaugeMetricFamily(
            "memory_access_log_waiting_lines",
            "Lines of the contexts' access log that are not in the table yet.",
            value=access_log.count_waiting_access_lines(),
        ),
        GaugeMetricFamily(
            "memory_audit_reads_waiting_lines",
            "Audited reads that are not in the audit log's table yet.",
            value=audit_reads.count_waiting_reads(),
        ),
    ]
