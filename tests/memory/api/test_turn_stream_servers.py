"""HTTP: streams of turns as a real web server receives them."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from memory.models import Account, Conversation, Turn
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.turn_lines import FOR_AGENT, NDJSON, body_of, line
from tests.web_server import SharedServers, WebServer, serve

pytestmark = pytest.mark.django_db


MANY = 15_000


LONG = "so it goes " * 200


PAUSE_SECONDS = 1
"""Seconds that a client may pause in these tests."""


@pytest.fixture
def web(transactional_db: None, empty_redis: None, shared_server: SharedServers) -> WebServer:
    return shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(PAUSE_SECONDS)})


@pytest.fixture
def own_web(transactional_db: None, empty_redis: None) -> Iterator[WebServer]:
    """Start a server of its own, for what is measured of the server itself."""
    with serve({"MEMORY_CLIENT_TIMEOUT_SECONDS": "60"}) as server:
        # the first request loads the whole API
        assert server.request("GET", "/api/v1/agents").status == 401
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def upload(web: WebServer, key: str, body: Any, *, length: int | None, timeout_seconds: int = 60) -> tuple[int, bytes]:
    """Send a body in pieces, with a length or chunked."""
    wire = http.client.HTTPConnection("127.0.0.1", web.port, timeout=timeout_seconds)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": NDJSON}
    headers |= {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)}
    with closing(wire):
        wire.request("POST", f"/api/v1{FOR_AGENT}", body=body, headers=headers, encode_chunked=length is None)
        answer = wire.getresponse()
        return answer.status, answer.read()


class Peak:
    """Maximum memory of a process's children while the block runs, in bytes."""

    def __init__(self, pid: int) -> None:
        self.bytes = 0
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Peak":
        self.bytes = self.first = self._now()
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            self.bytes = max(self.bytes, self._now())

    def _now(self) -> int:
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        return sum(int(Path(f"/proc/{child}/statm").read_text().split()[1]) * 4_096 for child in children)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_chunked", [True, False], ids=["chunked", "of a length"])
def test_a_large_stream_is_stored_in_less_memory_than_its_size(own_web: WebServer, key: str, is_chunked: bool) -> None:
    body = body_of(line(number, content=f"message {number} {LONG}") for number in range(MANY))
    # what a batch takes is taken once
    few = body_of(line(number, content=LONG) for number in range(1_000))
    first = upload(own_web, key, few, length=None, timeout_seconds=240)
    assert first[0] == 201, first[1]

    with Peak(own_web.pid) as peak:
        length = None if is_chunked else len(body)
        # half a minute's work, or far longer while other tests run; the time is not checked
        status, answer = upload(own_web, key, BytesIO(body), length=length, timeout_seconds=500)

    assert status == 201
    assert [each["index"] for each in json.loads(answer)["turns"]] == list(range(1_000, 1_000 + MANY))
    assert Turn.objects.count() == 1_000 + MANY
    assert peak.bytes - peak.first < len(body)


def slowly(pieces: Iterable[bytes], *, pause_seconds: float) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(pause_seconds)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_chunked", [True, False], ids=["chunked", "of a length"])
def test_a_slow_but_steady_stream_is_stored_to_its_end(
    shared_server: SharedServers, empty_redis: None, key: str, is_chunked: bool
) -> None:
    longest_pause = 6
    web = shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(longest_pause)})
    body = body_of([line(0)])
    # far shorter than the longest, since a busy machine sleeps longer than it was asked to
    pieces = slowly((body[at : at + 1] for at in range(len(body))), pause_seconds=0.32)

    begun = time.monotonic()
    status, _answer = upload(web, key, pieces, length=None if is_chunked else len(body))

    assert (status, Turn.objects.count()) == (201, 1)
    assert time.monotonic() - begun > 2 * longest_pause


def begin(web: WebServer, key: str, framing: str, data: bytes) -> socket.socket:
    """Open a connection that has sent so much of a request."""
    head = f"POST /api/v1{FOR_AGENT} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    wire = socket.create_connection(("127.0.0.1", web.port), timeout=20)
    wire.sendall(f"{head}Content-Type: {NDJSON}\r\n{framing}\r\n\r\n".encode() + data)
    return wire


