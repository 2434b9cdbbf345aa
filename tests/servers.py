"""A pytest plugin: one PostgreSQL and one Valkey per run, up before the settings load and gone with the run.

Servers that the environment names are never used: a test run may not touch anybody's data.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_urlsafe

import pytest
from cryptography.fernet import Fernet

from memory_project.embedded.locks import is_locked
from memory_project.embedded.paths import PROGRAM_COPIES, SYSTEM_DATA, ServerPaths
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.programs import programs_for
from memory_project.embedded.redis import ValkeyServer, broker_url, store_url
from memory_project.embedded.users import user_for
from tests.template import being_made, wait_until_made

SOCKET_VARIABLE = "MEMORY_TEST_VALKEY_SOCKET"
PARTITIONS_VARIABLE = "MEMORY_VECTOR_PARTITIONS"
PREFIX = "agent-memory-test-"
MODELS = "models"
"""The folder of graphs within the data."""
# one whose servers are only about to start
YOUNG_SECONDS = 300


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Start the servers before everything else, above all before pytest-django loads the settings."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        use_databases_of(int(worker.removeprefix("gw")))
        use_data_of(worker)
    elif not (early_config.known_args_namespace.help or early_config.known_args_namespace.version):
        start_servers(early_config)
    return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Wait for the databases' template here, not in the time of the first test that has a database."""
    if not session.config.option.collectonly and any(map(has_database, session.items)):
        # that there is none is an error of that test
        with suppress(AssertionError):
            wait_until_made()


def has_database(item: pytest.Item) -> bool:
    """Return whether the test uses the database, as far as markers and fixtures show."""
    fixtures = {"db", "transactional_db", "django_db_setup"}
    return item.get_closest_marker("django_db") is not None or not fixtures.isdisjoint(
        getattr(item, "fixturenames", ())
    )


def start_servers(config: pytest.Config) -> None:
    """Start them and say where they are, in the environment that the workers inherit."""
    with ExitStack() as stack:
        stack.enter_context(servers_in_environment())
        stack.enter_context(being_made())
        config.add_cleanup(stack.pop_all().close)


@contextmanager
def servers_in_environment() -> Iterator[None]:
    """Servers in a folder of their own, named by the environment."""
    sweep_abandoned()
    with ExitStack() as stack:
        place = make_temporary_paths(PREFIX)
        stack.callback(shutil.rmtree, place.base, ignore_errors=True)
        postgres, valkey = PostgresServer(place), ValkeyServer(place)
        for server in (postgres, valkey):
            stack.callback(server.stop)
            server.start()
        data = place.base / "data"
        (data / MODELS).mkdir(parents=True)
        os.environ |= {
            "DATABASE_URL": postgres.url(),
            "MEMORY_DATA_DIR": str(data),
            "MEMORY_SECRET_KEY": token_urlsafe(32),
            "MEMORY_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
            "MEMORY_TOMBSTONE_KEY": token_urlsafe(32),
            SOCKET_VARIABLE: str(valkey.socket()),
            # fewer than by default, so that databases and indexes over all vectors are made sooner
            PARTITIONS_VARIABLE: os.environ.get(PARTITIONS_VARIABLE, "8"),
        }
        use_databases_of(0)
        yield


def make_temporary_paths(prefix: str) -> ServerPaths:
    """Return the paths in a new short folder, for servers that end with the process that starts them."""
    # not TMPDIR, which may be too long for a socket
    base = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    user = user_for(base / "postgres")
    for folder in (base / "log", base / "s"):
        folder.mkdir(mode=0o700)
    for folder in (base, base / "s"):
        user.own(folder)
    programs = programs_for(user, copies=SYSTEM_DATA / PROGRAM_COPIES)
    return ServerPaths(base=base, sockets=base / "s", user=user, programs=programs, dies_with_parent=True)


def sweep_abandoned() -> None:
    """Folders of runs that were killed: their servers ended with them, their files stayed."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        with suppress(OSError):
            is_young = time.time() - folder.stat().st_mtime < YOUNG_SECONDS
            if not is_young and not is_locked(folder / "postgres.lock"):
                shutil.rmtree(folder, ignore_errors=True)


def use_databases_of(worker: int) -> None:
    """PostgreSQL's test databases are apart by pytest-django; Valkey's by number, two to a worker.

    Database 0 belongs to no worker: every connection begins there, whichever it then selects.
    """
    socket = Path(os.environ[SOCKET_VARIABLE])
    os.environ["REDIS_URL"] = store_url(socket, database=2 * worker + 2)
    os.environ["CELERY_BROKER_URL"] = broker_url(socket, database=2 * worker + 3)


def use_data_of(worker: str) -> None:
    """A folder of its own: a server that starts clears away what dead ones counted. The model's graph is everyone's."""
    shared = Path(os.environ["MEMORY_DATA_DIR"])
    own = shared / worker
    own.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        (own / MODELS).symlink_to(shared / MODELS)
    os.environ["MEMORY_DATA_DIR"] = str(own)


def main() -> int:
    """`python -m tests.servers ARGUMENTS`: run `python ARGUMENTS` on servers of its own."""
    with servers_in_environment():
        return subprocess.run([sys.executable, *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
