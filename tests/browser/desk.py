"""A member of staff at a screen, with or without a mouse, and the list of tasks that are done there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.browser.scene import NAME, PASSWORD, Scene
from tests.browser.visits import Visitor

MAX_TABS = 80
WIDE, HIGH = 1280, 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A browser window in front of the scene. What is pressed or typed goes to where the keyboard is."""

    visitor: Visitor
    scene: Scene

    @property
    def page(self) -> Any:
        return self.visitor.page

    def log_in(self) -> None:
        self.page.set_viewport_size({"width": WIDE, "height": HIGH})
        # nothing of the last page may still be under way: its answer would bring the cookies of another form
        self.page.goto("about:blank")
        self.page.context.clear_cookies()
        self.visitor.open("/admin/")
        self.page.locator("#id_username:focus").wait_for()
        self.type(NAME)
        self.press("Tab")
        self.type(PASSWORD)
        self.press("Enter")
        self.sees("Figures of the whole installation.")

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def replace(self, text: str) -> None:
        """Type over the text of the box that has the focus."""
        self.press("Control+a")
        self.type(text)

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element has the focus."""
        for _ in range(MAX_TABS):
            self.press("Tab")
            if self.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{MAX_TABS} times Tab do not lead to {selector}")

    def search(self, text: str) -> None:
        """Search for everything, by the keyboard."""
        self.tab_to("#console-search")
        self.replace(text)
        self.submit()

    def open_list_by_keys(self, group: int, address: str) -> None:
        """Open a list from the menu, by the keyboard. `group` counts from 1."""
        self.tab_to(f"#console-menu .group:nth-of-type({group}) summary")
        self.press("Enter")
        self.tab_to(f"#console-menu a[href='{address}']")
        self.submit()

    def add_by_keys(self, group: int, address: str) -> None:
        """Open the form for a new row of a list, by the keyboard."""
        self.open_list_by_keys(group, address)
        self.tab_to("a.addlink")
        self.submit()

    def choose_account_by_keys(self) -> None:
        """Choose the account of the scene in a form."""
        self.tab_to(".select2-selection")
        self.press("Enter")
        self.type("Harbour")
        self.page.locator(".select2-results__option", has_text="Harbour Travel").wait_for()
        self.press("Enter")

    def submit(self) -> None:
        """Press Enter and wait for the next page."""
        with self.page.expect_navigation():
            self.press("Enter")

    def click(self, role: str, name: str, *, exact: bool = True) -> None:
        self.page.get_by_role(role, name=name, exact=exact).first.click()

    def open_list(self, group: str, name: str) -> None:
        """Open a list from the menu, by the mouse."""
        menu = self.page.locator("#console-menu details.group", has=self.page.locator("summary", has_text=group))
        if menu.get_attribute("open") is None:
            menu.locator("summary").click()
        menu.get_by_role("link", name=name, exact=True).click()

    def choose(self, action: str, *rows: str) -> None:
        """Choose rows of a list by a text, and an action by its label."""
        for row in rows:
            self.page.locator("#result_list tr", has_text=row).first.locator("input.action-select").check()
        self.page.locator("select[name=action]").select_option(label=action)
        self.click("button", "Go")

    def confirm(self, reason: str, button: str) -> None:
        self.page.get_by_label("Reason").fill(reason)
        self.click("button", button)

    def sees(self, *texts: str) -> None:
        for text in texts:
            self.page.locator("main").get_by_text(text).locator("visible=true").first.wait_for()


Steps = Callable[[Desk], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of an operator, from the first page to its result, and the sentence that describes it.

    `by_keyboard` if its steps use no mouse.
    """

    name: str
    sentence: str
    by_keyboard: bool
    steps: Steps

    @property
    def title(self) -> str:
        words = self.name.replace("_", " ")
        return words[:1].upper() + words[1:]


TASKS: dict[str, list[Task]] = {}
"""The tasks by their chapter. Those of a chapter are done in this order, in one scene."""


def task(chapter: str, sentence: str, *, by_keyboard: bool = False) -> Callable[[Steps], Steps]:
    """Add the steps of a task, whose name is that of the function."""

    def add(steps: Steps) -> Steps:
        tasks = TASKS.setdefault(chapter, [])
        tasks.append(Task(name=steps.__name__, sentence=sentence, by_keyboard=by_keyboard, steps=steps))
        return steps

    return add
