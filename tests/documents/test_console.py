"""The page of the console lists the tasks that the browser tests do, each with a small picture."""

import re
from struct import unpack

from tests.browser import insight_tasks as insight_tasks
from tests.browser.desk import TASKS
from tests.browser.pages import PAGE, render_page
from tests.browser.pictures import MAX_PICTURE_BYTES, PICTURES


def test_the_page_lists_the_tasks_of_the_browser_tests() -> None:
    assert PAGE.read_text() == render_page()
    listed = [task for chapter in TASKS.values() for task in chapter]
    assert len(listed) >= 30
    assert sum(task.by_keyboard for task in listed) >= 10


def test_each_task_has_a_small_picture() -> None:
    named = re.findall(r"\(console/(\w+\.png)\)", PAGE.read_text())

    assert sorted(named) == sorted(path.name for path in PICTURES.iterdir())
    for path in PICTURES.iterdir():
        data = path.read_bytes()
        assert len(data) <= MAX_PICTURE_BYTES, path.name
        assert unpack(">I", data[16:20]) == (1280,), path.name
