"""The attempts of one call: its request, and what follows from each outcome. Nothing here sends or waits.

Both senders repeat the same four steps: build the request, send it, ask how long to pause, pause.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

from agent_memory_client.calls import Call, PageCall, prepare
from agent_memory_client.config import Settings
from agent_memory_client.errors import connection_error
from agent_memory_client.results import Result
from agent_memory_client.retries import Retries

LONG_TIMEOUT_SECONDS = 600.0
"""Time to wait for the answer to a stream or an archive, which comes after all of it was stored."""


class Attempts:
    """The attempts of a call. All of them send the same request, with the same Idempotency-Key."""

    def __init__(self, call: Call[Any] | PageCall[Any], settings: Settings) -> None:
        self._settings = settings
        self.request = prepare(call, settings)
        self._retries = Retries(settings.max_retries if self.request.is_repeatable else 0)

    def build(
        self, http: httpx2.Client | httpx2.AsyncClient, body: Iterator[bytes] | AsyncIterator[bytes] | None
    ) -> httpx2.Request:
        """Return the request of the next attempt, with this body if it streams."""
        request = self.request
        is_long = request.archive is not None or request.lines is not None
        return http.build_request(
            request.method,
            self._settings.base_url + request.path,
            params=list(request.params),
            headers={"Authorization": f"Bearer {self._settings.api_key}", **request.headers},
            content=request.content if body is None else body,
            timeout=request.timeout or (LONG_TIMEOUT_SECONDS if is_long else http.timeout),
        )

    def pause_after_error(self, error: httpx2.TransportError) -> float:
        """Return the seconds to wait after an attempt without an answer. Raises if it was the last one."""
        pause = self._retries.pause_after(None)
        if pause is None:
            raise connection_error(error) from error
        return pause

    def pause_after(self, response: httpx2.Response) -> float | None:
        """Return the seconds to wait after an answer, or None if it is the one to return."""
        return self._retries.pause_after(response)


def replace_by_saved(changed: Result, saved: Result, response: httpx2.Response) -> Result:
    """Give an object that was changed the fields and the version that the service stored."""
    saved._bind(response.headers.get("ETag", ""), changed.__dict__["_save"])
    changed._replace(saved)
    return changed
