"""A breaker per endpoint: what has failed again and again is left alone for a while, and never takes all threads.

Small and of our own: pybreaker's call that trips raises an error of its own instead of the provider's, and it limits no
number of simultaneous calls.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django.conf import settings
from django.db import connections

from memory.errors import ProviderError, ProviderTooSlow, ProviderUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_FAILURES = 3
"""Calls in a row that fail before the breaker opens."""
OPEN_SECONDS = 10.0
"""Seconds after which an open breaker has the endpoint tried again."""
FAIR_SECONDS = 1.0
"""Seconds that an endpoint must have had before its silence is a failure."""
TURN_SECONDS = 0.25
"""Seconds that a call waits where as many as may be are unanswered."""


class Breaker:
    """Counts failures of one endpoint in a row, and calls that it has not answered. Thread-safe.

    An open breaker refuses calls. When it is time to try again, it does so in a thread of its own, so that no request
    pays for an endpoint that still hangs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # a quarter of the threads go on working while the endpoint hangs
        self._free = threading.BoundedSemaphore(max(2, settings.WEB_THREADS * 3 // 4))
        self._failures = 0
        self._tries_at = 0.0

    def call(self, ask: Callable[[], T], *, what: str) -> T:
        """Return the answer of `ask`. Raises its errors, and ProviderUnavailable without asking."""
        if self._failures >= MAX_FAILURES:
            self._try_again(ask)
            raise ProviderUnavailable(f"the {what} has failed {self._failures} times in a row, and is left alone")
        if not self._free.acquire(timeout=TURN_SECONDS):
            raise ProviderUnavailable(f"the {what} has not answered earlier requests yet")
        try:
            return self._count(ask)
        finally:
            self._free.release()

    def _count(self, ask: Callable[[], T]) -> T:
        begun = time.monotonic()
        try:
            answer = ask()
        except (ProviderTooSlow, ProviderUnavailable) as err:
            if isinstance(err, ProviderTooSlow) and time.monotonic() - begun < FAIR_SECONDS:
                # the caller had little time; that is no fault of the endpoint's
                raise
            with self._lock:
                self._failures += 1
                self._tries_at = time.monotonic() + OPEN_SECONDS
                if self._failures == MAX_FAILURES:
                    logger.warning("an endpoint failed %d times in a row; it is left alone", MAX_FAILURES)
            raise
        except ProviderError:
            # it answers: what it refuses is another matter
            self._failures = 0
            raise
        self._failures = 0
        return answer

    def _try_again(self, ask: Callable[[], object]) -> None:
        with self._lock:
            if time.monotonic() < self._tries_at:
                return
            self._tries_at = time.monotonic() + OPEN_SECONDS

        def try_once() -> None:
            try:
                with suppress(ProviderError):
                    self._count(ask)
            finally:
                # usage of language models is stored
                connections.close_all()

        threading.Thread(target=try_once, name="breaker", daemon=True).start()
