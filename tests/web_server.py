"""The real web server in front of this test's database: for what only real HTTP shows."""

import http.client
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from django.db import connection

from memory_project.supervisor.parts import Address, web_part
from tests.concurrency import PATIENCE_SECONDS

PROJECT = Path(__file__).resolve().parent.parent
LISTENING = re.compile(r"(?:Listening|Health) at: http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WebServer:
    """`request` sends the target exactly as given. `health_port` serves health checks only."""

    port: int
    health_port: int
    pid: int

    def request(
        self,
        method: str,
        target: str,
        *,
        key: str = "",
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        port: int = 0,
    ) -> Answer:
        wire = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE_SECONDS)
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        if body is not None:
            sent |= {"Content-Type": "application/json"}
        wire.request(method, target, body=body, headers=sent | (headers or {}))
        got = wire.getresponse()
        answer = Answer(status=got.status, headers={n.lower(): v for n, v in got.getheaders()}, body=got.read())
        wire.close()
        return answer

    def send(self, data: bytes) -> bytes:
        """Send these bytes alone and return the answer. A server that has heard enough may hang up."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS) as wire:
            with suppress(ConnectionError):
                wire.sendall(data)
                wire.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                while received := wire.recv(65_536):
                    answer += received
        return answer


def database_url(*, sockets: Path | None = None) -> str:
    """The URL of the database that this test writes to; with `sockets`, by way of the socket in that folder."""
    name = connection.settings_dict["NAME"]
    url = os.environ["DATABASE_URL"].replace("/memory?", f"/{name}?")
    return url if sockets is None else f"{url.partition('?')[0]}?host={sockets}"


@contextmanager
def serve(environ: dict[str, str] | None = None) -> Generator[WebServer]:
    """Run the web server on a port of its own until the end of the block."""
    part = web_part(Address(host="127.0.0.1", port=0, health_port=0))
    own = {"DATABASE_URL": database_url(), "MEMORY_WEB_WORKERS": "1", "MEMORY_WEB_THREADS": "4"}
    # a model of 100 MB would be loaded at each start, and these tests embed nothing
    own |= {"EMBEDDING_PROVIDER": "tiny", "MEMORY_ALLOW_TINY_EMBEDDINGS": "1"}
    process = subprocess.Popen(
        part.command,
        cwd=PROJECT,
        env=os.environ | own | (environ or {}),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        port, health_port = _ports_from(process.stderr)
        yield WebServer(port=port, health_port=health_port, pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            # its workers end when they see that it is gone
            process.kill()
            process.wait()
            raise
        finally:
            process.stderr.close()


PATIENT = {
    "MEMORY_RECALL_DEADLINE_MS": "60000",
    "REDIS_TIMEOUT_SECONDS": "30",
    "MEMORY_LOCK_TIMEOUT_SECONDS": "30",
    "EMBEDDING_TIMEOUT_SECONDS": "30",
}
"""The machine of a test run is shared, and slow at times. Tests of timeouts start servers of their own."""
SharedServers = Callable[[dict[str, str]], WebServer]


@pytest.fixture(scope="session")
def shared_server(django_db_setup: None) -> Iterator[SharedServers]:
    """A server of this environment, which all tests of the process share: starting one takes seconds.

    A test that measures the server itself, or leaves work behind in it, starts its own.
    """
    started: dict[frozenset[tuple[str, str]], WebServer] = {}
    with ExitStack() as stack:

        def find(environ: dict[str, str]) -> WebServer:
            key = frozenset(environ.items())
            if key not in started:
                server = started[key] = stack.enter_context(serve(PATIENT | environ))
                # the first request loads the whole API, for seconds on a busy machine
                assert server.request("GET", "/api/v1/agents").status == 401
            return started[key]

        yield find


def _ports_from(log: IO[str]) -> list[int]:
    lines: list[str] = []
    for line in log:
        lines.append(line)
        ports = [int(match[1]) for match in map(LISTENING.search, lines) if match]
        if len(ports) == 2:
            # or the pipe would fill up and the server stand still
            threading.Thread(target=_drain, args=[log], daemon=True).start()
            return ports
    raise AssertionError("the web server did not start: " + "".join(lines))


def _drain(log: IO[str]) -> None:
    try:
        for _line in log:
            pass
    except ValueError:  # closed at the end of the test
        return


def until(ask: Callable[[], Answer], status: int) -> Answer:
    """Ask until this status comes, or patience ends."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := ask()).status != status and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer
