"""Keeps the lease of a run while its worker lives: a thread renews it, however long a statement or a call takes.

So leases are short, and another worker soon takes over what a dead one left. A worker that is alive but has finished
nothing for MAX_SILENCE_SECONDS counts as hung, and loses its lease.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from time import monotonic

from django.db import Error, connection
from django.db.models.functions import Now

from memory import conf
from memory.models import JobRun

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 3
MAX_SILENCE_SECONDS = 3_600


def lease() -> timedelta:
    return timedelta(seconds=conf.JOB_LEASE_SECONDS)


class Heartbeat:
    """The thread of one run. `note_progress` says that the worker is not hung."""

    def __init__(self, run: JobRun) -> None:
        self.run = run
        self._stop = Event()
        self._progress_at = monotonic()

    def note_progress(self) -> None:
        self._progress_at = monotonic()

    def beat(self) -> None:
        """Renew the lease until the run ends or the lease is lost. Over a connection of its own."""
        try:
            while not self._stop.wait(lease().total_seconds() / BEATS_PER_LEASE):
                if monotonic() - self._progress_at > MAX_SILENCE_SECONDS or not self._renew():
                    return
        finally:
            connection.close()

    def _renew(self) -> bool:
        try:
            return bool(JobRun.objects.held_by(self.run).update(lease_until=Now() + lease()))
        except Error as err:
            logger.warning("the lease of run %s was not renewed: %s", self.run.id, type(err).__name__)
            connection.close()
            return True

    def stop(self) -> None:
        self._stop.set()


@contextmanager
def beating(run: JobRun) -> Iterator[Heartbeat]:
    """Renew the lease of a claimed run meanwhile."""
    heartbeat = Heartbeat(run)
    thread = Thread(target=heartbeat.beat, name=f"heartbeat of {run.id}", daemon=True)
    thread.start()
    try:
        yield heartbeat
    finally:
        heartbeat.stop()
        thread.join()
