"""Stores that hang: they accept every request and answer none. No client waits long."""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.valves import Valve
from tests.web_server import Answer, WebServer, database_url, serve, until

SOCKET_OF_POSTGRESQL = ".s.PGSQL.5432"

# bounds in these tests are far above what is measured, since a busy machine is slow; what hangs takes longer
REDIS_SECONDS = 20
"""Timeout of the server's requests to Redis."""
CLIENTS = 16
CHECK_SECONDS = 15
"""For a health check, and the figures of a store."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hanging-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def postgresql(transactional_db: None, folder: Path) -> Iterator[Valve]:
    real = Path(unquote(urlsplit(database_url()).query.removeprefix("host=")))
    valve = Valve(folder / SOCKET_OF_POSTGRESQL, real / SOCKET_OF_POSTGRESQL)
    yield valve
    valve.remove()


@pytest.fixture
def valkey(folder: Path) -> Iterator[Valve]:
    valve = Valve(folder / "valkey.sock", Path(unquote(urlsplit(os.environ["REDIS_URL"]).path)))
    yield valve
    valve.remove()


@pytest.fixture
def web(postgresql: Valve, valkey: Valve, folder: Path) -> Iterator[WebServer]:
    redis_url = f"unix://{folder}/valkey.sock?{urlsplit(os.environ['REDIS_URL']).query}"
    environ = {"DATABASE_URL": database_url(sockets=folder), "REDIS_URL": redis_url}
    with serve(environ | {"REDIS_TIMEOUT_SECONDS": str(REDIS_SECONDS)}) as server:
        assert until(lambda: server.request("GET", "/health/ready"), 200).status == 200
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def timed(ask: Callable[[], Answer]) -> tuple[Answer, float]:
    begun = time.monotonic()
    return ask(), time.monotonic() - begun


@pytest.mark.slow
def test_a_hanging_redis_delays_only_the_first_request(web: WebServer, key: str, valkey: Valve) -> None:
    def ask() -> Answer:
        return web.request("GET", "/api/v1/working-memory/c", key=key)

    assert ask().status == 200

    with valkey.closed():
        first, first_seconds = timed(ask)
        others = [timed(ask) for _ in range(3)]

    assert [answer.status for answer, _seconds in [(first, 0), *others]] == [503] * 4
    assert json.loads(first.body)["code"] == "redis_unavailable"
    assert first_seconds < 2 * REDIS_SECONDS - 0.1
    assert min(seconds for _answer, seconds in others) < REDIS_SECONDS - 1
    assert until(ask, 200).status == 200


@pytest.mark.slow
def test_the_readiness_check_does_not_wait_for_a_hanging_redis(web: WebServer, valkey: Valve) -> None:
    with valkey.closed():
        ready, seconds = timed(lambda: web.request("GET", "/health/ready"))

    assert (ready.status, json.loads(ready.body)["checks"]["postgresql"]) == (503, "ok")
    assert json.loads(ready.body)["checks"]["redis"] != "ok"
    assert seconds < CHECK_SECONDS


@pytest.mark.slow
def test_the_readiness_check_does_not_wait_for_a_hanging_postgresql(web: WebServer, postgresql: Valve) -> None:
    with postgresql.closed():
        # more often than there are threads: none of them may stay behind
        answers = [timed(lambda: web.request("GET", "/health/ready")) for _ in range(6)]
        live, live_seconds = timed(lambda: web.request("GET", "/health/live"))

    for ready, seconds in answers:
        checks = json.loads(ready.body)["checks"]
        assert (ready.status, checks["postgresql"] == "ok", checks["redis"]) == (503, False, "ok")
        assert seconds < CHECK_SECONDS
    assert live.status == 200
    assert live_seconds < 10
    assert until(lambda: web.request("GET", "/health/ready"), 200).status == 200


@pytest.mark.slow
def test_requests_to_a_hanging_postgresql_fail_in_time_and_leave_health_alone(
    web: WebServer, key: str, postgresql: Valve
) -> None:
    def ask() -> Answer:
        return web.request("GET", "/api/v1/agents", key=key)

    assert ask().status == 200

    with postgresql.closed(), ThreadPoolExecutor(CLIENTS) as clients:
        asked = [clients.submit(timed, ask) for _ in range(CLIENTS)]
        live, live_seconds = timed(lambda: web.request("GET", "/health/live", port=web.health_port))
        answers = [each.result() for each in asked]
        again, again_seconds = timed(ask)

    assert {answer.status for answer, _seconds in answers} == {503}
    assert max(seconds for _answer, seconds in answers) < 30
    assert (again.status, json.loads(again.body)["code"]) == (503, "postgresql_unavailable")
    assert again_seconds < 30
    assert live.status == 200
    assert live_seconds < 10
    assert until(ask, 200).status == 200


@pytest.mark.slow
def test_metrics_do_not_wait_for_a_hanging_postgresql(web: WebServer, postgresql: Valve) -> None:
    with postgresql.closed():
        figures, seconds = timed(lambda: web.request("GET", "/metrics"))

    assert figures.status == 200
    assert b'memory_store_up{store="postgresql"} 0.0' in figures.body
    assert b'memory_store_up{store="redis"} 1.0' in figures.body
    assert seconds < CHECK_SECONDS
