"""Web server and worker of one machine, forked from a process that has loaded the code and the model for both.

`make up` runs them so, because two processes that load for themselves take 250 MB more. Each is in a session of its
own: when one dies, its processes are killed and it is forked again, and the other goes on.
"""

import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory_project.counters import VARIABLE, reserve_files, share_counters
from memory_project.embedded.daemons import signal_on_parent_death
from memory_project.encryption import check_database_keys, check_encryption_keys
from memory_project.logs import say_last
from memory_project.postgresql.options import check_role_settings, prepare_web_connections
from memory_project.redis import refuse_cluster_node
from memory_project.supervisor.restarts import MAX_WAIT_SECONDS, Restarts

logger = logging.getLogger(__name__)

SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
WORKER_SECONDS = 8.0
WEB_SECONDS = 5.0
"""Seconds that the web server may take to stop beside those of its settings."""
TICK_SECONDS = 0.5
WORKER = ("--quiet", "worker", "--loglevel", "INFO", "--beat", "--without-gossip", "--without-mingle")


@dataclass(slots=True, kw_only=True)
class ForkedPart:
    """A part that is forked: `run` is all that its process does. `pid` is 0 while none runs."""

    name: str
    run: Callable[[], int]
    grace_seconds: float
    pid: int = 0
    started_at: float = 0.0
    start_at: float = 0.0
    restarts: Restarts = field(default_factory=Restarts)


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


def load_parts(options: Namespace) -> tuple[list[ForkedPart], list[socket.socket]]:
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
        ForkedPart(name="web", run=serve_web, grace_seconds=web_seconds),
        ForkedPart(name="worker", run=work, grace_seconds=WORKER_SECONDS),
    ]
    return parts, sockets


def run_parts(parts: Sequence[ForkedPart], sockets: Sequence[socket.socket]) -> int:
    """Run the parts until SIGTERM, SIGINT or SIGHUP, and return the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    while True:
        now = time.monotonic()
        for part in parts:
            if part.pid == 0 and now >= part.start_at:
                fork_part(part, now)
            elif part.pid and has_ended(part):
                wait = part.restarts.wait_seconds(now - part.started_at)
                logger.warning("%s ended; starting it again in %.1f s", part.name, wait)
                part.start_at = now + wait
        noted = signal.sigtimedwait(SIGNALS, TICK_SECONDS)
        if noted is not None and noted.si_signo != signal.SIGCHLD:
            # the web server refuses connections once it has closed its own
            for listener in sockets:
                listener.close()
            return stop_parts(parts)


def fork_part(part: ForkedPart, now: float) -> None:
    """Fork the process of a part."""
    die_with_parent = signal_on_parent_death(signal.SIGTERM)
    part.started_at = now
    try:
        part.pid = os.fork()
    except OSError as err:
        # out of memory or processes, for example, which is waited out
        logger.error("%s cannot be started: %s", part.name, err.strerror)
        part.start_at = now + MAX_WAIT_SECONDS
        return
    if part.pid:
        return
    code = 1
    try:
        os.setsid()
        if die_with_parent:
            die_with_parent()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = part.run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        logger.exception("%s ended by an error", part.name)
    finally:
        # nothing of what the first process has yet to do
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def has_ended(part: ForkedPart) -> bool:
    """Return whether the process of a part has ended; then kill what it has left."""
    if not os.waitpid(part.pid, os.WNOHANG)[0]:
        return False
    kill_session(part.pid)
    part.pid = 0
    return True


def kill_session(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def stop_parts(parts: Sequence[ForkedPart]) -> int:
    """Ask all parts to stop, and kill those that have not after their time."""
    begun = time.monotonic()
    for part in parts:
        if part.pid:
            os.kill(part.pid, signal.SIGTERM)
    while left := [part for part in parts if part.pid and not has_ended(part)]:
        for part in left:
            if time.monotonic() > begun + part.grace_seconds:
                kill_session(part.pid)
        signal.sigtimedwait(SIGNALS, 0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
