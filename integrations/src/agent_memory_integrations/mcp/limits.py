"""Limits of the MCP server's own listener: connections, the length of a request's head, and the time to send it.

uvicorn has none for connections that send nothing, or never finish what they send.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 500
"""Connections at a time. A further one ends the one that has waited longest for its request, or gets a 503 itself."""
MAX_HEAD_BYTES = 16_384
REQUEST_SECONDS = 30.0
"""Seconds from the beginning of a connection, or the end of the last answer, until all of the next request came."""
KEEP_ALIVE_SECONDS = 5
"""Seconds that a connection may rest between two requests."""
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class LimitedProtocol(H11Protocol):
    """A connection that is closed when its request does not arrive in time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, and make room for it if there are too many."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(REQUEST_SECONDS, transport.abort)
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = {each: each._deadline for each in self.connections if isinstance(each, LimitedProtocol)}
            longest = min((when.when(), id(each), each) for each, when in waiting.items() if when is not None)[2]
            if longest is self:
                transport.write(TOO_MANY)
                transport.close()
            else:
                longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read what has come, and let the time run until the request is whole."""
        super().data_received(data)
        self._watch_request()

    def on_response_complete(self) -> None:
        """End an answer. The next request, or its beginning, may have come already."""
        super().on_response_complete()
        self._watch_request()

    def _watch_request(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_deadline()
        super().connection_lost(exc)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


OPTIONS: Mapping[str, Any] = {
    "http": LimitedProtocol,
    "ws": "none",
    "h11_max_incomplete_event_size": MAX_HEAD_BYTES,
    "timeout_keep_alive": KEEP_ALIVE_SECONDS,
}
"""Options of `uvicorn.run` for a server that has these limits."""
