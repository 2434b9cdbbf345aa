"""Fixtures of the clients' tests."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from django.utils import timezone

from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import JobRun, Transfer


@pytest.fixture
def transfer_worker(transactional_db: None) -> Iterator[None]:
    """A thread that does the exports and imports of all accounts."""
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.wait(0.05):
                for each in Transfer.objects.filter(status=Transfer.Status.QUEUED):
                    run_at_once(JOBS["transfer"], JobRun(account=each.account, job="transfer"), clock=timezone.now)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()
