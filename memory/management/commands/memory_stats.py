"""Print what is stored, and how much of it."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone
from rich.filesize import decimal
from rich.table import Table

from memory.maintenance import JOBS
from memory.management.base import find_account, render_text
from memory.models import MetricSample
from memory.services.operations.alerts import find_alerts
from memory.services.operations.samples import latest_samples
from memory.services.operations.statistics import (
    KnowledgeCounts,
    PendingEmbeddings,
    RedisFigures,
    Statistics,
    gather_statistics,
)

WIDTH = 100


class Command(BaseCommand):
    help = (
        "Print what is stored, and how much of it: memories, vectors, knowledge, what waits, links, ledgers, audit log,"
        " jobs, sizes, Redis; what is behind, and what the job `measure` sampled last."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", help="count this account's rows only; sizes and Redis stay those of all")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        account_id = None if options["account"] is None else find_account(options["account"]).id
        now = timezone.now()
        statistics, alerts = gather_statistics(account_id, now=now), find_alerts(now, jobs=JOBS.values())
        samples = list(latest_samples(now))
        if options["json"]:
            figures = asdict(statistics) | {"alerts": [asdict(alert) for alert in alerts], "sampled": sampled(samples)}
            self.stdout.write(json.dumps(figures, cls=DjangoJSONEncoder))
            return
        alerts_table = render_table("Alerts" if alerts else "No alerts", ((alert.text,) for alert in alerts), ("",))
        tables = (alerts_table, *render_tables(statistics), render_samples(samples))
        self.stdout.write(render_text(tables, width=WIDTH))


def sampled(samples: Iterable[MetricSample]) -> dict[str, float]:
    """Return the samples by name, and by name and label where a figure has several."""
    return {f"{sample.name} {sample.label}".strip(): sample.value for sample in samples}


def render_samples(samples: Sequence[MetricSample]) -> Table:
    """Render the samples of the whole installation."""
    title = f"Sampled at {samples[0].at:%Y-%m-%d %H:%M}" if samples else "Nothing sampled yet: the job `measure` does"
    return render_table(title, ((name, f"{value:,.6g}") for name, value in sampled(samples).items()))


def render_tables(statistics: Statistics) -> Iterable[Table]:
    vectors = ((f"{each.model}, {each.width} dimensions", f"{each.count:,}") for each in statistics.vectors)
    yield render_table("Memories", counts(statistics.memories))
    yield render_table("Vectors", vectors)
    yield render_table("Pending embeddings", describe_pending(statistics.pending))
    yield render_table("Knowledge", describe_knowledge(statistics.knowledge))
    queues = {"a summary": statistics.summaries, "extraction": statistics.extractions}
    waiting = (
        (f"for {name}", *(f"{count:,}" for count in (each.waiting, each.failing, each.parked)))
        for name, each in queues.items()
    )
    yield render_table("Conversations that wait", waiting, ("", "in all", "failing", "parked"))
    yield render_table(
        "Around them",
        counts(
            {
                "links": statistics.links,
                "participants": statistics.participants,
                "injections": statistics.injections,
            }
        ),
    )
    yield render_table("Job runs", counts(statistics.job_runs))
    yield render_table(
        f"Audit log, {len(statistics.audit_by_day)} partitions (estimate)", counts(statistics.audit_by_day)
    )
    yield render_table("Redis", describe_redis(statistics.redis))
    sizes = (
        (each.table, f"{each.rows:,}", decimal(each.table_bytes), decimal(each.index_bytes))
        for each in statistics.tables
    )
    yield render_table("Tables", sizes, ("table", "rows (estimate)", "size", "indexes"))


def render_table(title: str, rows: Iterable[tuple[str, ...]], columns: tuple[str, ...] = ("", "")) -> Table:
    table = Table(title=title, title_justify="left", show_header=any(columns), box=None)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", min_width=30 if not number else None)
    for row in rows:
        table.add_row(*row)
    return table


def counts(figures: Any) -> Iterable[tuple[str, str]]:
    return ((name, f"{count:,}") for name, count in figures.items())


def describe_pending(pending: PendingEmbeddings) -> Iterable[tuple[str, str]]:
    yield "due now", f"{pending.due:,}"
    yield "waiting", f"{pending.waiting:,}"
    if pending.oldest is not None:
        yield "oldest", f"{pending.oldest:%Y-%m-%d %H:%M:%S}"
    for error, count in pending.by_error.items():
        yield f"after {error}" if error else "not tried yet", f"{count:,}"


def describe_knowledge(knowledge: KnowledgeCounts) -> Iterable[tuple[str, str]]:
    yield from counts({f"facts, {status}": count for status, count in knowledge.facts.items()})
    yield from counts(
        {
            "reviews of facts, open": knowledge.open_reviews,
            "tombstones of facts": knowledge.tombstones,
            "tombstones of facts, met since": knowledge.tombstones_met,
            "entities": knowledge.entities,
            "goals, open": knowledge.open_goals,
            "invocations of tools": knowledge.invocations,
        }
    )


def describe_redis(figures: RedisFigures | None) -> Iterable[tuple[str, str]]:
    if figures is None:
        yield "down", ""
        return
    yield "memory", decimal(figures.memory_bytes)
    yield "keys", f"{figures.keys:,}"
    yield "ledger changes not yet rows", f"{figures.journal:,}"
    yield "ledger epoch", figures.epoch or "none: ledgers are being restored"
