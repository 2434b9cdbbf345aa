"""A real streaming replica of the test run's PostgreSQL, for modules that import its fixtures."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest
from django.db import connection, connections

from memory_project.embedded.postgres import MAJOR_VERSION, PostgresServer
from memory_project.embedded.programs import find_postgres_clients
from memory_project.postgresql.replicas import Replica, parse_position, replica_databases, replicas
from tests.concurrency import wait_until
from tests.servers import PREFIX, make_temporary_paths

with_replica = pytest.mark.django_db(transaction=True, databases=["default", "replica_1"])


def find_program() -> str:
    """Return a pg_basebackup of the server's version; skip without one."""
    for program in map(str, find_postgres_clients("pg_basebackup")):
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if f"PostgreSQL) {MAJOR_VERSION}." in told:
            return program
    pytest.skip("There is no pg_basebackup of this version.")


class ReplicaServer:
    """A streaming replica, of which tests pause the replay, and which they stop and start."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    def url(self) -> str:
        folder = quote(str(self.server.socket().parent))
        return f"postgres://memory@/{connection.settings_dict['NAME']}?host={folder}"

    def execute(self, statement: str) -> Any:
        with psycopg.connect(self.url(), autocommit=True) as session:
            found = session.execute(statement.encode())
            return found.fetchone() if found.description else None

    def pause(self) -> None:
        self.execute("SELECT pg_wal_replay_pause()")
        wait_until(lambda: self.execute("SELECT pg_get_wal_replay_pause_state()") == ("paused",))

    def resume(self) -> None:
        self.execute("SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def replica_server(django_db_setup: None) -> Iterator[ReplicaServer]:
    place = make_temporary_paths(PREFIX)
    data = place.base / "postgres"
    [primary] = parse_qs(urlsplit(os.environ["DATABASE_URL"]).query)["host"]
    # the log stays for a replica that tests stop, however much other tests write meanwhile
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        session.execute("ALTER SYSTEM SET wal_keep_size = '1GB'")
        session.execute("SELECT pg_reload_conf()")
    copy = [find_program(), "-h", primary, "-U", "memory", "-D", str(data), "-R", "-c", "fast", "--no-sync"]
    subprocess.run(copy, check=True, capture_output=True, timeout=200)
    for folder, _, files in os.walk(data):
        for each in (folder, *(os.path.join(folder, name) for name in files)):
            place.user.own(each)  # type: ignore[arg-type]
    made = ReplicaServer(PostgresServer(place))
    try:
        made.server.start()
        yield made
    finally:
        made.server.stop()
        shutil.rmtree(place.base, ignore_errors=True)


@pytest.fixture(scope="module")
def registered(replica_server: ReplicaServer) -> Iterator[ReplicaServer]:
    """Add the replica to the databases; before Django's test cases look which there are."""
    primary = connections.settings["default"]
    [added] = replica_databases([replica_server.url()], primary).values()
    connections.settings["replica_1"] = {**primary, **added, "TEST": {**primary["TEST"], "MIRROR": "default"}}
    try:
        yield replica_server
    finally:
        wrapper: Any = connections["replica_1"]
        wrapper.close()
        wrapper.close_pool()
        del connections["replica_1"]
        del connections.settings["replica_1"]


@pytest.fixture
def replica(registered: ReplicaServer, empty_redis: None, settings: Any) -> Iterator[Replica]:
    """The process's view of the replica, once it may answer."""
    settings.DATABASE_REPLICA_URLS = (registered.url(),)
    replicas.cache_clear()
    [found] = replicas()
    try:
        wait_until(found.is_usable)
        yield found
    finally:
        found.ended.set()
        replicas.cache_clear()


def wait_until_replayed(replica: Replica) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn()")
        position = parse_position(cursor.fetchone()[0])
    wait_until(lambda: replica.has_replayed(position))
