"""`manage.py simulate_month`: conversations and jobs of a month in minutes, every count reconciled around every job."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from lab.simulation.digests import describe_state, digest_of
from lab.simulation.lives import holds_anything
from lab.simulation.month import Month, MonthStep, do_at_once, first_day_of
from lab.simulation.reports import render_month, serialize_month, total_by_job
from lab.simulation.script import ScriptSize
from memory.management.base import OperatorCommand, require_keys
from memory.models import Account


class Command(OperatorCommand):
    help = (
        "Live a month in an account of its own: conversations, goals, facts and the rest as of simulated times, with "
        "all jobs of maintenance. Says what each job did, and what of it its figures leave unexplained. The month "
        "ends before today; the account stays."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", metavar="NAME", required=True, help="made where it is new; else it is empty")
        parser.add_argument("--conversations", type=int, default=1_000)
        parser.add_argument("--agents", type=int, default=20)
        parser.add_argument("--days", type=int, default=30)
        parser.add_argument("--seed", type=int, default=7)
        parser.add_argument("--json", action="store_true", help="report as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        extent = extent_of(options)
        require_keys()
        account, _ = Account.objects.get_or_create(name=options["account"])
        if holds_anything(account):
            raise CommandError(f"The account {account.name!r} holds something already: name one that is empty.")
        now = timezone.now()
        month = Month(extent=extent, account=account, first_day=first_day_of(extent, now), since=now, do=do_at_once)
        totals = total_by_job(self.watched(month.live()))
        digest = digest_of(describe_state(account))
        self.stdout.write(
            json.dumps(serialize_month(totals, digest)) if options["json"] else render_month(totals, digest)
        )
        if any(total.unexplained for total in totals):
            raise CommandError("Something is unexplained.")

    def watched(self, steps: Iterable[MonthStep]) -> Iterable[MonthStep]:
        """Print unexplained changes as they occur."""
        for step in steps:
            for each in step.unexplained:
                self.stderr.write(f"{step.at:%Y-%m-%d %H:%M} {step.job}: {each.count} of {each.what}")
            yield step


def extent_of(options: dict[str, Any]) -> ScriptSize:
    numbers = {name: options[name] for name in ("conversations", "agents", "days")}
    for name, number in numbers.items():
        if number < 1:
            raise CommandError(f"--{name} must be at least 1.")
    return ScriptSize(**numbers, seed=options["seed"])
