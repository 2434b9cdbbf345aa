"""Two nodes that start for the first time at once: one migrates and makes the account, the other one waits."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from memory.management.commands.bootstrap import BOOTSTRAP_LOCK_ID
from memory.management.commands.migrate import MIGRATE_LOCK_ID
from tests import template

PROJECT = Path(__file__).parents[3]
PATIENCE_SECONDS = 90
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
LOOKING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_try_advisory_xact_lock%'
    AND state = 'idle in transaction'
"""
"""Sessions that look for the lock, and hold no snapshot, which would keep indexes from being built concurrently."""

pytestmark = pytest.mark.slow


@pytest.fixture
def database(db: None) -> str:
    """Return the URL of a migrated database without an account, which goes with the server of the test run."""
    name = f"first_{uuid4().hex[:12]}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template.NAME}".encode())
    return os.environ["DATABASE_URL"].replace("/memory?", f"/{name}?")


@contextmanager
def running(url: str, *command: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "manage.py", *command],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_waiters(connection: "psycopg.Connection[tuple[int]]", number: int, *, sign: str = WAITING) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while connection.execute(sign.encode()).fetchone() != (number,):
        assert time.monotonic() < deadline, "nobody waits for the lock"
        time.sleep(0.1)


def test_migrations_wait_for_those_of_another_node(database: str) -> None:
    with psycopg.connect(database) as holder, running(database, "migrate") as node:
        holder.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATE_LOCK_ID])
        with psycopg.connect(database, autocommit=True) as observer:
            wait_for_waiters(observer, 1, sign=LOOKING)
        holder.commit()

        out, err = node.communicate(timeout=PATIENCE_SECONDS)

    assert (node.returncode, "No migrations to apply." in out) == (0, True), err


def test_of_two_nodes_that_start_at_once_one_makes_the_account(database: str) -> None:
    with psycopg.connect(database) as holder, ExitStack() as stack:
        holder.execute("SELECT pg_advisory_xact_lock(%s)", [BOOTSTRAP_LOCK_ID])
        nodes = [stack.enter_context(running(database, "bootstrap")) for _ in range(2)]
        with psycopg.connect(database, autocommit=True) as observer:
            wait_for_waiters(observer, 2)
        holder.commit()

        ends = [node.communicate(timeout=PATIENCE_SECONDS) for node in nodes]

    assert [node.returncode for node in nodes] == [0, 0], ends
    keys = [json.loads(out)["api_key"] for out, _err in ends]
    assert sorted(key is None for key in keys) == [False, True]
