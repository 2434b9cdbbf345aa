"""Notifications of workers: a broker that is unavailable does not delay the caller."""

import socket
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from celery import Celery

from memory.tasks import WorkerNotifier
from tests.concurrency import wait_until

PATIENCE_SECONDS = 60
NO_WAIT_SECONDS = 4
"""A direct publish to a broker that refuses takes six seconds, and to one that hangs longer."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """Point Celery's broker at an address where no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    # Celery prefers the environment's broker to its own
    monkeypatch.setenv("CELERY_BROKER_URL", f"redis://{host}:{port}/0")
    return host, port


def new_notifier(max_waiting: int = 100) -> WorkerNotifier:
    return WorkerNotifier(Celery(set_as_current=False), max_waiting=max_waiting)


def notify_often(notifier: WorkerNotifier) -> None:
    for _ in range(50):
        notifier.notify("tasks.look", "rows")


def seconds_of(call: Callable[[], object]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.usefixtures("address")
def test_a_broker_that_refuses_connections_causes_a_warning_but_no_delay(caplog: pytest.LogCaptureFixture) -> None:
    with closing(new_notifier()) as notifier:
        assert min(seconds_of(lambda: notifier.notify("tasks.look", "rows")) for _ in range(3)) < NO_WAIT_SECONDS

        wait_until(lambda: "notification for tasks.look lost (OperationalError)" in caplog.text)


def test_a_broker_that_hangs_does_not_delay_the_caller(
    address: tuple[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(address) as silent, closing(new_notifier(max_waiting=10)) as notifier:
        notifier.notify("tasks.look", "rows")
        silent.settimeout(PATIENCE_SECONDS)
        with silent.accept()[0]:
            assert seconds_of(lambda: notify_often(notifier)) < NO_WAIT_SECONDS

    assert "notification for tasks.look dropped: the broker accepts none" in caplog.text
