"""A real browser in front of the admin: Playwright drives the machine's chromium, or its own.

Without either, tests are skipped.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from tests.browser.visits import Visitor

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Open chromium for the tests of this package alone: its event loop in this thread would refuse `asyncio.run`."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need the package playwright, which is not installed"
    )
    # Playwright runs an event loop in this thread, where Django would refuse to query
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    try:
        with playwright.sync_playwright() as driver:
            program = next(filter(None, map(shutil.which, CHROMIUM)), driver.chromium.executable_path)
            if not Path(program).exists():
                pytest.skip(
                    "the browser tests need chromium: `make test-browser` installs it, or apt-get install chromium"
                )
            opened = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            yield opened
            opened.close()
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="Write docs/console.md and its pictures anew.")


@pytest.fixture
def chief(transactional_db: None) -> User:
    return User.objects.create_superuser("chief")


@pytest.fixture
def staff(chief: User) -> Client:
    """The browser of a superuser, without a screen."""
    client = Client()
    client.force_login(chief)
    return client


@pytest.fixture
def visitor(browser: Any, live_server: Any, staff: Client) -> Iterator[Visitor]:
    """A superuser at a screen that is 1,280 pixels wide."""
    context = browser.new_context(viewport=WIDE, base_url=live_server.url, reduced_motion="reduce")
    session = staff.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    yield Visitor.at(context)
    context.close()


@pytest.fixture
def guest(browser: Any, live_server: Any) -> Iterator[Visitor]:
    """Somebody at such a screen who has not logged in."""
    context = browser.new_context(viewport=WIDE, base_url=live_server.url, reduced_motion="reduce")
    yield Visitor.at(context)
    context.close()
