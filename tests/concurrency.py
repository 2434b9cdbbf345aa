"""Waiting for what others do, and functions that run beside a test over a connection of their own."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

PATIENCE_SECONDS = 60
"""For what takes no time: however busy the machine is, it is over by then, or never."""
WAITS_FOR_ME = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
)

LONG_PATIENCE_SECONDS = 180
"""For what starts processes, and may wait for its turn."""

T = TypeVar("T")
Start = Callable[[Callable[[], object]], "Future[object]"]


@pytest.fixture
def start_concurrently() -> Iterator[Start]:
    """Start something over a connection of its own; comes back once it waits for this transaction."""

    def start(act: Callable[[], object]) -> "Future[object]":
        started = others.submit(over_own_connection, act)
        wait_until_lock_is_awaited()
        return started

    with ThreadPoolExecutor(1) as others:
        yield start


def run_in_thread(act: Callable[[], T]) -> T:
    """Call a function that waits for no lock of the test over its own connection, and return its result."""
    with ThreadPoolExecutor(1) as others:
        return others.submit(over_own_connection, act).result(PATIENCE_SECONDS)


def over_own_connection(act: Callable[[], T]) -> T:
    try:
        return act()
    finally:
        connection.close()


def wait_until(is_done: Callable[[], object], *, seconds: float = LONG_PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline, f"it did not happen within {seconds:.0f} seconds"
        time.sleep(0.02)


def wait_until_lock_is_awaited() -> None:
    wait_until(is_lock_awaited, seconds=PATIENCE_SECONDS)


def is_lock_awaited() -> bool:
    """Return whether another session waits for a lock of this transaction.

    The question reads `pg_locks` alone: a transaction sees one snapshot of `pg_stat_activity`, its first.
    """
    with connection.cursor() as cursor:
        cursor.execute(WAITS_FOR_ME)
        return bool(cursor.fetchone()[0])
