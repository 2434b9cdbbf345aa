"""Measure what the service costs over the servers beneath it."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone
from rich.table import Table

from lab.benchmarks.cases import all_cases
from lab.benchmarks.console import ROWS, PageTime, measure_console
from lab.benchmarks.conversations import bare_log
from lab.benchmarks.growth import FILLINGS, MAX_GROWTH, Growth, measure_growth
from lab.benchmarks.measure import Measurement, measure
from lab.benchmarks.recall import recall_bodies
from lab.benchmarks.scratch import fill_episodes, scratch_account
from lab.benchmarks.throughput import CONNECTIONS, SECONDS, Throughput, measure_throughput
from lab.benchmarks.web import KeepAliveClient, web_server
from memory.management.base import OperatorCommand, render_text, require_keys
from memory.retrieval.retrievers.vector import VECTOR
from memory_project.postgresql.failures import describe_missing_migrations
from memory_project.postgresql.roles import owner_connection

EPISODES = 10_000
GROWN = (10_000, 100_000)
QUICK_ROUNDS, FULL_ROUNDS = 300, 3_000
WIDTH = 100


class Command(OperatorCommand):
    help = (
        "Measure working memory, ledger and episodic search over HTTP against the same work done by redis-py and "
        "psycopg, turn by turn in one run. Works in an account of its own, which it deletes with all that is in it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        extent = parser.add_mutually_exclusive_group()
        extent.add_argument("--quick", dest="rounds", action="store_const", const=QUICK_ROUNDS, default=QUICK_ROUNDS)
        extent.add_argument(
            "--full", dest="rounds", action="store_const", const=FULL_ROUNDS, help="ten times the rounds"
        )
        parser.add_argument(
            "--memories", type=int, default=0, help="recall over an account of as many as well (100,000: minutes)"
        )
        parser.add_argument(
            "--jobs",
            nargs="*",
            metavar="NAME",
            choices=FILLINGS,
            help="only how the time of jobs grows from 10,000 rows to 100,000, of all unless some are named (minutes)",
        )
        parser.add_argument(
            "--console",
            nargs="?",
            type=int,
            const=ROWS,
            metavar="ROWS",
            help=f"only lists and pages of the admin over an account with as many memories ({ROWS:,}: many minutes)",
        )
        parser.add_argument("--migrate", action="store_true", help="migrate first, on servers that are new")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    @owner_connection()
    def handle(self, *args: Any, **options: Any) -> None:
        if options["migrate"]:
            call_command("migrate", verbosity=0, skip_checks=True)
        require_migrations()
        require_keys()
        if options["jobs"] is not None:
            self.print_growth_of_jobs(options["jobs"] or FILLINGS, as_json=options["json"])
            return
        if options["console"]:
            for each in measure_console(options["console"], now=timezone.now()):
                self.stdout.write(json.dumps(asdict(each)) if options["json"] else print_page(each))
            return
        measured, throughput = measure_all(options["rounds"], memories=options["memories"])
        if options["json"]:
            figures = {
                "rounds": options["rounds"],
                "episodes": EPISODES,
                "measured": [asdict(each) for each in measured],
                "throughput": [asdict(each) for each in throughput],
            }
            self.stdout.write(json.dumps(figures))
            return
        tables = (render_measurements(measured, rounds=options["rounds"]), render_throughput(throughput))
        self.stdout.write(render_text(tables, width=WIDTH))

    def print_growth_of_jobs(self, jobs: Iterable[str], *, as_json: bool) -> None:
        """Print the figures as they come: some jobs take minutes."""
        for growth in measure_growth(jobs, GROWN):
            self.stdout.write(json.dumps(asdict(growth)) if as_json else print_growth(growth))


def require_migrations() -> None:
    """Raise CommandError unless all migrations are applied."""
    if describe_missing_migrations():
        raise CommandError("The database is not migrated. Add --migrate, or run `manage.py migrate` first.")


def print_growth(growth: Growth) -> str:
    seconds = "".join(f"{each:10.2f} s" for each in growth.seconds)
    verdict = "" if growth.times <= MAX_GROWTH else f"  more than {MAX_GROWTH:.0f}"
    return f"{growth.job:<20}{growth.rows:<46}{seconds}{growth.times:8.1f} ×{verdict}"


def print_page(time: PageTime) -> str:
    verdict = "" if time.p50_ms <= time.limit_ms else f"  more than {time.limit_ms:.0f}"
    return f"{time.page:<40}{time.p50_ms:8.1f} ms{time.p95_ms:8.1f} ms{verdict}"


def measure_all(rounds: int, *, memories: int) -> tuple[list[Measurement], list[Throughput]]:
    try:
        return measure_in_scratch(rounds, memories=memories)
    finally:
        if memories:
            # the account's vector index outlives it, until somebody looks
            call_command("run_job", "vector_indexes", json=True, stdout=StringIO())


def measure_in_scratch(rounds: int, *, memories: int) -> tuple[list[Measurement], list[Throughput]]:
    now = timezone.now()
    with scratch_account() as scratch, bare_log(), web_server() as address:
        fill_episodes(scratch, EPISODES, now=now)
        with connection.cursor() as cursor:
            # or the planner would go by what it knew before there was anything
            cursor.execute("ANALYZE memories, memory_vectors")
        with closing(KeepAliveClient(address, scratch.secret)) as client:
            measured = [
                row
                for case in all_cases(scratch, client, memories=memories, now=now)
                for row in measure(case, rounds=rounds)
            ]
        throughput = [
            measure_throughput(scratch, address, request=name, bodies=bodies, connections=connections)
            for name, bodies in (
                ("recall, 600 turns", recall_bodies(scratch)),
                ("recall by vectors alone, 600 turns", recall_bodies(scratch, [VECTOR.name])),
            )
            for connections in CONNECTIONS
        ]
    return measured, throughput


def render_measurements(measured: Iterable[Measurement], *, rounds: int) -> Table:
    table = Table(title=f"{rounds:,} rounds, one connection, {EPISODES:,} episodes with vectors", title_justify="left")
    table.add_column("")
    table.add_column("way")
    for column in ("p50 ms", "p95 ms", "p50 ×", "p95 ×"):
        table.add_column(column, justify="right")
    former = ""
    for each in measured:
        if former and each.case != former:
            table.add_section()
        table.add_row(
            each.case if each.case != former else "",
            each.way,
            *(f"{value:.2f}" for value in (each.p50_ms, each.p95_ms)),
            *(f"{value:.1f}" for value in (each.p50_ratio, each.p95_ratio)),
        )
        former = each.case
    return table


def render_throughput(measured: Iterable[Throughput]) -> Table:
    table = Table(title=f"Many connections, {SECONDS:.0f} seconds each", title_justify="left")
    table.add_column("")
    for column in ("connections", "requests/s", "p50 ms", "p99 ms", "p99 / p50", "refused"):
        table.add_column(column, justify="right")
    for each in measured:
        figures = (each.requests_per_second, each.p50_ms, each.p99_ms, each.p99_ms / each.p50_ms)
        table.add_row(each.request, str(each.connections), *(f"{value:.1f}" for value in figures), str(each.refused))
    return table
