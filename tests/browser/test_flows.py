"""The ways of staff through the lists, in a browser: choose rows, read the question, give a reason, see it done."""

import json
from typing import Any

import pytest
from django.test import Client

from memory.models import Account, BulkChange, Conversation, JobRun, Memory
from memory.owner import Owner
from tests.browser.visits import Visitor
from tests.memory.admin.pages import list_url
from tests.memory.episodes import draft, store
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
