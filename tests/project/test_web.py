"""The web server: its processes, its two listeners, and how it stops."""

import http.client
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import pytest
from django.db import connection, transaction
from waitress.adjustments import Adjustments

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project.supervisor.restarts import Restarts
from memory_project.web.channels import RequestParser, describe_error
from memory_project.web.worker import lane_of
from tests.concurrency import PATIENCE_SECONDS, wait_until, wait_until_lock_is_awaited
from tests.web_server import Answer, WebServer, database_url, serve, until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def server(transactional_db: None) -> Iterator[WebServer]:
    with serve({"MEMORY_WEB_WORKERS": "2"}) as server:
        yield server


def children_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)


def test_health_is_served_on_a_listener_of_its_own_and_nothing_else_is(server: WebServer) -> None:
    paths = ("/health/live", "/health/ready", "/metrics", "/api/schema", "/admin/login/")
    # probes ask by address, whatever hosts are allowed
    asked = {path: server.request("GET", path, port=server.health_port, headers={"Host": "10.1.2.3"}) for path in paths}

    assert [asked[path].status for path in paths] == [200, 200, 200, 404, 404]
    assert server.request("GET", "/health/live").status == 200


@pytest.mark.parametrize("path", ["/health/live", "/api/schema", "/api/v1/nothing", "/static/admin/css/base.css"])
def test_an_answer_to_head_has_no_body_that_the_next_answer_would_begin_with(server: WebServer, path: str) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    wire.request("GET", path)
    whole = wire.getresponse()
    length = len(whole.read())

    wire.request("HEAD", path)
    head = wire.getresponse()
    assert (head.status, head.read()) == (whole.status, b"")
    assert head.headers["Content-Length"] in {None, str(length)}

    wire.request("GET", path)
    again = wire.getresponse()
    assert (again.status, len(again.read())) == (whole.status, length)
    wire.close()


def test_a_killed_process_is_replaced(server: WebServer) -> None:
    assert server.request("GET", "/health/live").status == 200
    before = children_of(server.pid)

    for pid in before:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (len(children_of(server.pid) - before) < 2) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert len(children_of(server.pid) - before) == 2
    assert server.request("GET", "/health/live").status == 200


def test_processes_end_with_a_killed_main_process(server: WebServer) -> None:
    until(lambda: server.request("GET", "/health/live"), 200)
    processes = children_of(server.pid)

    os.kill(server.pid, signal.SIGKILL)

    for pid in processes:
        wait_for_end(pid)
    assert [pid for pid in processes if is_running(pid)] == []


def test_an_idle_server_stops_quickly_though_connections_are_open(server: WebServer) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", server.port)
    wire.request("GET", "/health/live")
    wire.getresponse().read()
    begun = time.monotonic()

    os.kill(server.pid, signal.SIGTERM)
    wait_for_end(server.pid)

    wire.close()
    assert not is_running(server.pid)
    # without waiting for MEMORY_STOP_SECONDS, 30 seconds
    assert time.monotonic() - begun < 25


def test_a_stopping_server_is_not_ready_and_answers_what_is_in_flight(transactional_db: None) -> None:
    with serve({"MEMORY_DRAIN_SECONDS": "15"}) as server:
        assert until(lambda: server.request("GET", "/health/ready"), 200).status == 200
        # the first request loads the whole API
        assert server.request("GET", "/api/v1/agents").status == 401
        statuses: list[int] = []

        def keep_asking() -> None:
            with suppress(OSError, http.client.HTTPException):
                while True:
                    statuses.append(server.request("GET", "/api/v1/agents").status)

        asking = threading.Thread(target=keep_asking)
        asking.start()
        wait_until(lambda: bool(statuses))
        os.kill(server.pid, signal.SIGTERM)
        ready = until(lambda: server.request("GET", "/health/ready", port=server.health_port), 503)
        wait_for_end(server.pid)
        asking.join(PATIENCE_SECONDS)

    assert (ready.status, ready.body) == (503, b'{"status": "stopping", "checks": {}}')
    assert set(statuses) == {401}


@pytest.mark.django_db(transaction=True)
def test_a_request_in_flight_is_answered_by_a_stopping_server(account: Account) -> None:
    key = issue_key(account, scopes=READ_WRITE_OPERATE).secret
    # without a drain the listener closes at once
    with serve({"DATABASE_URL": database_url(), "MEMORY_LOCK_TIMEOUT_SECONDS": "60"}) as server:

        def ask() -> Answer:
            return server.request("GET", "/api/v1/agents", key=key)

        assert until(ask, 200).status == 200
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(ask().status))
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE agents IN ACCESS EXCLUSIVE MODE")
            asking.start()
            wait_until_lock_is_awaited()
            os.kill(server.pid, signal.SIGTERM)
        asking.join(PATIENCE_SECONDS)

    assert answers == [200]


@pytest.mark.parametrize(
    ("path", "lane"),
    [
        ("/health/live", "/health/live"),
        ("/metrics", "/metrics"),
        ("/api/schema", "documents"),
        ("/admin/login/", "documents"),
        ("/api/v1/agents", "service"),
        ("", "service"),
    ],
)
def test_each_path_has_its_lane(path: str, lane: str) -> None:
    assert lane_of(path) == lane


def test_pauses_before_restarts_grow_to_a_cap_and_never_end() -> None:
    restarts = Restarts()

    assert [restarts.wait_seconds(1) for _ in range(8)] == [0.5, 1, 2, 4, 8, 10, 10, 10]
    assert restarts.wait_seconds(3_600) == 0
    assert restarts.wait_seconds(1) == 0.5


@pytest.mark.parametrize("beginning", [b"", b"0\r\nX-Sum: "], ids=["size of a chunk", "trailer"])
def test_a_line_between_chunks_is_bounded(beginning: bytes) -> None:
    parser = RequestParser(Adjustments())
    parser.received(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + beginning)

    parts = list(takewhile(lambda _: not parser.completed, (parser.received(b"1" * 8_192) for _ in range(100))))

    assert len(parts) < 10
    assert describe_error(parser.error).status == 400
