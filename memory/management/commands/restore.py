"""`manage.py restore`: an installation as a backup has it."""

import json
import os
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from memory.management.base import OperatorCommand
from memory.management.passphrases import add_passphrase_arguments, read_passphrase
from memory.services.backup.manifest import BackupError
from memory.services.backup.restore import (
    Restored,
    RestorePlan,
    check_keys_of_backup,
    plan_first_restore,
    plan_restore,
    restore_backup,
)
from memory_project.embedded.environment import has_installation
from memory_project.postgresql.roles import owner_connection

EPILOG = """
Stop the service first. The backup is verified by its digests before anything is changed; what is there already is only
replaced with --replace. PostgreSQL is restored in one transaction, then keys and Redis, then migrations of this
version run, and the ledgers of injections are rebuilt as they were at the moment of the backup. Keys of other
applications in the same Redis stay.

The keys of the backup are put next to the data; former ones stay there as `….before`. Where the environment gives other
keys, nothing is restored: unset them, or leave the keys as they are with --without-keys.

  manage.py restore /backups/2026-05-04 --dry-run --passphrase-file /root/passphrase
  manage.py restore /backups/2026-05-04 --passphrase-file /root/passphrase
  manage.py restore /backups/2026-05-04 --without-keys --replace --json

Exit status: 0, or 1 when it was refused or failed, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Restore a backup that `manage.py backup` made, into an empty installation or in place of what is there."
    epilog = EPILOG
    refusals = (BackupError,)
    advice = "Run the same command again with --replace, before anything is started."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the backup")
        add_passphrase_arguments(parser)
        parser.add_argument("--replace", action="store_true", help="delete what the installation holds now")
        parser.add_argument(
            "--dry-run", action="store_true", help="verify the backup, print what it would replace, and change nothing"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    @owner_connection()
    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"].absolute()
        try:
            check_keys_of_backup(folder, is_asked=not options["without_keys"])
            passphrase = read_passphrase(options, again=False)
            if options["dry_run"]:
                look = plan_restore if has_installation(os.environ) else plan_first_restore
                self.preview(look(folder, passphrase=passphrase), options)
                return
            plan = plan_restore(folder, passphrase=passphrase)
            restored = restore_backup(plan, replaces=options["replace"], report=self.stderr.write)
        except OSError as err:
            raise CommandError(f"{err.filename or folder}: {err.strerror or err}.") from err
        self.print_result(restored, options)

    def preview(self, plan: RestorePlan, options: dict[str, Any]) -> None:
        backup = {
            "created_at": plan.manifest.created_at,
            "version": plan.manifest.version,
            "rows": sum(plan.manifest.rows.values()),
            "live_keys": plan.manifest.live_keys,
        }
        replaced = {name: count for name, count in plan.replaced_rows.items() if count}
        if options["json"]:
            detail = {"rows": replaced, "live_keys": plan.replaced_keys}
            self.stdout.write(json.dumps({"dry_run": True, "backup": backup, "replaced": detail}))
            return
        for name, count in replaced.items():
            self.stdout.write(f"{count:>12,}  {name}")
        self.stdout.write(
            f"The backup of {backup['created_at']} ({backup['version']}) is complete. It would replace "
            f"{sum(replaced.values()):,} rows by {backup['rows']:,}, and {plan.replaced_keys:,} keys of Redis by "
            f"{backup['live_keys']:,}."
        )

    def print_result(self, restored: Restored, options: dict[str, Any]) -> None:
        if restored.lacks_keys:
            self.stderr.write(
                "No present encryption key is the backup's: put its key behind the others, or, if it is lost, run "
                "`manage.py rotate_encryption_keys --accept-loss`."
            )
        sentence = (
            f"Restored {restored.rows:,} rows, {restored.live_keys:,} keys of Redis and {restored.ledgers:,} ledgers. "
            "Start the service now: `make up`, or web server, worker and beat."
        )
        self.print_figures(asdict(restored), sentence, options)
