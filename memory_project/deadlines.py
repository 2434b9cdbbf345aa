"""Questions to a store under a deadline that holds though the store hangs: no driver gives up on a silent server."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import BoundedSemaphore, Thread
from typing import TypeVar

from django.db import connections

Answer = TypeVar("Answer")

TURN_SECONDS = 0.5
"""How long a question waits for its turn: the ones before it take milliseconds, or the store hangs."""


class Deadline:
    """A moment, some seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def wait_for(self, question: "Future[Answer]") -> Answer:
        """The answer. Raises TimeoutError at the deadline, and whatever the question raised."""
        return question.result(timeout=max(self._at - time.monotonic(), 0))


class Questions:
    """Asks one store, from a thread for each question: one that hangs keeps its thread until the store moves again."""

    def __init__(self, store: str, *, most_at_once: int) -> None:
        self._name = f"question to {store}"
        self._free = BoundedSemaphore(most_at_once)

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
            told = self._ask_and_let_go(question)
        except Exception as err:  # noqa: BLE001  raised again where the answer is awaited
            answer.set_exception(err)
        else:
            answer.set_result(told)

    def _ask_and_let_go(self, question: Callable[[], Answer]) -> Answer:
        """Before the answer is told: who has it may ask again."""
        try:
            return question()
        finally:
            try:
                connections.close_all()
            finally:
                self._free.release()


# a scrape and two probes at a time
POSTGRESQL = Questions("PostgreSQL", most_at_once=3)
REDIS = Questions("Redis", most_at_once=3)
