"""The loop: everything that happens after the start and before the end."""

import http.client
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from types import FrameType
from urllib.parse import urlsplit

from memory_project.embedded.errors import EmbeddedServerError
from memory_project.embedded.servers import SharedServers
from memory_project.supervisor.log import Log
from memory_project.supervisor.parts import RunningPart
from memory_project.supervisor.restarts import Restarts

TICK_SECONDS = 0.1
SERVER_CHECK_SECONDS = 1.0
READY_CHECK_SECONDS = 0.25
OWN_NAME = "up"


class StopRequest:
    """Set by Ctrl-C, SIGTERM or a closed terminal; a second Ctrl-C takes away the parts' time to finish."""

    def __init__(self) -> None:
        self.is_made = False
        self.is_impatient = False

    def listen(self) -> None:
        """Listen for signals. make and process groups may send SIGTERM twice, which is not an impatient user."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.is_impatient = self.is_made and number == signal.SIGINT
        self.is_made = True


class Loop:
    """The loop that watches the parts and the servers until it is stopped."""

    def __init__(self, parts: Sequence[RunningPart], *, servers: SharedServers | None, log: Log) -> None:
        self._parts = parts
        self._servers = servers
        self._log = log
        self._server_restarts = Restarts()
        self._servers_started_at = self._next_server_check = time.monotonic()

    def run(self, stop: StopRequest, *, url: str) -> None:
        """Run until `stop` is set."""
        ready = Readiness(url)
        while not stop.is_made:
            now = time.monotonic()
            self._tend_servers(now)
            for running in self._parts:
                running.tend(now)
            if ready.has_come(now):
                self._log.say(OWN_NAME, f"ready: {url}")
            time.sleep(TICK_SECONDS)

    def stop(self, stop: StopRequest) -> None:
        """Stop all parts together, each with its time to finish."""
        begun = time.monotonic()
        for running in self._parts:
            self._log.say(OWN_NAME, f"stopping {running.part.name}")
            running.ask_to_stop()
        left = [*self._parts]
        while left:
            for running in [*left]:
                running.pump()
                is_late = time.monotonic() > begun + running.part.grace_seconds
                if running.has_stopped() or is_late or stop.is_impatient:
                    running.end()
                    left.remove(running)
            time.sleep(TICK_SECONDS / 2)

    def _tend_servers(self, now: float) -> None:
        if self._servers is None or now < self._next_server_check:
            return
        self._next_server_check = now + SERVER_CHECK_SECONDS
        stopped = self._servers.stopped()
        if not stopped:
            return
        wait = self._server_restarts.wait_seconds(now - self._servers_started_at)
        names = " and ".join(stopped)
        self._log.say(OWN_NAME, f"{names} stopped; starting again", level="WARNING")
        try:
            with self._reading_parts():
                self._servers.start_missing()
            self._log.say(OWN_NAME, f"{names} started again", level="WARNING")
        except (EmbeddedServerError, OSError) as err:
            # a full disk, for example, which is waited out
            self._log.say(OWN_NAME, str(err), level="ERROR")
        self._servers_started_at = time.monotonic()
        self._next_server_check = self._servers_started_at + wait

    @contextmanager
    def _reading_parts(self) -> Iterator[None]:
        """Read what the parts say meanwhile: one whose pipe is full stands still, and a server may take minutes."""
        is_over = threading.Event()

        def read() -> None:
            while not is_over.wait(TICK_SECONDS):
                for running in self._parts:
                    # a log on a full disk is no reason to stop reading
                    with suppress(OSError):
                        running.pump()

        reader = threading.Thread(target=read, name="logs")
        reader.start()
        try:
            yield
        finally:
            is_over.set()
            reader.join()


class Readiness:
    """Asks the web part whether it answers, until it does for the first time."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self._next_check = 0.0
        self._has_come = False

    def has_come(self, now: float) -> bool:
        """Return True the first time that the web part answers.

        Any answer will do, since a configured host name may refuse ours.
        """
        if self._has_come or now < self._next_check:
            return False
        self._next_check = now + READY_CHECK_SECONDS
        connection = http.client.HTTPConnection(self._address, timeout=1)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            self._has_come = True
        return self._has_come
