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
from dataclasses import dataclass

from django.conf import settings
from django.urls import get_resolver
from django.utils.module_loading import import_string

from memory_project.counters import release_files, reserve_files
from memory_project.embedded.daemons import signal_on_parent_death
from memory_project.http.paths import WSGIApplication
from memory_project.supervisor.restarts import MAX_WAIT_SECONDS, Restarts
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
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


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


@dataclass(slots=True, kw_only=True)
class WorkerSlot:
    """The slot of one process: `pid` is 0 while none runs; the next one starts at `start_at`."""

    number: int
    restarts: Restarts
    pid: int = 0
    started_at: float = 0.0
    start_at: float = 0.0


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
        self._slots = [WorkerSlot(number=number, restarts=Restarts()) for number in range(settings.WEB_WORKERS)]
        self._beats = Beats(len(self._slots))

    def run(self) -> int:
        """Run until SIGTERM, SIGINT or SIGHUP, and return the exit code."""
        allow_descriptors(DESCRIPTORS)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
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
        while True:
            self._tend(time.monotonic())
            noted = signal.sigtimedwait(SIGNALS, 0.5)
            if noted is not None and noted.si_signo != signal.SIGCHLD:
                return self._stop()

    def _tend(self, now: float) -> None:
        """Bury and replace the dead, and kill the silent."""
        self._reap(now)
        for slot in self._slots:
            if not slot.pid:
                if now >= slot.start_at:
                    self._fork(slot, now)
            elif now - self._beats.last(slot.number) > SILENCE_SECONDS:
                logger.error("process %d has been silent for %.0f s; killing it", slot.pid, SILENCE_SECONDS)
                os.kill(slot.pid, signal.SIGKILL)

    def _reap(self, now: float) -> None:
        for slot in self._slots:
            if slot.pid and os.waitpid(slot.pid, os.WNOHANG)[0]:
                wait = slot.restarts.wait_seconds(now - slot.started_at)
                logger.warning("process %d ended; starting another in %.1f s", slot.pid, wait)
                release_files(slot.pid, os.environ)
                slot.pid, slot.start_at = 0, now + wait

    def _fork(self, slot: WorkerSlot, now: float) -> None:
        self._beats.note(slot.number, now)
        die_with_parent = signal_on_parent_death(signal.SIGTERM)
        slot.started_at = now
        try:
            slot.pid = os.fork()
        except OSError as err:
            # out of memory or processes, for example, which is waited out
            logger.error("no process can be started: %s", err.strerror)
            slot.start_at = now + MAX_WAIT_SECONDS
            return
        if slot.pid:
            return
        try:
            if die_with_parent:
                die_with_parent()
            reserve_files(os.environ)
            worker = WebWorker(self._application, self._sockets)
            for listener in self._sockets:
                # the worker has its own; the last one that is closed refuses new connections
                listener.close()
            # the main process says when to stop, also when a terminal is closed
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            worker.handle_signals()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            worker.run(lambda: self._beats.note(slot.number, time.monotonic()))
        except BaseException:
            logger.exception("the process ended by an error")
            os._exit(1)
        # nothing of what the main process has yet to do, and no waiting for threads
        os._exit(0)

    def _stop(self) -> int:
        """Ask all processes to stop; kill those that have not after the time for requests in flight."""
        for listener in self._sockets:
            listener.close()
        for slot in self._slots:
            if slot.pid:
                os.kill(slot.pid, signal.SIGTERM)
        until = time.monotonic() + settings.DRAIN_SECONDS + settings.STOP_SECONDS + LATE_SECONDS
        while any(slot.pid for slot in self._slots) and time.monotonic() < until:
            signal.sigtimedwait(SIGNALS, 0.1)
            for slot in self._slots:
                if slot.pid and os.waitpid(slot.pid, os.WNOHANG)[0]:
                    slot.pid = 0
        for slot in self._slots:
            if slot.pid:
                os.kill(slot.pid, signal.SIGKILL)
                os.waitpid(slot.pid, 0)
        return 0


def allow_descriptors(count: int) -> None:
    """Raise the limit of open files of this process and its children, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
