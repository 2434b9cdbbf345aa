"""The operator tasks of docs/console.md are done in a browser, ten of them without a mouse.

`make test-browser ARGS=--screenshots` writes the page and its pictures anew.
"""

import json

import pytest

from tests.browser import insight_tasks as insight_tasks
from tests.browser.desk import HIGH, TASKS, WIDE, Desk, Task
from tests.browser.pages import PAGE, render_page
from tests.browser.pictures import PICTURES, shrink_picture
from tests.browser.scene import Scene, build_scene
from tests.browser.visits import Visitor

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(transactional_db: None, empty_redis: None) -> Scene:
    return build_scene()


@pytest.mark.parametrize("chapter", list(TASKS))
def test_operators_do_their_tasks(scene: Scene, guest: Visitor, chapter: str, request: pytest.FixtureRequest) -> None:
    for task in TASKS[chapter]:
        desk = Desk(visitor=guest, scene=scene)
        desk.log_in()
        try:
            task.steps(desk)
        except Exception as err:
            raise AssertionError(f"{task.name} failed at {guest.address}: {guest.page.inner_text('#content')}") from err
        if request.config.getoption("--screenshots", default=False):
            take_screenshot(guest, task)
        guest.look(widths=(390, 1280), axe={"light": (), "dark": ("color-contrast",)})

    assert guest.faults == {}, json.dumps(guest.faults, indent=1, ensure_ascii=False)
    if request.config.getoption("--screenshots", default=False):
        PAGE.write_text(render_page())


def take_screenshot(guest: Visitor, task: Task) -> None:
    guest.page.emulate_media(color_scheme="light")
    guest.page.set_viewport_size({"width": WIDE, "height": HIGH})
    guest.page.mouse.move(0, 0)
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{task.name}.png").write_bytes(shrink_picture(guest.page))
