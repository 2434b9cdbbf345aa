"""`manage.py migrate`: Django's command, one at a time, so that nodes may start together."""

import time
from typing import Any

from django.core.management.commands import migrate
from django.db import connections

MIGRATE_LOCK_ID = 0x6D656D626F6F7401
LOOK_SECONDS = 0.5


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Wait for another node's migrations, then run those that are missing still.

        The lock belongs to a transaction on a connection of its own: it holds through PgBouncer as well, ends with the
        process, and a transaction that is idle at READ COMMITTED keeps no index from being built concurrently.
        """
        connection: Any = connections[options["database"]].copy()
        connection.settings_dict["OPTIONS"].pop("pool", None)
        try:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                # a statement that waits would hold a snapshot, for whose end an index built concurrently waits
                while not cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [MIGRATE_LOCK_ID]).fetchone()[0]:
                    time.sleep(LOOK_SECONDS)
                return super().handle(*args, **options)
        finally:
            connection.close()
