"""Web server and worker of one machine, forked from a process that has loaded the code and the model for both.

`make up` runs them so, because two processes that load for themselves take 250 MB more. Each is in a session of its
own: when one dies, its processes are killed and it is forked again, and the other goes on.
"""

import ctypes
import gc
import os
import socket
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory_project.counters import VARIABLE, reserve_files, share_counters
from memory_project.encryption import check_database_keys, check_encryption_keys
from memory_project.logs import say_last
from memory_project.postgresql.options import check_role_settings, prepare_web_connections
from memory_project.redis import refuse_cluster_node
from memory_project.supervisor.forks import Fork, keep_running, stop_all, unblock_signals

WORKER_SECONDS = 8.0
WEB_SECONDS = 5.0
"""Seconds that the web server may take to stop beside those of its settings."""
WORKER = ("--quiet", "worker", "--loglevel", "INFO", "--beat", "--without-gossip", "--without-mingle")


def main() -> int:
    options = read_options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
    # before anything that counts is imported
    share_counters(settings.DATA_DIR, os.environ)
    reserve_files(os.environ)
    try:
        check_encryption_keys()
        parts, sockets = load_parts(options)
    except ImproperlyConfigured as error:
        return say_last(f"The web server does not start: {error}.")
    except OSError as error:
        return say_last(f"The web server does not start: {options.bind} or {options.health}: {error.strerror}.")
    # what is shared stays shared: a collection would write to all of it
    gc.collect()
    gc.freeze()
    give_back_memory()
    return run_parts(parts, sockets)


def give_back_memory() -> None:
    """Give the system what loading has freed (20 MB), where the C library can."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def read_options() -> Namespace:
    parser = ArgumentParser(prog="python -m memory_project.node", description=__doc__)
    parser.add_argument("--bind", required=True, metavar="HOST:PORT", help="Address of the service.")
    parser.add_argument("--health", required=True, metavar="HOST:PORT", help="Address of the health checks, or none.")
    return parser.parse_args()


def load_parts(options: Namespace) -> tuple[list[Fork], list[socket.socket]]:
    """Bind the addresses, check the keys, and load what both parts need. Return the parts and their listening sockets.

    Raises ImproperlyConfigured, OSError.
    """
    from memory_project.celery import app  # noqa: PLC0415  loads what counts
    from memory_project.web.launcher import Launcher, listen, load_application  # noqa: PLC0415  loads Django's apps

    sockets = [listen(address) for address in (options.bind, options.health) if address != "none"]
    if settings.DATABASE_POOLER_URL:
        # the web server would find out, again and again
        check_role_settings()
    django.setup()
    check_database_keys()
    refuse_cluster_node()
    application = load_application()
    app.loader.import_default_modules()
    app.finalize()

    def serve_web() -> int:
        prepare_web_connections()
        return Launcher(application, sockets).run()

    def work() -> int:
        unblock_signals()
        for listener in sockets:
            listener.close()
        # a folder of its own, which the worker makes
        os.environ.pop(VARIABLE, None)
        sys.argv = ["celery", *WORKER]
        from memory_project.celery import count_together  # noqa: PLC0415  as above

        count_together()
        app.start(argv=list(WORKER))
        return 0

    web_seconds = settings.DRAIN_SECONDS + settings.STOP_SECONDS + WEB_SECONDS
    parts = [
        Fork(name="web", run=serve_web, grace_seconds=web_seconds, leads_session=True),
        Fork(name="worker", run=work, grace_seconds=WORKER_SECONDS, leads_session=True),
    ]
    return parts, sockets


def run_parts(parts: Sequence[Fork], sockets: Sequence[socket.socket]) -> int:
    """Run the parts until SIGTERM, SIGINT or SIGHUP, and return the exit code."""
    keep_running(parts)
    # the web server refuses connections once it has closed its own
    for listener in sockets:
        listener.close()
    stop_all(parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