WHOLE_LINES = body_of(map(line, range(3)))


FRAMINGS = pytest.mark.parametrize(
    ("framing", "data"),
    [
        ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(WHOLE_LINES), WHOLE_LINES)),
        ("Content-Length: 1000000", WHOLE_LINES),
    ],
    ids=["chunked", "of a length"],
)


@FRAMINGS
@pytest.mark.django_db(transaction=True)
def test_a_stalled_stream_is_closed_and_stores_nothing(web: WebServer, key: str, framing: str, data: bytes) -> None:
    begun = time.monotonic()

    with begin(web, key, framing, data) as wire:
        answer = wire.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"request_timeout" in answer
    assert time.monotonic() - begun < PAUSE_SECONDS + 5
    assert not Conversation.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_streams_that_are_still_arriving_keep_no_thread(transactional_db: None, empty_redis: None, key: str) -> None:
    """The server of these tests has four threads."""
    with serve({"MEMORY_CLIENT_TIMEOUT_SECONDS": "60"}) as server, ExitStack() as wires:
        for _ in range(8):
            wires.enter_context(begin(server, key, "Transfer-Encoding: chunked", b""))

        status, _answer = upload(server, key, body_of([line(0)]), length=None)

    assert status == 201


@FRAMINGS
@pytest.mark.django_db(transaction=True)
def test_a_stream_with_an_unknown_key_is_refused_before_it_is_read(web: WebServer, framing: str, data: bytes) -> None:
    begun = time.monotonic()

    with begin(web, "nobody", framing, data) as wire:
        answer = wire.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"authentication_failed" in answer
    assert time.monotonic() - begun < PATIENCE_SECONDS


@FRAMINGS
@pytest.mark.django_db(transaction=True)
def test_a_stream_with_a_key_that_only_reads_is_refused_before_it_is_read(
    web: WebServer, framing: str, data: bytes
) -> None:
    secret = issue_key(Account.objects.create(name="readers"), scopes=["read"]).secret

    with begin(web, secret, framing, data) as wire:
        answer = wire.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"missing_scope" in answer


@FRAMINGS
@pytest.mark.django_db(transaction=True)
def test_a_stream_that_ends_midway_stores_nothing(web: WebServer, key: str, framing: str, data: bytes) -> None:
    begin(web, key, framing, data).close()

    # the server is done with it by then
    time.sleep(PAUSE_SECONDS + 1)
    assert web.request("GET", "/health/live").status == 200
    assert not Conversation.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("chunk", [b"zz\r\n", b"5;=\r\nab", b"2\r\nabcd\r\n", b"-1\r\n"], ids=repr)
def test_an_invalid_chunk_is_refused(shared_server: SharedServers, empty_redis: None, key: str, chunk: bytes) -> None:
    # whose clients may pause for long
    web = shared_server({})

    with begin(web, key, "Transfer-Encoding: chunked", chunk) as wire:
        wire.shutdown(socket.SHUT_WR)
        answer = wire.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.django_db(transaction=True)
def test_a_chunked_stream_to_another_resource_is_refused(web: WebServer, key: str) -> None:
    target = "/api/v1/conversations/c1/end"
    headers = {"Content-Type": NDJSON, "Transfer-Encoding": "chunked"}

    answer = web.request("POST", target, key=key, body=b"2\r\n{}\r\n0\r\n\r\n", headers=headers)

    assert answer.status == 415


@pytest.mark.django_db(transaction=True)
def test_a_connection_can_be_reused_after_a_stream(web: WebServer, key: str) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", web.port, timeout=20)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": NDJSON}
    with closing(wire):
        for _ in range(2):
            wire.request("POST", f"/api/v1{FOR_AGENT}", body=iter([body_of([line(0)])]), headers=headers)
            assert json.loads(wire.getresponse().read())["turns"]
            # longer than a pause within a body may be
            time.sleep(PAUSE_SECONDS + 1)

    assert Turn.objects.count() == 2
