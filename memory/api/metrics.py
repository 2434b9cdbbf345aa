"""`/metrics`, for Prometheus: requests as counted by all processes, and the stores as they are at the scrape."""

import os
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db import DatabaseError
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis import RedisError

from memory.models import Conversation, JobRun, Memory, ModelUsage
from memory.services.conversation_queue import EXTRACTION, SUMMARIES, Queue
from memory.services.statistics import count_waiting
from memory.tiers import access_log
from memory_project.counters import VARIABLE
from memory_project.deadlines import POSTGRESQL, REDIS, Deadline
from memory_project.http.metrics import LATENCY, REQUESTS
from memory_project.redis import client

MOST_SECONDS = 2.5
TO_SUMMARIZE = "Conversations to be summarized, now or when they fall idle."
TO_EXTRACT = "Conversations with turns that are still to be looked through for knowledge."
RECENT = timedelta(days=1)
USAGE = {
    "calls": "Requests to language models.",
    "failed_calls": "Those of them refused, unanswered, or answered with garbage.",
    "prompt_tokens": "Tokens sent, as the endpoints count them.",
    "completion_tokens": "Tokens answered, as the endpoints count them.",
    "cost": "What the tokens cost, in the currency of the prices.",
}
"""Columns of ModelUsage."""


@csrf_exempt
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """No key, and only figures of the installation: nothing of any account."""
    registry = CollectorRegistry()
    if VARIABLE in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(REQUESTS)
        registry.register(LATENCY)
        registry.register(access_log.LOST_LINES)
    registry.register(StoreCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class StoreCollector(Collector):
    """Read at each scrape; a store that is down shows as such and hides nothing of the other."""

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("memory_store_up", "1 where the store answers.", labels=["store"])
        found: list[Metric] = []
        deadline = Deadline(MOST_SECONDS)
        asked = {
            "postgresql": POSTGRESQL.ask(read_rows),
            "redis": REDIS.ask(read_redis),
        }
        for store, question in asked.items():
            try:
                figures = deadline.wait_for(question)
            except (DatabaseError, RedisError, TimeoutError):
                up.add_metric([store], 0)
            else:
                up.add_metric([store], 1)
                found += figures
        return [up, *found]


def read_rows() -> list[Metric]:
    pending = Memory.objects.awaiting_embedding().count()
    runs = GaugeMetricFamily("memory_job_runs", "Runs asked for in the last day.", labels=["job", "status"])
    recent = JobRun.objects.filter(created_at__gt=timezone.now() - RECENT)
    for row in recent.values("job", "status").annotate(count=Count("id")).order_by("job", "status"):
        runs.add_metric([row["job"], row["status"]], row["count"])
    embeddings = GaugeMetricFamily("memory_pending_embeddings", "Memories without their vector.", value=pending)
    return [
        embeddings,
        runs,
        *count_queue(SUMMARIES, "summaries", TO_SUMMARIZE),
        *count_queue(EXTRACTION, "extractions", TO_EXTRACT),
        *sum_usage(),
    ]


def count_queue(queue: Queue, noun: str, pending: str) -> list[Metric]:
    """A queue that conversations are: how many wait, and how many of them failed."""
    waiting = count_waiting(queue, Conversation.objects.all(), now=timezone.now())
    return [
        GaugeMetricFamily(f"memory_pending_{noun}", pending, value=waiting.waiting),
        GaugeMetricFamily(
            f"memory_failing_{noun}",
            "Those of them whose last attempt failed, or whose worker died.",
            value=waiting.failing,
        ),
    ]


def sum_usage() -> Sequence[Metric]:
    """Of all accounts and days. Labels are ours (uses) and the settings' (models): no client can add to them."""
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
    ]
