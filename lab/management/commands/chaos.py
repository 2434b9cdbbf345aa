"""Faults on purpose, and what clients notice of them."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from lab.benchmarks.scratch import scratch_account
from lab.chaos.scenarios import SCENARIOS
from lab.chaos.stage import Stage
from memory.management.base import OperatorCommand, require_keys


class Command(OperatorCommand):
    help = (
        "Hold crowds of slow clients and stop servers, and measure what a client that works and /health/live notice. "
        "Works on a web server and in an account of its own. Fails when a target of docs/reliability.md is missed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("scenarios", nargs="*", metavar="NAME", help=f"{', '.join(SCENARIOS)}. Default: all.")
        parser.add_argument("--seconds", type=float, default=20.0, help="of each observation. Default: 20.")
        parser.add_argument("--migrate", action="store_true", help="migrate first, on servers that are new")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = sorted(set(options["scenarios"]) - set(SCENARIOS))
        if unknown:
            raise CommandError(f"There is no scenario {', '.join(unknown)}. There are: {', '.join(SCENARIOS)}.")
        if options["migrate"]:
            call_command("migrate", verbosity=0, skip_checks=True)
        require_keys()
        missed = []
        for name in options["scenarios"] or SCENARIOS:
            with scratch_account("chaos") as scratch:
                finding = SCENARIOS[name](Stage(secret=scratch.secret, seconds=options["seconds"]))
            self.stdout.write(json.dumps({"scenario": name, **finding.figures}, indent=2))
            missed += [f"{name}: {sentence}" for sentence in finding.missed]
        if missed:
            raise CommandError(" ".join(missed))
