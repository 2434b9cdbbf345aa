"""Something that runs beside a test over a connection of its own, and waits for what the test has locked."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection

PATIENCE_SECONDS = 20
WAITS_FOR_ME = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
)

Start = Callable[[Callable[[], object]], "Future[object]"]


@pytest.fixture
def start_beside() -> Iterator[Start]:
    """Start something over a connection of its own; comes back once it waits for this transaction."""

    def run(act: Callable[[], object]) -> object:
        try:
            return act()
        finally:
            connection.close()

    def start(act: Callable[[], object]) -> "Future[object]":
        started = others.submit(run, act)
        wait_until_somebody_waits()
        return started

    with ThreadPoolExecutor(1) as others:
        yield start


def wait_until_somebody_waits() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(WAITS_FOR_ME)
            if cursor.fetchone() == (True,):
                return
        time.sleep(0.01)
    pytest.fail("nobody waits")
