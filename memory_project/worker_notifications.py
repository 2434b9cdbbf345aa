"""Notifications to workers that a row is waiting, sent without waiting for the broker.

A lost notification loses nothing: the row is the queue, and beat's sweep finds it. So a dead broker, which can block a
publisher for seconds, must cost a request neither time nor success.
"""

import logging
from queue import Full, Queue
from threading import Lock, Thread

from celery import Celery
from kombu.exceptions import OperationalError

from memory_project.celery import app

logger = logging.getLogger(__name__)

EXPIRES_SECONDS = 60
"""Seconds that a notification stays valid. The next sweep sends another one."""


class WorkerNotifier:
    """Publishes from a thread of its own, which starts with the first notification and therefore after any fork."""

    def __init__(self, application: Celery, *, max_waiting: int = 100) -> None:
        self._application = application
        self._waiting: Queue[tuple[str, str]] = Queue(max_waiting)
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_closed = False

    def notify(self, task: str, argument: str) -> None:
        """Call `task(argument)` in some worker, soon. Return immediately and never raise."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._publish, name="worker-notifications", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait((task, argument))
        except Full:
            logger.warning("notification for %s dropped: the broker accepts none", task)

    def close(self) -> None:
        """Stop publishing. Waiting notifications are lost; the thread ends with the one in progress."""
        self._is_closed = True

    def _publish(self) -> None:
        while not self._is_closed:
            task, argument = self._waiting.get()
            try:
                self._application.send_task(task, (argument,), retry=False, expires=EXPIRES_SECONDS)
            except (OperationalError, OSError) as err:
                if self._is_closed:
                    return
                logger.warning("notification for %s lost (%s): the sweep finds the row", task, type(err).__name__)


worker_notifier = WorkerNotifier(app)
