"""Django's commands, with the servers that they need: found running, or started for as long as they run."""

import logging
import os
import signal
import sys

import psycopg
from django.core.management import execute_from_command_line
from django.db import DatabaseError

from memory_project.embedded.environment import servers_for_command
from memory_project.embedded.errors import EmbeddedServerError
from memory_project.env import SettingError
from memory_project.logs import say_last


class StoreFailure(Exception):  # noqa: N818  a finding, not a fault
    """PostgreSQL cannot be used by a command; the text is a whole sentence."""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
    # so that the last one out stops the servers when it is told to stop, too
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    # each failed connection is a line there; what ends the command is said once, with the reason
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        with servers_for_command(sys.argv, os.environ):
            run_command()
    except (EmbeddedServerError, SettingError, StoreFailure) as err:
        sys.exit(say_last(str(err)))


def run_command() -> None:
    """Run the command. Raises StoreFailure if PostgreSQL cannot be used, or lacks migrations."""
    try:
        execute_from_command_line(sys.argv)
    except (DatabaseError, psycopg.Error) as err:
        # here, as it asks settings, which may not be loaded before a command is run
        from memory_project.postgresql.failures import explain_failure  # noqa: PLC0415

        if (sentence := explain_failure(err)) is None:
            raise
        raise StoreFailure(sentence) from err


if __name__ == "__main__":
    main()
