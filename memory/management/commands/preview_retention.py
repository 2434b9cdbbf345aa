"""`manage.py preview_retention`: what the job `cleanup` would archive and delete now, and why."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from memory.management.base import OperatorCommand, find_account
from memory.models import Account
from memory.services.retention import preview_rules

EPILOG = """
Retention follows the settings of each account (Retention, on its page in the admin). The job `cleanup` applies them
every night; this command changes nothing. Examples are ids, never texts.

  manage.py preview_retention --account workshop
  manage.py preview_retention --json
"""


class Command(OperatorCommand):
    help = "Print what retention would archive and delete now: the reason, the number of rows, and examples."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", metavar="NAME", help="this account only")
        parser.add_argument("--json", action="store_true", help="print one JSON object: the rules by account")

    def handle(self, *args: Any, **options: Any) -> None:
        named = options["account"]
        accounts = [find_account(named)] if named else list(Account.objects.order_by("name"))
        found = {each.name: preview_rules(each.id, now=timezone.now()) for each in accounts}
        if options["json"]:
            self.stdout.write(json.dumps({name: [asdict(rule) for rule in rules] for name, rules in found.items()}))
            return
        for account in accounts:
            hold = " (legal hold: nothing is deleted)" if account.legal_hold else ""
            self.stdout.write(f"{account.name}{hold}")
            for rule in found[account.name]:
                self.stdout.write(f"{rule.rows:>10,}  {rule.rule}: {rule.reason}")
                if rule.examples:
                    self.stdout.write(f"{'':>12}such as {', '.join(rule.examples)}")
