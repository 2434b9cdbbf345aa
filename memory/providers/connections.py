"""Deadlines, and connections that end within the time limit of a request, whatever the server does.

The timeouts of HTTP clients limit each wait, so that a server that sends a line of headers now and then is never late.
Here every wait of a request (for the connection, TLS, headers and body) lasts at most as long as the rest of the
request's time. Only the look-up of the host's name has the timeout of the system.
"""

import math
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore2
import httpx2

from memory.errors import ProviderTooSlow

WRITTEN_AT_ONCE = 16_384
"""Bytes that are written at once. The time is checked before each write."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline in the time of the monotonic clock. The default means never."""

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> "Deadline":
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    def remaining_seconds(self, *, at_most: float) -> float:
        """Return the seconds that remain. Raises ProviderTooSlow when nothing remains."""
        remaining = self.left_seconds()
        if remaining <= 0:
            raise ProviderTooSlow("the deadline has passed")
        return min(remaining, at_most)

    def left_seconds(self) -> float:
        """Return the seconds left: negative after the deadline, infinite without one."""
        return self.at - time.monotonic()


NEVER = Deadline()
_deadline: ContextVar[Deadline] = ContextVar("deadline", default=NEVER)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the time of the one request made inside, in this thread, by a client that `keep_time` prepared."""
    token = _deadline.set(Deadline.after(seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the certificate authorities that every client of this process trusts.

    Read only once: reading them takes longer than many a request.
    """
    return httpx2.create_ssl_context()


def keep_time(client: httpx2.Client) -> httpx2.Client:
    """Return the client prepared so that its requests time out at their `time_limit`, also through proxies."""
    # a transport of one's own would take the proxies of the environment away, and none can be given a backend
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx2.HTTPTransport):
            pool = transport._pool
            pool._network_backend = TimedBackend(pool._network_backend)
    return client


def seconds_left(timeout: float | None, late: type[httpcore2.TimeoutException]) -> float | None:
    """Return the client's timeout, or the time left if that is less. Raises the client's exception if none is left."""
    left = _deadline.get().left_seconds()
    if left <= 0:
        raise late("the time of the request is over")
    if left == math.inf:
        return timeout
    return left if timeout is None else min(left, timeout)


class TimedStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, seconds_left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITTEN_AT_ONCE):
            left = seconds_left(timeout, httpcore2.WriteTimeout)
            self._stream.write(buffer[start : start + WRITTEN_AT_ONCE], left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = seconds_left(timeout, httpcore2.ConnectTimeout)
        return TimedStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class TimedBackend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        left = seconds_left(timeout, httpcore2.ConnectTimeout)
        return TimedStream(self._backend.connect_tcp(host, port, left, local_address, socket_options))
