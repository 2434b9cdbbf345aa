"""Connections: limits on what a request may send, how long it may take, and how many connections an address may have.

waitress has the places where these classes go (`channel_class`, `parser_class`, `error_task_class`), and three methods
that are meant to be replaced: `maintenance`, `set_socket_options` and `parse_header`.
"""

import time
from errno import EDQUOT, ENOSPC
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import InternalServerError

from memory_project.http.problems import ProblemDetails, describe_store_error, problem_response
from memory_project.http.streams import is_stream_type

MAX_BODY_BYTES_WITHOUT_KEY = 65_536
"""Largest body of a request that has neither an API key nor a session's cookie: a log-in form fits."""
KEEP_ALIVE_SECONDS = 65
"""Seconds that a connection may rest between two requests. Load balancers rest for up to 60."""
MAX_CHUNK_LINE_BYTES = 65_536
WRITE_PATIENCE = 10
"""A client has so many times CLIENT_TIMEOUT_SECONDS to read an answer, and longer as far as it reads steadily."""
STEADY_BYTES_PER_SECOND = 16_384
"""Rate from which on a client reads an answer steadily, whatever its length. Each such part gives it a second more."""
ROOM_CONNECTIONS = 100
"""When so few connections are left, each new one ends the one that has rested longest."""


class RefusedRequestError(Exception):
    """A request that is refused while it is read. Carries the problem that answers it."""

    def __init__(self, details: ProblemDetails) -> None:
        super().__init__(details.detail)
        self.details = details


class RequestParser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """Reads one request. Refuses ambiguous framing, and bodies that are too large for who sends them."""

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.started_at = time.time()
        self.is_stream = False
        self.is_known = False
        """True once the key of a stream was checked."""
        self._max_body_bytes = 0

    def received(self, data: bytes) -> int:
        """Read a part of the request and return how many of its bytes belong to it."""
        try:
            consumed: int = super().received(data)
        except OSError as err:
            if err.errno not in (ENOSPC, EDQUOT):
                raise
            detail = "The server has no disk space for a body of this length now. Try again later."
            self.refuse(ProblemDetails(status=507, code="no_space", detail=detail))
            return len(data)
        if self.chunked and not self.error and has_long_line(self.body_rcv):
            detail = "The request is malformed: a line between its chunks is too long."
            self.refuse(ProblemDetails(status=400, code="bad_request", detail=detail))
            return len(data)
        length = self.content_length if self.body_rcv is None or not self.chunked else len(self.body_rcv)
        if not self.error and self.headers_finished and length > self._max_body_bytes:
            limit = self._max_body_bytes
            detail = f"The body is too large: it may have at most {limit} bytes."
            facts = {"limit_bytes": limit}
            self.refuse(ProblemDetails(status=413, code="body_too_large", detail=detail, facts=facts))
        if self.error or self.body_rcv is None:
            # a request without a body, or one that is refused, has nothing to continue with
            self.expect_continue = False
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the head. Raises ParsingError for two lengths, which proxies and servers may understand differently."""
        try:
            super().parse_header(header_plus)
        except ValueError as err:
            raise ParsingError("The request line or a header is not valid.") from err
        if self.headers.get("TRANSFER_ENCODING") or (self.chunked and "CONTENT_LENGTH" in self.headers):
            raise ParsingError("Send either Content-Length, or Transfer-Encoding: chunked with HTTP/1.1.")
        has_key = "AUTHORIZATION" in self.headers
        self.is_stream = has_key and is_stream_type(self.headers.get("CONTENT_TYPE", ""))
        if self.is_stream:
            self._max_body_bytes = settings.STREAM_LIMIT_BYTES
        elif has_key or f"{settings.SESSION_COOKIE_NAME}=" in self.headers.get("COOKIE", ""):
            self._max_body_bytes = settings.BODY_LIMIT_BYTES
        else:
            self._max_body_bytes = min(MAX_BODY_BYTES_WITHOUT_KEY, settings.BODY_LIMIT_BYTES)

    def refuse(self, details: ProblemDetails) -> None:
        """End the request with this problem as its answer."""
        self.error = RefusedRequestError(details)
        self.completed = True


def plain_address(address: str) -> str:
    return address.removeprefix("::ffff:")


def has_long_line(receiver: Any) -> bool:
    """Return True if the size of a chunk, or what follows the last one, goes on and on, which waitress allows."""
    return receiver is not None and len(receiver.control_line) + len(receiver.trailer) > MAX_CHUNK_LINE_BYTES


class AnswerTask(WSGITask):  # type: ignore[misc]  # waitress has no types
    """Answers a request by the application."""

    @property
    def has_body(self) -> bool:
        """True unless the answer must have none. One to HEAD without a length would get the end of a chunked body."""
        is_unknown = self.request.command == "HEAD" and self.content_length is None
        return not is_unknown and bool(super().has_body)


class ProblemTask(ErrorTask):  # type: ignore[misc]  # waitress has no types
    """Answers a request that could not be read."""

    def execute(self) -> None:
        """Write the problem and close the connection."""
        response = problem_response(describe_error(self.request.error))
        self.status = f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
        self.response_headers.extend(response.items())
        self.set_close_on_finish()
        self.content_length = len(response.content)
        self.write(response.content)


def describe_error(error: Any) -> ProblemDetails:
    """Return the problem of a refused request, or of an error of waitress's."""
    if isinstance(error, RefusedRequestError):
        return error.details
    if error.code >= 500 and error.code != HTTPStatus.NOT_IMPLEMENTED:
        detail = "The service failed on this request because of a bug. Report the request_id to its operator."
        return ProblemDetails(status=500, code="internal_error", detail=detail)
    return ProblemDetails(status=400, code="bad_request", detail=f"The request is malformed: {error.body}")


