"""A process of the web server: one thread for all of its sockets, and the threads of lanes for whole requests."""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.task import ThreadedTaskDispatcher

from memory_project.http.paths import WSGIApplication
from memory_project.stopping import STOPPING
from memory_project.web.channels import ConnectionServer

CONNECTION_LIMIT = 2_000
BACKLOG = 2_048
UNFINISHED_SECONDS = 1.0
"""Seconds that a request whose beginning has arrived may still take to arrive when the server stops."""
TICK_SECONDS = 0.5
KIBIBYTE = 1_024

LIVE, READY, METRICS = "/health/live", "/health/ready", "/metrics"
HEALTH_PATHS = frozenset({LIVE, READY, METRICS})
DOCUMENTS = ("/api/schema", "/api/docs", "/static/", "/admin")
"""Beginnings of the paths of pages and documents: many people who load them at once leave the API its threads."""
DOCUMENT_THREADS = 2
HEALTH_THREADS: Mapping[str, int] = {LIVE: 1, READY: 2, METRICS: 1}


class Lanes:
    """Gives whole requests to the threads of their lane, by path, so that none waits for another lane's requests.

    waitress calls `add_task`.
    """

    def __init__(self, *, threads: int) -> None:
        counts = {**HEALTH_THREADS, "documents": DOCUMENT_THREADS, "service": threads}
        self._lanes: dict[str, Any] = {name: ThreadedTaskDispatcher() for name in counts}
        for name, lane in self._lanes.items():
            lane.set_thread_count(counts[name])

    def add_task(self, channel: Any) -> None:
        """Queue the first request of a connection. One that was refused while it was read may have no path."""
        self._lanes[lane_of(getattr(channel.requests[0], "path", ""))].add_task(channel)


def lane_of(path: str) -> str:
    """Return the name of the lane of a path."""
    if path in HEALTH_PATHS:
        return path
    return "documents" if path.startswith(DOCUMENTS) else "service"


class WebWorker:
    """Serves both sockets until it is asked to stop, and then until what is in flight is answered."""

    def __init__(self, application: WSGIApplication, sockets: Sequence[socket.socket]) -> None:
        self._stops_at: float | None = None
        self._map: dict[int, Any] = {}
        lanes = Lanes(threads=settings.WEB_THREADS)
        self._server = make_server(application, sockets[0], lanes=lanes, map=self._map)
        self._server.trusted_addresses = frozenset(settings.TRUSTED_PROXIES)
        for health in sockets[1:]:
            # sockets, a map and a thread of its own: nothing that happens to the service delays it
            server = make_server(only_health(application), health, lanes=lanes, map={})
            threading.Thread(target=server.run, name="health", daemon=True).start()

    def handle_signals(self) -> None:
        """Stop at SIGTERM and SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)

    def run(self, beat: Callable[[], None]) -> None:
        """Serve until asked to stop. `beat` is called at least once a second."""
        while not (STOPPING.is_set() and self._has_finished()):
            beat()
            wasyncore.poll2(TICK_SECONDS, self._map)

    def _ask_to_stop(self, *_: Any) -> None:
        STOPPING.set()
        self._server.pull_trigger()

    def _has_finished(self) -> bool:
        """Close what need not be waited for, and return True when nothing else is left, or the time is over."""
        now = time.monotonic()
        if self._stops_at is None:
            self._stops_at = now + settings.DRAIN_SECONDS
        if now < self._stops_at:
            return False
        if self._server.accepting:
            self._server.accepting = False
            # the listening socket of this process, not the connections
            wasyncore.dispatcher.close(self._server)
        for channel in [*self._server.active_channels.values()]:
            is_unfinished = channel.request is not None and now < self._stops_at + UNFINISHED_SECONDS
            if not channel.is_in_flight() and not is_unfinished:
                channel.handle_close()
        return not self._server.active_channels or now > self._stops_at + settings.STOP_SECONDS


def make_server(
    application: WSGIApplication,
    listener: socket.socket,
    *,
    lanes: Lanes,
    map: dict[int, Any],  # noqa: A002
) -> Any:
    """Return the server of a listening socket. It calls the application in threads of `lanes`."""
    own = listener.dup()
    own.setblocking(False)
    adjustments: Any = Adjustments(
        sockets=[own],
        ident="",
        connection_limit=CONNECTION_LIMIT,
        # it listens again
        backlog=BACKLOG,
        cleanup_interval=1,
        max_request_header_size=64 * KIBIBYTE,
        # `channels` has limits by sender
        max_request_body_size=2**62,
        # in files beyond that; no thread ever waits for a client that reads slowly
        inbuf_overflow=64 * KIBIBYTE,
        outbuf_overflow=128 * KIBIBYTE,
        outbuf_high_watermark=2**40,
        asyncore_use_poll=True,
        log_socket_errors=False,
        # `proxies` believes more than one of them
        clear_untrusted_proxy_headers=False,
    )
    sockinfo = (own.family, own.type, own.proto, own.getsockname())
    return ConnectionServer(
        leave_out_bodies(application),
        map=map,
        _sock=own,
        dispatcher=lanes,
        adj=adjustments,
        sockinfo=sockinfo,
        bind_socket=False,
    )


def leave_out_bodies(application: WSGIApplication) -> WSGIApplication:
    """Wrap the application so that answers to HEAD have no body, which Django and waitress leave to each other.

    A body would be read as the beginning of the next answer on the connection.
    """

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer: Any = application(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return answer  # type: ignore[no-any-return]
        if hasattr(answer, "close"):
            answer.close()
        return []

    return serve


def only_health(application: WSGIApplication) -> WSGIApplication:
    """Wrap the application for the listener of health checks, which ask by address: any Host will do."""
    host = next(iter(settings.ALLOWED_HOSTS), "localhost").lstrip(".").replace("*", "localhost")

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] not in HEALTH_PATHS:
            headers: Mapping[str, str] = {"Content-Type": "text/plain", "Content-Length": "0"}
            start_response("404 Not Found", [*headers.items()])
            return []
        return application(environ | {"HTTP_HOST": host}, start_response)

    return serve
