"""State that a forked process must not share with its parent."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value made at first use, once in each process: threads and sockets do not survive a fork.

    A forked process keeps the value of its parent without using it, because destroying it would wait for threads that
    do not exist in the child. With `survives_fork`, for a value without threads and sockets, it uses its parent's.
    """

    def __init__(self, make: Callable[[], T], *, survives_fork: bool = False) -> None:
        self._make = make
        self._survives_fork = survives_fork
        self._lock = threading.Lock()
        self._made: dict[int, T] = {}

    def get(self) -> T:
        with self._lock:
            process = 0 if self._survives_fork else os.getpid()
            if process not in self._made:
                self._made[process] = self._make()
            return self._made[process]
