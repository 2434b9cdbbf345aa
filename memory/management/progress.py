"""Progress bars of commands."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(noun: str, count_total: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """Show how many of the rows called `noun` are done, on a terminal's standard error.

    Elsewhere nothing is drawn, and the total is not counted. Yields a function that takes the number of rows done.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn(f"{{task.completed}} of {{task.total}} {noun}"),
        BarColumn(),
        "[progress.percentage]{task.percentage:>3.0f} %",
    )
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=count_total() if console.is_terminal else None)
        yield lambda done: progress.update(task, completed=done)
