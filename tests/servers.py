"""A pytest plugin: one PostgreSQL and one Valkey per test run, made before the settings load and gone with the run.

Servers that the environment names are never used: a test run may not touch anybody's data.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_urlsafe

import pytest

from memory_project.embedded.places import Place, temporary_place
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer, broker_url, store_url

SOCKET_VARIABLE = "MEMORY_TEST_VALKEY_SOCKET"


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Before everything else, pytest-django's loading of the settings above all."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        use_databases_of(int(worker.removeprefix("gw")))
    elif not (early_config.known_args_namespace.help or early_config.known_args_namespace.version):
        start_servers(early_config)
    return (yield)


def start_servers(config: pytest.Config) -> None:
    """Start them and say where they are, in the environment that the workers inherit."""
    with ExitStack() as stack:
        place = temporary_place("agent-memory-test-")
        stack.callback(shutil.rmtree, place.base, ignore_errors=True)
        postgres, valkey = PostgresServer(place), ValkeyServer(place)
        for server in (postgres, valkey):
            stack.callback(server.stop)
            server.start()
        config.add_cleanup(stack.pop_all().close)
    set_environment(place, postgres, valkey)


def set_environment(place: Place, postgres: PostgresServer, valkey: ValkeyServer) -> None:
    data = place.base / "data"
    data.mkdir()
    os.environ |= {
        "DATABASE_URL": postgres.url(),
        "MEMORY_DATA_DIR": str(data),
        "MEMORY_SECRET_KEY": token_urlsafe(32),
        SOCKET_VARIABLE: str(valkey.socket()),
    }
    use_databases_of(0)


def use_databases_of(worker: int) -> None:
    """PostgreSQL's test databases are apart by pytest-django; Valkey's by number, two to a worker."""
    socket = Path(os.environ[SOCKET_VARIABLE])
    os.environ["REDIS_URL"] = store_url(socket, database=2 * worker)
    os.environ["CELERY_BROKER_URL"] = broker_url(socket, database=2 * worker + 1)
