"""The main process of the web server: loads once, forks, watches, stops."""

import gc
import logging
import mmap
import os
import resource
import signal
import socket
import time
from collections.abc import Sequence
from functools import partial

from django.conf import settings
from django.urls import get_resolver
from django.utils.module_loading import import_string

from memory_project.counters import release_files, reserve_files
from memory_project.http.paths import WSGIApplication
from memory_project.supervisor.forks import Fork, block_signals, keep_running, stop_all, unblock_signals
from memory_project.web.worker import BACKLOG, CONNECTION_LIMIT, WebWorker

logger = logging.getLogger(__name__)

SEND_BUFFER_BYTES = 128 * 1_024
UNACKNOWLEDGED_MS = 60_000
DESCRIPTORS = 3 * CONNECTION_LIMIT + 1_000
"""A connection may have a file for its request and one for its answer."""
DOUBLE_BYTES = 8
SILENCE_SECONDS = 60.0
"""Seconds after which a process that has not turned its loop is killed."""
LATE_SECONDS = 2.0
"""Seconds that a process has to end after the time for requests in flight."""
COLLECTION_OBJECTS, COLLECTIONS = 10_000, 20
"""New objects after which the youngest are collected for cycles, and such collections after which older ones are."""


def listen(address: str) -> socket.socket:
    """Bind an address, `HOST:PORT` or `[HOST]:PORT`. Connections are accepted once workers run. Raises OSError."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    # connections inherit these
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    made.bind((host.strip("[]"), int(port)))
    return made


def load_application() -> WSGIApplication:
    """Load the application, its routes and what the settings name, all of which the forked processes share."""
    from memory_project.wsgi import application  # noqa: PLC0415  loads Django's apps, and what counts

    _ = get_resolver().url_patterns
    for name in settings.AT_WEB_START:
        try:
            import_string(name)()
        except Exception:
            # what fails here fails again, and is reported, where it is needed
            logger.exception("%s failed", name)
    return application


class Beats:
    """The times (monotonic) at which the loop of each process last turned, in memory that the processes share.

    A number is written at once. `struct.pack_into` would write zeros first, and a process whose zeros are read would be
    killed as one that is silent.
    """

    def __init__(self, count: int) -> None:
        self._numbers = memoryview(mmap.mmap(-1, DOUBLE_BYTES * count)).cast("d")

    def note(self, number: int, now: float) -> None:
        self._numbers[number] = now

    def last(self, number: int) -> float:
        return self._numbers[number]


class Launcher:
    """Runs WEB_WORKERS processes until it is asked to stop."""

    def __init__(self, application: WSGIApplication, sockets: Sequence[socket.socket]) -> None:
        self._application = application
        self._sockets = sockets
        grace_seconds = settings.DRAIN_SECONDS + settings.STOP_SECONDS + LATE_SECONDS
        self._processes = [
            Fork(name="process", run=partial(self._serve, number), grace_seconds=grace_seconds)
            for number in range(settings.WEB_WORKERS)
        ]
        self._beats = Beats(len(self._processes))

    def run(self) -> int:
        """Run until SIGTERM, SIGINT or SIGHUP, and return the exit code."""
        allow_descriptors(DESCRIPTORS)
        block_signals()
        # what is shared stays shared: a collection would write to all of it
        gc.collect()
        gc.freeze()
        # a recall makes thousands of objects and few cycles: by default it would collect three times
        gc.set_threshold(COLLECTION_OBJECTS, COLLECTIONS, COLLECTIONS)
        for listener in self._sockets:
            listener.listen(BACKLOG)
        for kind, listener in zip(("Listening", "Health"), self._sockets, strict=False):
            host, port = listener.getsockname()[:2]
            logger.info("%s at: http://%s:%s (%s)", kind, f"[{host}]" if ":" in host else host, port, os.getpid())
        keep_running(
            self._processes, note_end=lambda pid: release_files(pid, os.environ), watch=self._kill_silent_processes
        )
        for listener in self._sockets:
            listener.close()
        stop_all(self._processes)
        return 0

    def _kill_silent_processes(self, now: float) -> None:
        for number, process in enumerate(self._processes):
            if process.pid and now - max(process.started_at, self._beats.last(number)) > SILENCE_SECONDS:
                logger.error("process %d has been silent for %.0f s; killing it", process.pid, SILENCE_SECONDS)
                process.kill()

    def _serve(self, number: int) -> int:
        """Serve requests in a forked process."""
        reserve_files(os.environ)
        worker = WebWorker(self._application, self._sockets)
        for listener in self._sockets:
            # the worker has its own; the last one that is closed refuses new connections
            listener.close()
        # the main process says when to stop, also when a terminal is closed
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        worker.handle_signals()
        unblock_signals()
        worker.run(lambda: self._beats.note(number, time.monotonic()))
        return 0


def allow_descriptors(count: int) -> None:
    """Raise the limit of open files of this process and its children, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
