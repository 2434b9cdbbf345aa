"""Django's commands, with the servers that they need: found running, or started for as long as they run."""

import os
import signal
import sys

from django.core.management import execute_from_command_line

from memory_project.embedded.environment import servers_for_command
from memory_project.embedded.errors import EmbeddedServerError
from memory_project.env import SettingError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
    # so that the last one out stops the servers when it is told to stop, too
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        with servers_for_command(sys.argv, os.environ):
            execute_from_command_line(sys.argv)
    except (EmbeddedServerError, SettingError) as err:
        sys.exit(str(err))


if __name__ == "__main__":
    main()
