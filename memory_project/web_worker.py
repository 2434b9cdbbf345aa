"""gunicorn's threads, with a deadline for what clients send: a slow one may keep a thread for so long, not for good."""

import socket
import time
from contextlib import suppress
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import TConn, ThreadWorker


class DeadlineWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A request's head and body have to be there MEMORY_CLIENT_TIMEOUT_SECONDS after its first byte.

    Then no more is read from the connection: a head that is not there ends it, a body that is cut short is a 400.
    A thread that is still at work on its answer notices nothing. Bodies of any length are read under a time-out of
    the socket's own instead (`http.streams.patient`): as long as the time is, but for each pause.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._read_until: dict[TConn, float] = {}

    def enqueue_req(self, conn: TConn) -> None:
        """Note the time, in the main thread: the clock also runs while a connection waits for its thread."""
        self._read_until[conn] = time.monotonic() + settings.CLIENT_TIMEOUT_SECONDS
        super().enqueue_req(conn)

    def handle(self, conn: TConn) -> Any:
        """Handle a connection in a thread of the pool."""
        try:
            return super().handle(conn)
        finally:
            self._read_until.pop(conn, None)

    def murder_pending(self) -> None:
        """End connections that are out of time; the main loop calls this each second."""
        super().murder_pending()
        now = time.monotonic()
        for conn, until in list(self._read_until.items()):
            # the socket's own is None while a thread reads without one, 0 while the connection waits for its thread
            if until < now and not conn.sock.gettimeout():
                self._read_until.pop(conn, None)
                # what has arrived is still read; behind it comes the end
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RD)
