"""A server that hangs (stopped, or behind a dead network) answers nothing and closes nothing: no driver notices.

When no statement of the process was answered for SILENCE_SECONDS, one that waits asks the server by a connection of its
own. If that answers, statements are merely slow, and go on. If not, all that wait end with an OperationalError, and new
ones are refused, but for one every PAUSE_SECONDS that finds out whether the server is back.
"""

import logging
import math
import select
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from typing import Any

import psycopg
from django.db import connections
from psycopg.errors import _WaitTimeout as WaitTimeout
from psycopg.waiting import Ready

logger = logging.getLogger(__name__)

SILENCE_SECONDS = 2.0
PAUSE_SECONDS = 2.0
PROBE_SECONDS = 2
# the driver looks that often whether to give up
TICK_SECONDS = 0.1
TRUSTED_SECONDS = 1.0
"""Age of an answer until which a connection counts as working without being asked."""


class PostgreSQLHangsError(psycopg.OperationalError):
    """The server does not answer, and has not closed the connection either."""


class ServerWatch:
    """The state of the server, as far as this process knows it."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._probing = threading.Lock()
        self._hangs = False
        self._asks_again_at = 0.0
        self._heard_at = 0.0

    def refuse_if_hanging(self) -> None:
        """Raise PostgreSQLHangsError while the server hangs, but let one caller try every PAUSE_SECONDS."""
        if not self._hangs:
            return
        now = time.monotonic()
        if now < self._asks_again_at:
            raise PostgreSQLHangsError("PostgreSQL did not answer a moment ago")
        self._asks_again_at = now + PAUSE_SECONDS

    def note_answer(self) -> None:
        """Note that the server has answered."""
        self._hangs, self._heard_at = False, time.monotonic()

    def judge_silence(self, since: float) -> None:
        """Judge a statement without an answer since then. Raises PostgreSQLHangsError if the server hangs."""
        if time.monotonic() < max(since, self._heard_at) + SILENCE_SECONDS:
            return
        if self._hangs:
            raise PostgreSQLHangsError("PostgreSQL does not answer")
        if not self._probing.acquire(blocking=False):
            # another thread is asking
            return
        try:
            if answers(self.alias):
                self.note_answer()
            else:
                self._hangs = True
        finally:
            self._probing.release()
        if self._hangs:
            self._asks_again_at = time.monotonic() + PAUSE_SECONDS
            logger.error("PostgreSQL hangs: it takes connections and answers none")
            raise PostgreSQLHangsError("PostgreSQL does not answer")


SERVER = ServerWatch("default")
WATCHES = {"default": SERVER}
"""The states of servers by the name of the database: that of the primary, and one of each replica."""


def answers(alias: str) -> bool:
    """Return whether the server answers a new connection. One that is down closes those that wait, which end so."""
    connection: Any = connections[alias]
    try:
        psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": PROBE_SECONDS}).close()
    except psycopg.errors.ConnectionTimeout:
        return False
    except psycopg.Error:
        # it refused: that is an answer
        return True
    return True


class WatchedConnection(psycopg.Connection[Any]):
    """A connection whose statements end when the server hangs."""

    server = SERVER
    answered_at = -math.inf

    def has_just_answered(self) -> bool:
        """Return True if the server has answered by this connection a moment ago, and has sent nothing since.

        What it sends unasked is mostly the end of the connection.
        """
        if time.monotonic() > self.answered_at + TRUSTED_SECONDS or self.closed:
            return False
        unread = select.poll()
        unread.register(self.fileno(), select.POLLIN)
        return not unread.poll(0)

    def wait(self, gen: Any, interval: float = TICK_SECONDS, timeout: float | None = None) -> Any:
        """Wait for an answer. Raises PostgreSQLHangsError if the server hangs; the connection is closed then.

        For the first tick the driver waits by itself: to look at each of its steps takes longer than most of them.
        """
        began = time.monotonic()
        try:
            answer = super().wait(gen, interval, TICK_SECONDS if timeout is None else min(TICK_SECONDS, timeout))
        except WaitTimeout:
            left = None if timeout is None else began + timeout - time.monotonic()
            if left is not None and left <= 0:
                raise
            return self._wait_watched(gen, interval, left, began)
        self.server.note_answer()
        self.answered_at = time.monotonic()
        return answer

    def _wait_watched(self, gen: Any, interval: float, timeout: float | None, began: float) -> Any:
        try:
            return super().wait(watch(gen, self.server, began), interval, timeout)
        except PostgreSQLHangsError:
            with suppress(psycopg.Error):
                self.pgconn.finish()
            raise


@cache
def watched_connection(alias: str) -> type[WatchedConnection]:
    """Return the class of connections to the server of a database."""
    if alias not in WATCHES:
        WATCHES[alias] = ServerWatch(alias)
    return type("WatchedConnection", (WatchedConnection,), {"server": WATCHES[alias]})


def watch(gen: Generator[Any, Any, Any], server: ServerWatch, since: float) -> Generator[Any, Any, Any]:
    """Pass on what the driver waits for and what comes; have silence judged.

    `gen` has waited since then for a tick. It is told that nothing came: without that, it takes its next step for an
    answer.
    """
    heard_at = since
    try:
        wanted = gen.send(Ready.NONE)
        while True:
            ready = yield wanted
            if ready == Ready.NONE:
                server.judge_silence(heard_at)
            else:
                heard_at = time.monotonic()
            wanted = gen.send(ready)
    except StopIteration as end:
        server.note_answer()
        return end.value
