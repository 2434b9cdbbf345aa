"""Progress of a long command, shown on the terminal."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Item = TypeVar("Item")


@contextmanager
def open_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal's standard error; elsewhere nothing is drawn."""
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)
        yield lambda steps: progress.advance(task, steps)


def collect(name: str, total: int, items: Iterable[Item]) -> list[Item]:
    """Collect all items, with a bar that moves as they come."""
    collected = []
    with open_bar(name, total) as advance:
        for item in items:
            collected.append(item)
            advance(1)
    return collected
