"""Questions to a store under a deadline that holds even if the store hangs: no driver gives up on a silent server."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import BoundedSemaphore, Thread
from typing import TypeVar

from django.db import connections

Answer = TypeVar("Answer")

TURN_SECONDS = 0.5
"""Seconds that a question waits for its turn: the ones before it take milliseconds, or the store hangs."""


class AnswerDeadline:
    """The end of the time that an answer may take, some seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def wait_for(self, question: "Future[Answer]") -> Answer:
        """Return the answer. Raises TimeoutError at the deadline, and whatever the question raised."""
        return question.result(timeout=max(self._at - time.monotonic(), 0))


class Questions:
    """A queue of questions to one store, each in a thread of its own.

    A hanging question keeps its thread until the store moves again.
    """

    def __init__(self, store: str, *, max_simultaneous: int) -> None:
        self._name = f"question to {store}"
        self._free = BoundedSemaphore(max_simultaneous)

    def ask(self, question: Callable[[], Answer]) -> "Future[Answer]":
        """Begin to ask; with as many unanswered for TURN_SECONDS, the answer is a TimeoutError."""
        answer: Future[Answer] = Future()
        if not self._free.acquire(timeout=TURN_SECONDS):
            answer.set_exception(TimeoutError("earlier questions are unanswered"))
            return answer
        # a daemon: nobody who stops waits for a store that hangs
        Thread(target=self._answer, args=(question, answer), name=self._name, daemon=True).start()
        return answer

    def _answer(self, question: Callable[[], Answer], answer: "Future[Answer]") -> None:
        try:
            try:
                result = question()
            finally:
                try:
                    connections.close_all()
                finally:
                    # before the answer is delivered: its recipient may ask again
                    self._free.release()
        except Exception as err:  # noqa: BLE001  raised again where the answer is awaited
            answer.set_exception(err)
        else:
            answer.set_result(result)


# a scrape and two probes at a time
POSTGRESQL = Questions("PostgreSQL", max_simultaneous=3)
REDIS = Questions("Redis", max_simultaneous=3)
