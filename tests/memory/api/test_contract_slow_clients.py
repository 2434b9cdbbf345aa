"""Clients that send slowly or not at all: they keep no thread, and their connections end in time."""

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPResponse
from secrets import token_urlsafe

import pytest
from django.utils import timezone

from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import Account, Agent, JobRun
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.services.facts.learn import learn_facts
from memory_project.web.channels import WRITE_PATIENCE
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import fact_draft
from tests.web_server import SharedServers, WebServer, serve

DEADLINE_SECONDS = 2
HALF_A_HEAD = b"GET /health/live HTTP/1.1\r\nHost: 127"
HALF_A_BODY = (
    b"POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
)


@pytest.fixture
def web(transactional_db: None, shared_server: SharedServers) -> WebServer:
    return shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(DEADLINE_SECONDS)})


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


@contextmanager
def connections(web: WebServer, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", web.port))) for _ in range(count)]
        for wire in opened:
            wire.sendall(data)
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("data", [HALF_A_HEAD, HALF_A_BODY + b"\r\n{"], ids=["half a head", "half a body"])
def test_forty_unfinished_requests_delay_no_other_request(shared_server: SharedServers, data: bytes) -> None:
    # far above what is measured, since a busy machine is slow
    patience = 30
    web = shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(patience)})

    with connections(web, 40, data):
        begun = time.monotonic()
        live = web.request("GET", "/health/live")

        assert live.status == 200
        assert time.monotonic() - begun < patience


@pytest.mark.slow
def test_a_head_that_drips_is_refused_when_its_time_is_over(web: WebServer) -> None:
    with connections(web, 1, b"GET /health/live HTTP/1.1\r\n") as [wire]:
        wire.settimeout(0.2)
        begun, answer = time.monotonic(), b""
        while not answer and time.monotonic() < begun + DEADLINE_SECONDS + PATIENCE_SECONDS:
            with suppress(TimeoutError):
                answer = wire.recv(65_536)
            if not answer:
                # it may have answered and closed meanwhile
                with suppress(ConnectionError):
                    wire.sendall(b"X-Drip: 1\r\n")

    assert answer.startswith(b"HTTP/1.0 408 ")


@pytest.mark.slow
def test_a_connection_that_never_sends_is_closed(web: WebServer) -> None:
    with connections(web, 1, b"") as [wire]:
        wire.settimeout(PATIENCE_SECONDS)

        assert wire.recv(1) == b""


@pytest.mark.slow
def test_an_address_has_a_limited_number_of_connections(transactional_db: None) -> None:
    with serve({"MEMORY_CONNECTIONS_PER_ADDRESS": "5"}) as server:
        with connections(server, 5, b"GET "), suppress(ConnectionError):
            # refused at once, or reset where the refusal was not read yet
            sixth = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS)
            with closing(sixth):
                assert sixth.recv(1) == b""

        # the server notices the end of the others a moment later
        deadline, live = time.monotonic() + PATIENCE_SECONDS, None
        while live is None and time.monotonic() < deadline:
            with suppress(ConnectionError):
                live = server.request("GET", "/health/live")

    assert live is not None
    assert live.status == 200


@pytest.mark.slow
def test_a_body_that_stalls_is_refused_after_the_timeout(web: WebServer, key: str) -> None:
    head = HALF_A_BODY + f"Authorization: Bearer {key}\r\n\r\n".encode()

    with connections(web, 1, head + b'{"agent_id": "planner"}') as [wire]:
        wire.settimeout(PATIENCE_SECONDS)
        answer = wire.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert not Agent.objects.exists()


@contextmanager
def archive_in_small_parts(shared_server: SharedServers, *, patience: float) -> Iterator[HTTPResponse]:
    """Yield an answer of megabytes to a client that has room for little of it.

    `patience`: seconds that it may take nothing of it; in all it has ten times that, unless it reads steadily.
    """
    web = shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(patience)})
    account = Account.objects.create(name="workshop")
    key = issue_key(account, scopes=READ_WRITE_OPERATE).secret
    owner = Owner(account_id=account.id, agent_id="planner")
    # nothing that a zip could make shorter
    learn_facts(owner, [fact_draft(token_urlsafe(7_000)) for _ in range(600)], embedded=NOTHING, now=NOW)
    assert shared_server({}).request("POST", "/api/v1/exports", key=key, body=b"{}").status == 202
    run_at_once(JOBS["transfer"], JobRun(account=account, job="transfer"), clock=timezone.now)
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        wire.settimeout(PATIENCE_SECONDS)
        wire.connect(("127.0.0.1", web.port))
        request = f"GET /api/v1/export HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n"
        wire.sendall(request.encode())
        answer = HTTPResponse(wire)
        answer.begin()
        assert answer.status == 200
        yield answer


@pytest.mark.slow
def test_an_archive_that_is_read_steadily_is_not_cut(transactional_db: None, shared_server: SharedServers) -> None:
    patience = 3
    with archive_in_small_parts(shared_server, patience=patience) as answer:
        begun, length, read = time.monotonic(), int(answer.headers["Content-Length"]), 0
        while part := answer.read(length // 100):
            read += len(part)
            time.sleep(0.4)

    assert time.monotonic() - begun > 1.2 * WRITE_PATIENCE * patience
    assert read == length


@pytest.mark.slow
def test_an_archive_that_is_read_too_slowly_is_cut(transactional_db: None, shared_server: SharedServers) -> None:
    with archive_in_small_parts(shared_server, patience=0.4) as answer:
        begun, length, read = time.monotonic(), int(answer.headers["Content-Length"]), 0
        with suppress(ConnectionError):
            while part := answer.read(16_384):
                read += len(part)
                assert time.monotonic() < begun + 5 * PATIENCE_SECONDS
                time.sleep(0.2)

    assert read < length


@pytest.mark.slow
def test_a_keep_alive_connection_may_idle_longer_than_the_request_timeout(web: WebServer) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE_SECONDS)
    with closing(wire):
        assert ask_live(wire) == 200
        first_socket = wire.sock
        # resting is what this is about
        time.sleep(DEADLINE_SECONDS + 1.5)
        assert ask_live(wire) == 200
        assert wire.sock is first_socket


def ask_live(wire: http.client.HTTPConnection) -> int:
    wire.request("GET", "/health/live")
    answer = wire.getresponse()
    answer.read()
    return answer.status
