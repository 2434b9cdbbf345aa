"""Every list, form and confirmation page in a browser, with hostile texts."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve, reverse

from memory.models import Account
from tests.browser.visits import Visitor
from tests.browser.world import fill_world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LINK = re.compile(r'<a\b[^>]*?\shref="([^"]+)"')
PHONE, SCREEN = 390, 1280
MAX_OF_A_KIND = 1
"""Pages of the same view and model that are visited."""
ALIKE = ("_history", "_delete")
"""Views that look the same for every model: some of their pages are enough."""
MAX_ALIKE = 4
MAX_PAGES = 400
PARTS = 3


def find_addresses(staff: Client) -> list[str]:
    """Return addresses of the admin that links lead to, with few of each view."""
    waiting, seen = ["/admin/"], {"/admin/"}
    found: list[str] = []
    visited: Counter[str] = Counter()
    while waiting and len(found) < MAX_PAGES:
        address = waiting.pop(0)
        response = staff.get(address)
        if response.status_code != 200 or "html" not in response.headers["Content-Type"]:
            continue
        found.append(address)
        for link in links_of(address, response.content.decode()):
            kind = kind_of(link)
            if kind and link not in seen and visited[kind] < (MAX_ALIKE if kind in ALIKE else MAX_OF_A_KIND):
                visited[kind] += 1
                seen.add(link)
                waiting.append(link)
    return found


def question_address(account: Account) -> str:
    """Return the address of an answer of the playground, to which no link leads."""
    asked = {"account": account.pk, "agent": "assistant", "query": "script", "max_tokens": 500, "top_k": 5}
    return f"{reverse('playground:page')}?{urlencode(asked)}"


def links_of(address: str, html: str) -> Iterator[str]:
    for href in LINK.findall(html):
        link = urlsplit(urljoin(address, unescape(href)))
        if link.path.startswith("/admin/") and not link.netloc:
            yield f"{link.path}?{link.query}" if link.query else link.path


def kind_of(address: str) -> str:
    """Return the name of the view behind an address; "" for none, or for one that does something."""
    path, _, query = address.partition("?")
    try:
        view = resolve(path)
    except Resolver404:
        return ""
    name = f"{view.namespace}:{view.url_name}"
    if "logout" in name or "jsi18n" in name or view.url_name is None or (name.endswith("_changelist") and query):
        return ""
    return next((end for end in ALIKE if name.endswith(end)), name)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_free_of_faults(staff: Client, visitor: Visitor, part: int) -> None:
    """Each of several parts of the walk visits some of the pages, so that they run next to one another."""
    account = fill_world()
    addresses = [*find_addresses(staff), question_address(account)]

    for address in addresses[part::PARTS]:
        visitor.open(address)
        visitor.look(widths=(PHONE, SCREEN), axe={"light": (), "dark": ("color-contrast",)})
        take_picture(visitor, address)
        write_report(visitor)

    assert len(addresses) > 100
    assert not visitor.faults, json.dumps(visitor.faults, indent=1, ensure_ascii=False)


def take_picture(visitor: Visitor, address: str) -> None:
    """Store pictures of the page in the folder that MEMORY_TEST_PICTURES names, if it is set."""
    if folder := os.environ.get("MEMORY_TEST_PICTURES"):
        name = re.sub(r"[^a-z]+", "-", re.sub(r"[0-9a-f-]{36}", "", address.partition("?")[0])).strip("-")
        for width in (PHONE, SCREEN):
            visitor.page.set_viewport_size({"width": width, "height": 900})
            visitor.page.screenshot(path=str(Path(folder) / f"{name}-{width}.png"))


def write_report(visitor: Visitor) -> None:
    if folder := os.environ.get("MEMORY_TEST_PICTURES"):
        (Path(folder) / f"faults-{os.getpid()}.json").write_text(
            json.dumps(visitor.faults, indent=1, ensure_ascii=False)
        )
