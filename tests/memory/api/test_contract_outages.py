"""Stores that go down under the running service, and come back without a restart of it."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from django.db import connection

from memory.models import Account
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project import redis
from tests.memory.turns import talk
from tests.web_server import WebServer, database_url, serve, until

# of this process: the servers are those of all tests that run beside it
NAME = f"outage-test-{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A store behind a link of its own. Without the link and with its connections cut, it is down for users of it."""

    link: Path
    socket: Path
    cut: Callable[[], None]

    @contextmanager
    def down(self) -> Iterator[None]:
        self.link.unlink()
        self.cut()
        yield
        self.link.symlink_to(self.socket)


def cut_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [NAME])


def cut_redis() -> None:
    client = redis.client()
    for other in client.client_list():
        if other["name"] == NAME:
            client.client_kill_filter(_id=other["id"])


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="outage-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def postgresql(transactional_db: None, folder: Path) -> Store:
    socket = Path(unquote(urlsplit(database_url()).query.removeprefix("host="))) / ".s.PGSQL.5432"
    link = folder / ".s.PGSQL.5432"
    link.symlink_to(socket)
    return Store(link=link, socket=socket, cut=cut_postgresql)


@pytest.fixture
def valkey(folder: Path) -> Store:
    socket = Path(unquote(urlsplit(os.environ["REDIS_URL"]).path))
    link = folder / "valkey.sock"
    link.symlink_to(socket)
    return Store(link=link, socket=socket, cut=cut_redis)


@pytest.fixture
def web(postgresql: Store, valkey: Store, folder: Path) -> Iterator[WebServer]:
    database = f"{database_url(sockets=folder)}&application_name={NAME}"
    query = urlsplit(os.environ["REDIS_URL"]).query
    with serve({"DATABASE_URL": database, "REDIS_URL": f"unix://{valkey.link}?{query}&client_name={NAME}"}) as server:
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


@pytest.mark.slow
def test_requests_fail_with_503_while_postgresql_is_down_and_succeed_again_afterwards(
    web: WebServer, key: str, postgresql: Store
) -> None:
    assert until(lambda: web.request("GET", "/health/ready"), 200).status == 200

    with postgresql.down():
        refused = until(lambda: web.request("GET", "/api/v1/agents", key=key), 503)
        ready = web.request("GET", "/health/ready")
        live = web.request("GET", "/health/live")

    assert json.loads(refused.body)["code"] == "postgresql_unavailable"
    assert (ready.status, live.status) == (503, 200)
    assert json.loads(ready.body)["checks"]["postgresql"] != "ok"
    assert json.loads(ready.body)["checks"]["redis"] == "ok"
    assert until(lambda: web.request("GET", "/api/v1/agents", key=key), 200).status == 200


@pytest.mark.slow
def test_without_redis_messages_are_read_from_postgresql_and_thoughts_are_a_503(
    web: WebServer, key: str, valkey: Store
) -> None:
    talk(Owner(account_id=Account.objects.get().id), 3)
    assert until(lambda: web.request("GET", "/health/ready"), 200).status == 200

    with valkey.down():
        messages = web.request("GET", "/api/v1/conversations/c1/messages", key=key)
        thoughts = web.request("GET", "/api/v1/conversations/c1/thoughts", key=key)

    assert len(json.loads(messages.body)["messages"]) == 3
    assert (thoughts.status, json.loads(thoughts.body)["code"]) == (503, "redis_unavailable")


def test_a_redis_outage_is_reported_until_redis_is_back(web: WebServer, key: str, valkey: Store) -> None:
    assert until(lambda: web.request("GET", "/health/ready"), 200).status == 200

    with valkey.down():
        agents = web.request("GET", "/api/v1/agents", key=key)
        ready = web.request("GET", "/health/ready")

    assert agents.status == 200
    assert "ratelimit-limit" not in agents.headers
    assert (ready.status, json.loads(ready.body)["checks"]["postgresql"]) == (503, "ok")
    assert json.loads(ready.body)["checks"]["redis"] != "ok"
    assert until(lambda: web.request("GET", "/health/ready"), 200).status == 200
