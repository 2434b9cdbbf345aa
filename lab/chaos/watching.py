"""Clients that work, and probes of health, and a record of what they meet while something is wrong."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

PROBE_SECONDS = 0.1
PATIENCE_SECONDS = 60.0


@dataclass(slots=True)
class Watch:
    """Answers of one kind of request: how long each took, and how often each status came (0: none)."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def note(self, ask: Callable[[], int]) -> None:
        begun = time.perf_counter()
        try:
            status = ask()
        except (OSError, http.client.HTTPException):
            status = 0
        self.seconds.append(time.perf_counter() - begun)
        self.statuses[status] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the figures: milliseconds, and answers by status."""
        p50, p95, worst = (float(each) * 1_000 for each in np.percentile(self.seconds or [0.0], (50, 95, 100)))
        return {
            "p50_ms": round(p50, 1),
            "p95_ms": round(p95, 1),
            "worst_ms": round(worst, 1),
            "statuses": dict(sorted(self.statuses.items())),
        }


class Asker:
    """One keep-alive connection that asks the same again and again."""

    def __init__(self, port: int, method: str, path: str, *, key: str = "", body: Any = None) -> None:
        self._wire = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        self._port, self._key = port, key
        self._request, self._body = (method, path), body
        self.answer = b""
        """The body of the last answer."""
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} if key else {}

    def again(self) -> "Asker":
        """Return another connection that asks the same."""
        method, path = self._request
        return Asker(self._port, method, path, key=self._key, body=self._body)

    def ask(self) -> int:
        """Return the status of an answer. Raises OSError or HTTPException without one."""
        body = self._body() if callable(self._body) else self._body
        sent = None if body is None else json.dumps(body).encode()
        try:
            self._wire.request(*self._request, body=sent, headers=self._headers)
            answer = self._wire.getresponse()
            self.answer = answer.read()
        except (OSError, http.client.HTTPException):
            self._wire.close()
            raise
        return answer.status

    def close(self) -> None:
        self._wire.close()


class Client(Protocol):
    """A client that asks once and returns the status of the answer."""

    def ask(self) -> int: ...
    def close(self) -> None: ...


@contextmanager
def watching(askers: Sequence[Client], *, pause_seconds: float) -> Iterator[Watch]:
    """Have each of the askers ask, in a thread of its own, until the end of the block."""
    watch, ended = Watch(), threading.Event()

    def keep_asking(asker: Client) -> None:
        while not ended.is_set():
            watch.note(asker.ask)
            ended.wait(pause_seconds)
        asker.close()

    threads = [threading.Thread(target=keep_asking, args=[asker], daemon=True) for asker in askers]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        ended.set()
        for thread in threads:
            with suppress(RuntimeError):
                thread.join(PATIENCE_SECONDS)