class KeyCheck:
    """A task for a thread: read the rest of a stream, which may fill the disk, only if its key is good for anything."""

    def __init__(self, channel: "Channel", request: RequestParser) -> None:
        self._channel = channel
        self._request = request
        self.requests = [request]

    def service(self) -> None:
        """Ask whether the key is usable. Where that cannot be found out, the stream is refused as well."""
        try:
            details = import_string(settings.STREAM_KEY_CHECK)(self._request.headers["AUTHORIZATION"])
            if details is not None:
                self._channel.refuse_unfinished(details)
        except Exception as err:  # noqa: BLE001  nobody but the client waits for this
            found = describe_store_error(err)
            self._channel.refuse_unfinished(found or describe_error(InternalServerError("")))
        finally:
            connections.close_all()
            # the client could not send meanwhile
            self._channel.last_activity = time.time()
            self._channel.is_checking_key = False
            self._channel.server.pull_trigger()


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """One connection."""

    parser_class = RequestParser
    task_class = AnswerTask
    error_task_class = ProblemTask
    request: RequestParser | None
    answered_at = 0.0
    """Time when the last answer was complete. 0: there was none."""
    is_checking_key = False
    taken_bytes = 0
    """Bytes of the current answer that the system has taken for the client."""

    def received(self, data: bytes) -> bool:
        """Read what has arrived. The first part of a stream has its key checked before any more is read."""
        is_read: bool = super().received(data)
        request = self.request
        if request is not None and request.is_stream and not request.is_known:
            request.is_known = self.is_checking_key = True
            self.server.add_task(KeyCheck(self, request))
        return is_read

    def readable(self) -> bool:
        """Return whether to read on."""
        return not self.is_checking_key and bool(super().readable())

    def service(self) -> None:
        """Serve one request, in a thread of its lane."""
        self.taken_bytes = 0
        # before as well: the answer may be out, and judged, before this method goes on
        self.answered_at = time.time()
        super().service()
        self.answered_at = time.time()

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Send what the system takes, and count it."""
        taken: int = super().send(data, do_close)
        self.taken_bytes += taken
        return taken

    def is_resting(self) -> bool:
        """Return True if the client owes no rest of a request, and the server no answer."""
        return self.request is None and not self.is_in_flight()

    def is_in_flight(self) -> bool:
        """Return True while a whole request is served, or its answer is sent."""
        return bool(self.requests or self.total_outbufs_len)

    def end_if_late(self, now: float) -> None:
        """Close the connection, or refuse its request, if the client is out of time."""
        patience = settings.CLIENT_TIMEOUT_SECONDS
        if self.requests:
            return
        if self.total_outbufs_len:
            written_since = self.answered_at or self.creation_time
            in_all = WRITE_PATIENCE * patience + self.taken_bytes / STEADY_BYTES_PER_SECOND
            if now > min(self.last_activity + patience, written_since + in_all):
                self.handle_close()
        elif self.is_checking_key:
            return
        # the thread that checks a key may refuse the request meanwhile
        elif request := self.request:
            if now > patience + (self.last_activity if request.is_stream else request.started_at):
                detail = "The request did not arrive in time. Send it again."
                self.refuse_unfinished(ProblemDetails(status=408, code="request_timeout", detail=detail))
        elif now > self.last_activity + (KEEP_ALIVE_SECONDS if self.answered_at else patience):
            self.handle_close()

    def refuse_unfinished(self, details: ProblemDetails) -> None:
        """Answer a request of which not everything has arrived, and read no more of it."""
        with self.requests_lock:
            if self.request is None:
                return
            self.request.refuse(details)
            self.requests.append(self.request)
            self.request = None
            if len(self.requests) == 1:
                # else the thread that serves the one before goes on with this one
                self.server.add_task(self)


class ConnectionServer(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """Accepts connections, up to a number from each address, and closes those that are late."""

    channel_class = Channel
    trusted_addresses: frozenset[str] = frozenset()

    def maintenance(self, now: float) -> None:
        """Close what is late; waitress calls this once a second."""
        for channel in [*self.active_channels.values()]:
            channel.end_if_late(now)

    def handle_accept(self) -> None:
        """Accept a connection. Where hardly any are left, end the one that has rested longest to make room."""
        longest = None
        if len(self._map) > self.adj.connection_limit - ROOM_CONNECTIONS:
            resting = [channel for channel in self.active_channels.values() if channel.is_resting()]
            if resting:
                longest = min(resting, key=lambda channel: channel.last_activity)
        super().handle_accept()
        if longest is not None:
            # after: the new connection must not take the descriptor of one that this round has yet to look at
            longest.handle_close()

    def fix_addr(self, addr: Any) -> Any:
        """Return the address of a client, an IPv4 one as such, also where a listener of IPv6 accepted it."""
        return (plain_address(addr[0]), *addr[1:])

    def set_socket_options(self, conn: Any) -> None:
        """Refuse a connection of an address that has too many. Raises ConnectionRefusedError."""
        address = plain_address(conn.getpeername()[0])
        if not self.trusted_addresses & {address, "*"}:
            count = sum(channel.addr[0] == address for channel in self.active_channels.values())
            if count >= settings.CONNECTIONS_PER_ADDRESS:
                conn.close()
                raise ConnectionRefusedError("this address has too many connections")
        super().set_socket_options(conn)
