"""Threads for requests, by path: each lane has threads of its own, so that none waits for another lane's requests."""

from collections.abc import Mapping
from typing import Any

from waitress.task import ThreadedTaskDispatcher

LIVE, READY, METRICS = "/health/live", "/health/ready", "/metrics"
HEALTH_PATHS = frozenset({LIVE, READY, METRICS})
DOCUMENTS = ("/api/schema", "/api/docs", "/static/", "/admin")
"""Beginnings of the paths of pages and documents: many people who load them at once leave the API its threads."""
DOCUMENT_THREADS = 2
HEALTH_THREADS: Mapping[str, int] = {LIVE: 1, READY: 2, METRICS: 1}


class Lanes:
    """Gives whole requests to the threads of their lane. waitress calls `add_task`."""

    def __init__(self, *, threads: int) -> None:
        counts = {**HEALTH_THREADS, "documents": DOCUMENT_THREADS, "service": threads}
        self._lanes: dict[str, Any] = {name: ThreadedTaskDispatcher() for name in counts}
        for name, lane in self._lanes.items():
            lane.set_thread_count(counts[name])

    def add_task(self, channel: Any) -> None:
        """Queue the first request of a connection. One that was refused while it was read may have no path."""
        self._lanes[lane_of(getattr(channel.requests[0], "path", ""))].add_task(channel)


def lane_of(path: str) -> str:
    """Return the name of the lane of a path."""
    if path in HEALTH_PATHS:
        return path
    return "documents" if path.startswith(DOCUMENTS) else "service"
