"""`manage.py erase_subject`: erase all that is known of a user, verify a receipt, or let an erased user come back."""

import json
import time
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from memory import conf
from memory.management.base import OperatorCommand, find_account, require_keys
from memory.models import Erasure
from memory.owner import Owner
from memory.services.custody.subjects import (
    continue_erasure,
    find_erasure,
    preview_subject,
    readmit_user,
    request_subject,
    verify_receipt,
)

WAIT_SECONDS = 1.0

EPILOG = f"""
Everything that names the user is refused from the beginning on, until --readmit. The erasure goes over all stores
until a whole pass finds nothing, and at least MEMORY_ERASURE_WAIT_SECONDS ({conf.ERASURE_WAIT_SECONDS}) after its
request. It may be stopped anywhere: run the same command again, or let the worker finish it.

  manage.py erase_subject --account workshop --user ana --dry-run
  manage.py erase_subject --account workshop --user ana --reason "request of 4 May" --json
  manage.py erase_subject --account workshop --verify 0190c4f2-8a4b-7c3e-9d1f-2b6a5e8c7d90
  manage.py erase_subject --account workshop --user ana --readmit

Exit status: 0, or 1 for an unknown account or erasure and for a receipt that is not valid, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Erase all that is known of a user in an account, and print the signed receipt."
    epilog = EPILOG
    advice = "What is erased stays so; run the same command again to go on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", metavar="NAME", required=True, help="name of the account")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--user", metavar="ID", help="id of the user")
        what.add_argument("--verify", metavar="ERASURE", type=UUID, help="id of the erasure whose receipt to verify")
        parser.add_argument("--reason", metavar="TEXT", default="", help="reason, which stays in the receipt")
        parser.add_argument("--readmit", action="store_true", help="lift the mark: the user may be written to again")
        parser.add_argument("--dry-run", action="store_true", help="print what would be erased, and change nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        require_keys()
        owner = Owner(account_id=find_account(options["account"]).id, actor="command")
        if options["verify"]:
            self.verify(owner, options)
        elif options["dry_run"]:
            self.report({"dry_run": True, "counts": preview_subject(owner, options["user"])}, options)
        elif options["readmit"]:
            readmit_user(owner, options["user"], now=timezone.now())
            self.report({"readmitted": True}, options)
        else:
            erasure = self.erase(owner, request_subject(owner, options["user"], reason=options["reason"],
                now=timezone.now()))  # fmt: skip
            self.report({"receipt": erasure.receipt, "signature": erasure.signature}, options)

    def erase(self, owner: Owner, erasure: Erasure) -> Erasure:
        """Continue the erasure until it is completed, together with a worker if there is one."""
        while erasure.status != Erasure.Status.COMPLETED:
            erasure = continue_erasure(owner.account_id, erasure.id, now=timezone.now())
            if not erasure.step:
                time.sleep(WAIT_SECONDS)
        return erasure

    def verify(self, owner: Owner, options: dict[str, Any]) -> None:
        erasure = find_erasure(owner, options["verify"])
        is_valid = verify_receipt(owner, erasure.receipt or {}, erasure.signature)
        self.report({"is_valid": is_valid, "receipt": erasure.receipt, "signature": erasure.signature}, options)
        if not is_valid:
            raise CommandError("The receipt is not one that this installation signed.")

    def report(self, figures: dict[str, Any], options: dict[str, Any]) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(figures))
            return
        counts = figures.get("counts", (figures.get("receipt") or {}).get("counts", {}))
        for name, number in sorted(counts.items()):
            self.stdout.write(f"{number:>10,}  {name}")
        if not counts and (options["dry_run"] or "receipt" in figures) and not options["verify"]:
            self.stdout.write("No row belongs to this user. Check the id.")
        for name in ("is_valid", "readmitted", "signature"):
            if name in figures:
                self.stdout.write(f"{name}: {figures[name]}")
