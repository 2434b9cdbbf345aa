"""Progress of a long command, shown on the terminal."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from memory.management.base import terminal_bar

Item = TypeVar("Item")


@contextmanager
def open_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal's standard error; elsewhere nothing is drawn."""
    with terminal_bar(name, "{task.completed}/{task.total}", total=lambda: total) as update:
        yield lambda steps: update(advance=steps)


def collect(name: str, total: int, items: Iterable[Item]) -> list[Item]:
    """Collect all items, with a bar that moves as they come."""
    collected = []
    with open_bar(name, total) as advance:
        for item in items:
            collected.append(item)
            advance(1)
    return collected
