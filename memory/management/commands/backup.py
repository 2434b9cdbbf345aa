"""`manage.py backup`: PostgreSQL, Redis and the keys of this installation, in a folder."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memory.management.base import OperatorCommand
from memory.management.passphrases import add_passphrase_arguments, read_passphrase
from memory.services.backup.create import create_backup, require_tables
from memory.services.backup.manifest import BackupError
from memory.services.operations.canary import check_keys
from memory_project.postgresql.roles import owner_connection

EPILOG = """
The service may run meanwhile. The folder is written next to its final name and renamed when it is complete, so that an
interrupted backup is never taken for one. It holds:

  database.sql.gz   everything in PostgreSQL, in one snapshot: SQL, by the pg_dump of the server's version
  redis.jsonl.gz    the installation's keys in Redis, and changes that are not in PostgreSQL yet
  keys.json         the encryption keys, the key of tombstones and Django's key, sealed with your passphrase
  manifest.json     versions, counts, and the SHA-256 of each file

Everything but the keys is as plain as in the database: keep the folder where only you can read it.

  manage.py backup /backups/2026-05-04 --passphrase-file /root/passphrase
  manage.py backup /backups/2026-05-04 --without-keys --json

Exit status: 0, or 1 when there is no backup, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Write a backup of this installation into a new folder, while the service runs."
    epilog = EPILOG
    refusals = (BackupError,)
    advice = "There is no backup."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the backup, which is absent or empty")
        add_passphrase_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print the manifest as one JSON object")

    @owner_connection()
    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        # those of an older version, before it is upgraded, may lack a table
        check_keys()
        folder: Path = options["folder"].absolute()
        try:
            passphrase = read_passphrase(options, again=True)
            manifest = create_backup(folder, passphrase=passphrase, now=timezone.now(), report=self.stderr.write)
        except OSError as err:
            raise CommandError(f"{err.filename or folder}: {err.strerror or err}.") from err
        size = sum(file.size_bytes for file in manifest.files.values())
        rows = sum(manifest.rows.values())
        sentence = f"{folder}: {rows:,} rows, {manifest.live_keys:,} keys of Redis, {size:,} bytes"
        self.print_figures(asdict(manifest), sentence, options)
