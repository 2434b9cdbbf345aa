"""The ways of staff through the lists, in a browser: choose rows, read the question, give a reason, see it done."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.admin.memories import NOT_YET_EMBEDDED
from memory.models import Account, BulkChange, Conversation, JobRun, Memory
from memory.owner import Owner
from memory.services.facts.supersede import correct_fact
from tests.browser.visits import Visitor
from tests.memory.admin.pages import list_url, page_url
from tests.memory.episodes import draft, store
from tests.memory.facts import know
from tests.memory.turns import talk

pytestmark = pytest.mark.slow

AXE: dict[str, Any] = {"light": (), "dark": ("color-contrast",)}


def remember(count: int) -> Account:
    account = Account.objects.create(name="workshop")
    store(Owner(account_id=account.id, agent_id="assistant"), *[draft(f"memory {number}") for number in range(count)])
    return account


def choose(visitor: Visitor, action: str) -> None:
    visitor.page.select_option("select[name=action]", action)
    visitor.page.click("#changelist-form .actions button[type=submit]")


def test_all_rows_of_a_list_are_changed_after_a_question(visitor: Visitor) -> None:
    remember(60)

    visitor.open(list_url("episodicmemory"))
    visitor.page.check("#action-toggle")
    visitor.page.click(".question a")
    choose(visitor, "archive")
    visitor.look(widths=(390, 1280), axe=AXE)
    asked = visitor.page.inner_text("#content")
    visitor.page.fill("input[name=reason]", "They are old.")
    visitor.page.click("form.bulk input[type=submit]")

    assert "60 episodic memories" in asked
    assert "Changed 60 episodic memories." in visitor.page.inner_text(".messagelist")
    assert Memory.objects.filter(archived=True).count() == 60
    assert visitor.faults == {}, json.dumps(visitor.faults, indent=1)


def test_a_long_change_shows_its_progress(visitor: Visitor) -> None:
    account = remember(120)

    visitor.open(list_url("episodicmemory", account=account.id))
    visitor.page.check("#action-toggle")
    visitor.page.click(".question a")
    choose(visitor, "pin")
    visitor.page.fill("input[name=reason]", "They matter.")
    visitor.page.click("form.bulk input[type=submit]")
    visitor.look(widths=(390, 1280), axe=AXE)
    state = visitor.page.inner_text("#bulk-state")
    BulkChange.objects.update(status="running", examined=100)
    visitor.page.wait_for_selector("#bulk-state:has-text('100 of 120')")

    assert state == "Waits for a worker: 120 rows."
    assert JobRun.objects.filter(job="change_in_bulk").exists()
    assert visitor.faults == {}, json.dumps(visitor.faults, indent=1)


def test_conversations_are_extracted_from_their_list(visitor: Visitor, staff: Client) -> None:
    account = Account.objects.create(name="workshop")
    talk(Owner(account_id=account.id, agent_id="assistant"), 2)
    Conversation.objects.update(extract_after=None)

    visitor.open(list_url("conversation"))
    visitor.page.check("input.action-select")
    choose(visitor, "extract")
    visitor.page.fill("input[name=reason]", "It is needed now.")
    visitor.page.click("form.bulk input[type=submit]")

    assert "Queued for extraction: 1 conversation." in visitor.page.inner_text(".messagelist")
    assert Conversation.objects.get().extract_after is not None
    assert visitor.faults == {}, json.dumps(visitor.faults, indent=1)


def test_two_tabs_lead_to_the_search_box(visitor: Visitor) -> None:
    visitor.open(list_url("episodicmemory"))

    for _ in range(2):
        visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Enter")
    visitor.page.keyboard.press("Tab")

    assert visitor.page.evaluate("document.activeElement.closest('#changelist-search') !== null")


def test_the_search_for_everything_is_a_few_tabs_away(visitor: Visitor) -> None:
    visitor.open(list_url("fact"))

    tabs = 0
    while visitor.page.evaluate("document.activeElement.id") != "console-search":
        visitor.page.keyboard.press("Tab")
        tabs += 1
        assert tabs <= 12


def test_phones_fold_the_menu(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    visitor.open(list_url("fact"))
    entities = visitor.page.locator("#console-menu").get_by_role("link", name="Entities")
    folded = not entities.is_visible()

    visitor.page.get_by_text("Menu", exact=True).click()

    assert folded
    assert entities.is_visible()


BROKEN_WORDS = """() => [...document.querySelectorAll("[aria-label=History] tbody tr > *")].flatMap((cell) => {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
    while (walker.nextNode())
        for (const word of walker.currentNode.data.matchAll(/[^\\s-]+/g)) {
            const range = document.createRange();
            range.setStart(walker.currentNode, word.index);
            range.setEnd(walker.currentNode, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
        }
    return broken;
})"""


def test_the_history_of_a_fact_breaks_no_words(visitor: Visitor) -> None:
    owner = Owner(account_id=Account.objects.create(name="workshop").id, agent_id="assistant", actor="key:mem_7AGJC99O")
    fact = know(owner, f"The user {'really ' * 40}likes long walks.")
    changes = {"confidence": 0.5, "temporal": "past"}
    correct_fact(owner, fact.pk, changes=changes, embedded=NOT_YET_EMBEDDED, now=timezone.now())

    visitor.open(page_url("fact", fact.pk))
    visitor.look(widths=(390, 1280), axe=AXE)

    assert visitor.page.evaluate(BROKEN_WORDS) == []
    assert visitor.faults == {}, json.dumps(visitor.faults, indent=1)


COVERED_HEADINGS = """() => {
    const tools = [...document.querySelectorAll(".object-tools a")].map((each) => each.getBoundingClientRect());
    const covered = [];
    for (const heading of document.querySelectorAll("#content > h1, #content > h2")) {
        const words = document.createRange();
        words.selectNodeContents(heading);
        for (const line of words.getClientRects())
            if (tools.some((box) => box.left < line.right && box.right > line.left
                    && box.top < line.bottom && box.bottom > line.top))
                covered.push(heading.textContent.trim().slice(0, 40));
    }
    return covered;
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_no_button_covers_a_long_heading(visitor: Visitor, width: int) -> None:
    owner = Owner(account_id=Account.objects.create(name="workshop").id, agent_id="assistant")
    fact = know(owner, f"The user {'really ' * 40}likes long walks.")
    talk(owner, 1, conversation_id="customer-support-" * 5)
    conversation = Conversation.objects.get()

    visitor.page.set_viewport_size({"width": width, "height": 900})
    for page in (page_url("fact", fact.pk), page_url("memory", fact.pk), page_url("conversation", conversation.pk)):
        visitor.open(page)
        assert visitor.page.evaluate(COVERED_HEADINGS) == [], page


COLOURS = """() => [getComputedStyle(document.querySelector("a.deletelink")).color,
    getComputedStyle(document.body).backgroundColor].map((colour) => colour.match(/\\d+/g).map(Number))"""


def luminance(colour: list[int]) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_link_that_deletes_a_conversation_can_be_read(visitor: Visitor, scheme: str) -> None:
    """Axe does not measure links that have an icon as their background."""
    talk(Owner(account_id=Account.objects.create(name="workshop").id, agent_id="assistant"), 1)
    visitor.page.emulate_media(color_scheme=scheme)

    visitor.open(page_url("conversation", Conversation.objects.get().pk))

    dark, light = sorted(luminance(colour[:3]) for colour in visitor.page.evaluate(COLOURS))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
