"""When a request is sent again, and after how long."""

import random
import time
from email.utils import parsedate_to_datetime

import httpx2

from agent_memory_client.errors import read_problem

RETRIED_STATUSES = frozenset({429, 502, 503, 504})
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 8.0
MAX_RETRY_AFTER_SECONDS = 60.0


class Retries:
    """The retries that one call has left."""

    def __init__(self, max_retries: int) -> None:
        self._left = max_retries
        self._pause = FIRST_PAUSE_SECONDS

    def pause_after(self, response: httpx2.Response | None) -> float | None:
        """Return the seconds to wait before the next attempt, or None if this was the last one.

        `response` is None if there was no answer. A Retry-After is a lower bound; longer than a minute is not waited.
        """
        if self._left <= 0 or (response is not None and not is_temporary(response)):
            return None
        self._left -= 1
        pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE_SECONDS)
        jittered = pause * random.uniform(0.5, 1.0)  # noqa: S311 (spreads clients, keeps no secret)
        asked = 0.0 if response is None else read_retry_after(response)
        if asked > MAX_RETRY_AFTER_SECONDS:
            return None
        return asked + jittered if asked else jittered


def is_temporary(response: httpx2.Response) -> bool:
    """Return True if the same request may succeed later."""
    if response.status_code == 409:
        # an attempt whose answer was lost is still running
        return read_problem(response).get("code") == "request_in_progress"
    return response.status_code in RETRIED_STATUSES


def read_retry_after(response: httpx2.Response) -> float:
    """Return the seconds of Retry-After, which may also be a date; 0 without one."""
    text = response.headers.get("Retry-After", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0
