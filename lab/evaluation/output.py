"""The output of commands: tables as plain text."""

from collections.abc import Iterable

from rich.console import Console, RenderableType

WIDTH = 120


def render(parts: Iterable[RenderableType]) -> str:
    console = Console(width=WIDTH, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()
