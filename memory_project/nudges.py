"""Telling workers that a row waits for them, without waiting for the broker.

Losing a nudge loses nothing: the row is the queue, and beat's sweep finds it. So a dead broker, which can hold a
publisher up for seconds, must cost a request neither time nor success.
"""

import logging
from queue import Full, Queue
from threading import Lock, Thread

from celery import Celery
from kombu.exceptions import OperationalError

from memory_project.celery import app

logger = logging.getLogger(__name__)

EXPIRES_SECONDS = 60
"""An unread nudge is of no use for longer: the next sweep nudges again."""


class Nudges:
    """Publishes from a thread of its own, begun with the first nudge and therefore after any fork."""

    def __init__(self, application: Celery, *, most_waiting: int = 100) -> None:
        self._application = application
        self._waiting: Queue[tuple[str, str]] = Queue(most_waiting)
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_closed = False

    def send(self, task: str, argument: str) -> None:
        """Call `task(argument)` in some worker, soon. Returns at once and never raises."""
        self._ensure_thread()
        try:
            self._waiting.put_nowait((task, argument))
        except Full:
            logger.warning("nudge of %s dropped: the broker takes none", task)

    def close(self) -> None:
        """Publish and say nothing more; what waits is lost, and the thread ends with what it is at."""
        self._is_closed = True

    def _ensure_thread(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._publish, name="nudges", daemon=True)
                self._thread.start()

    def _publish(self) -> None:
        while not self._is_closed:
            task, argument = self._waiting.get()
            try:
                self._application.send_task(task, (argument,), retry=False, expires=EXPIRES_SECONDS)
            except (OperationalError, OSError) as err:
                if self._is_closed:
                    return
                logger.warning("nudge of %s lost (%s): the sweep will find the row", task, type(err).__name__)


nudges = Nudges(app)
