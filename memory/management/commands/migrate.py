"""`manage.py migrate`: Django's command, one at a time, so that nodes may start together."""

import time
from typing import Any

from django.conf import settings
from django.core.management.commands import migrate

from memory_project.postgresql.locks import lock_connection
from memory_project.postgresql.options import store_role_settings
from memory_project.postgresql.roles import grant_rights, owner_connection

MIGRATE_LOCK_ID = 0x6D656D626F6F7401
LOOK_SECONDS = 0.5


class Command(migrate.Command):
    @owner_connection()
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Wait for another node's migrations, then run those that are missing still.

        The lock belongs to a transaction on a connection of its own: it holds through PgBouncer as well, ends with the
        process, and a transaction that is idle at READ COMMITTED keeps no index from being built concurrently.
        Afterwards, the application's role gets its rights, and the role of a pooler the settings of its sessions.
        """
        with lock_connection(options["database"]) as cursor:
            # a statement that waits would hold a snapshot, for whose end an index built concurrently waits
            while not cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [MIGRATE_LOCK_ID]).fetchone()[0]:
                time.sleep(LOOK_SECONDS)
            printed = super().handle(*args, **options)
            if not (options["plan"] or options["check_unapplied"]):
                grant_rights()
            if settings.DATABASE_POOLER_URL:
                store_role_settings()
        return printed
