"""What `/metrics` says of PostgreSQL: what is cheap is counted at the scrape, what is dear was sampled by a job before.

A fixed number of statements, none of which reads a table that grows with what is remembered.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from memory.models import Conversation, Memory, ModelUsage
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, Queue
from memory.services.operations.samples import FIGURES, latest_samples
from memory.services.operations.statistics import count_waiting
from memory_project.ids import first_uuid7

TO_SUMMARIZE = "Conversations to be summarized, now or when they fall idle."
TO_EXTRACT = "Conversations with turns that are still to be looked through for knowledge."
RECENT = timedelta(days=1)
CLOCKS_DIFFER = timedelta(minutes=5)
"""Ids are made by the application's clock, the times of runs by the database's."""
MOST_PENDING = 100_000
USAGE = {
    "calls": "Requests to language models.",
    "failed_calls": "Those of them refused, unanswered, or answered with garbage.",
    "prompt_tokens": "Tokens sent, as the endpoints count them.",
    "completion_tokens": "Tokens answered, as the endpoints count them.",
    "cost": "What the tokens cost, in the currency of the prices.",
}
"""Columns of ModelUsage."""

# found by their primary keys, which are in the order of time
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
) AS told (figure, value)
WHERE NOT dry_run GROUP BY job, figure
ORDER BY 1, 2, 3
"""


def read_rows(now: datetime) -> list[Metric]:
    return [
        count_pending(),
        *read_runs(now),
        *count_queue(SUMMARIES, "summaries", TO_SUMMARIZE, now),
        *count_queue(EXTRACTION, "extractions", TO_EXTRACT, now),
        *sum_usage(),
        *read_samples(now),
    ]


def count_pending() -> Metric:
    pending = Memory.objects.awaiting_embedding().order_by("embed_after")[:MOST_PENDING].count()
    return GaugeMetricFamily(
        "memory_pending_embeddings",
        f"Memories without their vector; {MOST_PENDING:,} stands for more.",
        value=pending,
    )


def read_runs(now: datetime) -> Sequence[Metric]:
    """Of the last day. Labels are names of our jobs and of what they count."""
    runs = GaugeMetricFamily(
        "memory_job_runs", "Runs asked for in the last day, but for idle scheduled ones.", labels=["job", "status"]
    )
    figures = GaugeMetricFamily(
        "memory_job_rows",
        "What runs of the last day came to: rows examined, changed and failed, and what else the job counts.",
        labels=["job", "figure"],
    )
    with connection.cursor() as cursor:
        cursor.execute(RUNS, {"first": first_uuid7(now - RECENT - CLOCKS_DIFFER), "since": now - RECENT})
        for source, job, label, value in cursor.fetchall():
            {"runs": runs, "figures": figures}[source].add_metric([job, label], float(value))
    return runs, figures


def count_queue(queue: Queue, noun: str, pending: str, now: datetime) -> list[Metric]:
    """A queue that conversations are: how many wait, how many of them failed, and how many are in it no more."""
    waiting = count_waiting(queue, Conversation.objects.all(), now=now)
    return [
        GaugeMetricFamily(f"memory_pending_{noun}", pending, value=waiting.waiting),
        GaugeMetricFamily(
            f"memory_failing_{noun}",
            "Those of them whose last attempt failed, or whose worker died.",
            value=waiting.failing,
        ),
        GaugeMetricFamily(
            f"memory_parked_{noun}", "Conversations that failed as often as they may.", value=waiting.parked
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


def read_samples(now: datetime) -> Iterable[Metric]:
    """The latest, and how old they are: nothing where there are none."""
    samples = list(latest_samples(now).values_list("name", "label", "value", "at"))
    if not samples:
        return
    age = (now - samples[0][3]).total_seconds()
    yield GaugeMetricFamily("memory_samples_age_seconds", "Since the job `measure` took the samples.", value=age)
    for figure in FIGURES:
        metric = GaugeMetricFamily(
            figure.name, f"{figure.text} Sampled.", labels=[figure.label] if figure.label else []
        )
        for name, label, value, _at in samples:
            if name == figure.name:
                metric.add_metric([label] if figure.label else [], value)
        yield metric
