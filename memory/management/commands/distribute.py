"""Turn a migrated database with the extension citus into one that is distributed over machines by account."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connection

from memory.management.base import OperatorCommand
from memory_project.postgresql.distribution import (
    DistributionError,
    DistributionStep,
    Machine,
    parse_machine,
    plan_distribution,
    run_step,
)
from memory_project.postgresql.roles import owner_connection


class Command(OperatorCommand):
    help = (
        "Distribute the tables over the workers of a Citus installation: rows of accounts by account, tables of the "
        "installation as copies on every machine. Stop web servers and workers of the service first. Each step commits "
        "by itself: if one fails or the command is interrupted, run it again, and it does what is missing. New tables "
        "of a later migration are distributed by running it once more."
    )
    refusals = (DistributionError,)
    advice = "Run the command again: it goes on where it was."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--workers",
            type=parse_machines,
            default=[],
            metavar="HOST:PORT,…",
            help="the workers' servers, each with a database of the same name and the extension citus; "
            "may be left out when the coordinator knows them already",
        )
        parser.add_argument(
            "--coordinator",
            type=parse_one,
            metavar="HOST:PORT",
            help="the address of this database as workers reach it (default: that of DATABASE_URL)",
        )
        parser.add_argument("--dry-run", action="store_true", help="print the statements that are missing, run none")
        parser.add_argument("--json", action="store_true", help="print the steps as one JSON object")

    @owner_connection()
    def handle(self, *args: Any, **options: Any) -> None:
        coordinator = options["coordinator"] or own_address()
        steps = plan_distribution(coordinator, options["workers"])
        if not options["dry_run"]:
            self.run_steps(steps, is_quiet=options["json"])
        if options["json"]:
            self.stdout.write(json.dumps({"dry_run": options["dry_run"], "steps": [asdict(step) for step in steps]}))
        elif options["dry_run"]:
            for step in steps:
                self.stdout.write(f"-- {step.action}: {step.subject}\n{format_statements(step)}")
        else:
            self.stdout.write(f"The database is distributed: {len(steps)} steps.")

    def run_steps(self, steps: list[DistributionStep], *, is_quiet: bool) -> None:
        """Run the steps. Raises CommandError for the first one that the database refuses."""
        for number, step in enumerate(steps, start=1):
            if not is_quiet:
                self.stdout.write(f"{number}/{len(steps)} {step.action}: {step.subject}")
                self.stdout.flush()
            try:
                run_step(step)
            except DatabaseError as err:
                raise CommandError(
                    f"The database refused step {number} ({step.action}: {step.subject}): {str(err).strip()}\n"
                    "What was done before is kept: run the command again when the cause is gone."
                ) from err


def own_address() -> Machine:
    """Return the address of the database that this process uses."""
    parameters = connection.get_connection_params()
    return Machine(host=parameters.get("host") or "localhost", port=int(parameters.get("port") or 5432))


def format_statements(step: DistributionStep) -> str:
    """Return the statements with their parameters."""
    with connection.cursor() as cursor:
        texts: list[Any] = [cursor.mogrify(text, parameters or None) for text, parameters in step.statements]
        return "\n".join(f"{text};" for text in texts)


def parse_one(text: str) -> Machine:
    try:
        return parse_machine(text)
    except ValueError as err:
        raise ArgumentTypeError(str(err)) from err


def parse_machines(text: str) -> list[Machine]:
    return [parse_one(part) for part in text.split(",")]
