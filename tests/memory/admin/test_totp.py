"""Two-factor authentication of staff: switched on with a code, asked for at the log-in, and reset by a superuser."""

import re
from base64 import b32decode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.memory.admin.pages import list_url, page_url, shown
from tests.memory.admin.test_lists import INLINE

pytestmark = pytest.mark.usefixtures("empty_redis")

PAGE, LOGIN = "/admin/totp/", "/admin/login/"
PASSWORD = "long and right"


@pytest.fixture
def ana(db: None) -> User:
    return User.objects.create_user("ana", password=PASSWORD, is_staff=True)


@pytest.fixture
def browser(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


def code_of(device: TOTPDevice, *, steps: int = 0) -> str:
    """Return the code that the app shows, or will show some steps later."""
    totp = TOTP(device.bin_key, drift=steps)
    return f"{totp.token():06}"


def switch_on(browser: Client) -> TOTPDevice:
    browser.get(PAGE)
    device = TOTPDevice.objects.get()
    # the step before, so that the present code is still to be used
    browser.post(PAGE, {"code": code_of(device, steps=-1)})
    device.refresh_from_db()
    return device


def log_in(**typed: str) -> int:
    return Client().post(LOGIN, {"username": "ana", "password": PASSWORD, "next": "/admin/", **typed}).status_code


def test_the_page_shows_the_secret_as_a_code_and_as_text_without_styles_or_scripts(browser: Client) -> None:
    page = browser.get(PAGE)
    (secret,) = re.findall(r"<code>([A-Z2-7 ]+)</code>", shown(page))

    assert b32decode(secret.replace(" ", "")) == TOTPDevice.objects.get().bin_key
    assert "<svg" in shown(page)
    assert not INLINE.findall(shown(page))
    assert shown(browser.get(PAGE)).count(secret) == 1


def test_a_log_in_takes_a_code_once_it_is_switched_on(browser: Client) -> None:
    assert log_in() == 302
    device = switch_on(browser)

    assert device.confirmed
    assert log_in() == 200
    assert log_in(code=code_of(device)) == 302


def test_a_code_is_good_for_one_log_in(browser: Client) -> None:
    device = switch_on(browser)
    code = code_of(device)

    assert log_in(code=code) == 302
    assert log_in(code=code) == 200


@pytest.mark.parametrize("code", ["000000", "", "x", "٣٣٣٣٣٣", "1" * 9])
def test_a_wrong_code_neither_switches_it_on_nor_logs_in(browser: Client, code: str) -> None:
    browser.get(PAGE)

    page = browser.post(PAGE, {"code": code}, follow=True)

    assert "The code is wrong" in shown(page)
    assert not TOTPDevice.objects.get().confirmed


def test_it_is_switched_off_with_a_code(browser: Client) -> None:
    device = switch_on(browser)

    browser.post(PAGE, {"code": code_of(device)})

    assert not TOTPDevice.objects.exists()
    assert log_in() == 302


def test_the_page_does_not_show_the_secret_once_it_is_on(browser: Client) -> None:
    device = switch_on(browser)

    page = shown(browser.get(PAGE))

    assert "<svg class" not in page
    assert device.key not in page


def test_a_superuser_resets_a_lost_device_without_seeing_its_secret(staff: Client, browser: Client) -> None:
    device = switch_on(browser)
    pages = [
        staff.get(list_url("totpdevice", app="otp_totp")),
        staff.get(page_url("totpdevice", device.pk, app="otp_totp")),
    ]

    assert not [page for page in pages if device.key in shown(page)]
    staff.post(page_url("totpdevice", device.pk, "delete", app="otp_totp"), {"post": "yes"})
    assert log_in() == 302


def test_the_page_is_for_staff_only(db: None) -> None:
    assert Client().get(PAGE).status_code == 302
