"""The page docs/console.md, which lists the operator tasks with their pictures."""

from collections.abc import Iterator

from tests.browser.desk import TASKS
from tests.browser.pictures import PICTURES

PAGE = PICTURES.with_suffix(".md")

HEAD = """# The console

What people do at `/admin/`, from logging in to the result. Tasks marked with ⌨ are done without a mouse. The tests do
all of them in a browser, and write this page (`make test-browser ARGS=--screenshots`). Groups of staff, limits to
accounts, and actions on many rows are described in [Operations](operations.md#the-console).
"""


def render_page() -> str:
    return "\n".join([HEAD, *render_tasks()])


def render_tasks() -> Iterator[str]:
    number = 0
    for chapter, tasks in TASKS.items():
        yield f"## {chapter}\n"
        for task in tasks:
            number += 1
            keys = " ⌨" if task.by_keyboard else ""
            yield f"**{number}. {task.title}**{keys}: {task.sentence}\n"
            if (PICTURES / f"{task.name}.png").exists():
                yield f"![{task.title}]({PICTURES.name}/{task.name}.png)\n"
