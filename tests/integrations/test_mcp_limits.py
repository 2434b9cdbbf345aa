"""Limits of the MCP server's listener, with real connections: unfinished requests, long heads, many connections."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from agent_memory_integrations.mcp import limits
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tests.concurrency import PATIENCE_SECONDS

SECONDS = 1.0
WHOLE = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(body)(scope, receive, send)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server with a second for each request."""
    monkeypatch.setattr(limits, "REQUEST_SECONDS", SECONDS)
    server = uvicorn.Server(uvicorn.Config(echo, host="127.0.0.1", port=0, lifespan="off", **limits.OPTIONS))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield int(server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    thread.join(PATIENCE_SECONDS)


def connect(port: int, data: bytes) -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
    wire.sendall(data)
    return wire


def read_answer(wire: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"hi"):
        received = wire.recv(65_536)
        assert received, "the connection was closed"
        answer += received
    return answer


def drip(wire: socket.socket) -> None:
    begun = time.monotonic()
    wire.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n")
    while time.monotonic() < begun + PATIENCE_SECONDS:
        wire.sendall(b"X-Drip: 1\r\n")
        time.sleep(0.1)


def is_closed(wire: socket.socket) -> bool:
    try:
        return wire.recv(65_536) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "data", [b"", b"GET / HTTP/1.1\r\nHost", WHOLE[:-1]], ids=["nothing", "half a head", "half a body"]
)
def test_a_request_that_does_not_arrive_is_closed(port: int, data: bytes) -> None:
    begun = time.monotonic()

    with connect(port, data) as wire:
        assert is_closed(wire)

    assert SECONDS <= time.monotonic() - begun < PATIENCE_SECONDS


def test_a_head_that_drips_is_closed_on_a_kept_connection_too(port: int) -> None:
    with connect(port, WHOLE) as wire:
        read_answer(wire)
        with pytest.raises(ConnectionError):
            drip(wire)


def test_a_long_head_is_refused(port: int) -> None:
    with connect(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 3 * limits.MAX_HEAD_BYTES) as wire:
        answer = wire.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_connection_may_be_used_again_and_again(port: int) -> None:
    with connect(port, WHOLE) as wire:
        for _ in range(4):
            read_answer(wire)
            # longer in all than one request may take
            time.sleep(SECONDS / 2)
            wire.sendall(WHOLE)


def test_connections_beyond_the_limit_end_those_that_wait_longest(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(limits, "REQUEST_SECONDS", PATIENCE_SECONDS)

    with ExitStack() as stack:
        first, *_ = [stack.enter_context(connect(port, b"GET ")) for _ in range(3)]
        with connect(port, WHOLE) as fourth:
            read_answer(fourth)
        assert is_closed(first)


def test_a_resting_connection_makes_room_for_a_new_one(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(limits, "REQUEST_SECONDS", PATIENCE_SECONDS)

    with connect(port, WHOLE) as first, connect(port, WHOLE) as second:
        read_answer(first)
        read_answer(second)
        with connect(port, WHOLE) as third:
            assert read_answer(third).startswith(b"HTTP/1.1 200 ")
        assert is_closed(first)


def test_a_request_that_began_with_the_former_one_has_to_arrive_too(port: int) -> None:
    with connect(port, WHOLE + WHOLE[:-1]) as wire:
        read_answer(wire)
        assert is_closed(wire)
