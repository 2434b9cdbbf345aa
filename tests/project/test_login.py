"""The log-in of staff: too many attempts are refused, sessions end, and HTTPS is asked for where it is configured."""

import os
import subprocess
import sys
from secrets import token_urlsafe

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory_project import settings as installed
from memory_project.env import SettingError
from memory_project.http.login import (
    MAX_ATTEMPTS,
    MAX_ATTEMPTS_FROM_ADDRESS,
    MAX_ATTEMPTS_ON_NAME,
    count_attempt,
    forget_attempts,
)
from memory_project.settings import refuse_weak_secret

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

LOGIN = "/admin/login/"


def log_in(name: str, password: str, address: str = "192.0.2.1") -> bool:
    """Return whether the browser at the address is logged in afterwards."""
    typed = {"username": name, "password": password, "next": "/admin/"}
    return Client(REMOTE_ADDR=address).post(LOGIN, typed).status_code == 302


@pytest.fixture
def ana(db: None) -> User:
    return User.objects.create_user("ana", password="long and right", is_staff=True)


@pytest.mark.slow
def test_too_many_attempts_are_refused_even_with_the_right_password(ana: User) -> None:
    for _ in range(MAX_ATTEMPTS):
        assert not log_in("ana", "wrong")

    assert not log_in("Ana", "long and right")
    assert log_in("ana", "long and right", address="192.0.2.2")


def test_the_refusal_is_a_sentence_that_says_when_to_try_again(ana: User) -> None:
    for _ in range(MAX_ATTEMPTS):
        count_attempt("ana", "127.0.0.1")

    page = Client().post(LOGIN, {"username": "ana", "password": "long and right"})

    assert "Too many attempts to log in. Wait 15 minutes" in page.content.decode()


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("https://evil.example", "/admin/"),
        ("//evil.example", "/admin/"),
        ("javascript:alert(1)", "/admin/"),
        ("", "/admin/"),
        ("/admin/memory/turn/", "/admin/memory/turn/"),
    ],
)
def test_a_log_in_leads_to_the_page_that_was_asked_for_or_to_the_admin(ana: User, wanted: str, place: str) -> None:
    typed = {"username": "ana", "password": "long and right", "next": wanted}

    answer = Client().post(LOGIN, typed)

    assert (answer.status_code, answer["Location"]) == (302, place)


@pytest.mark.slow
def test_a_successful_log_in_starts_the_count_again(ana: User) -> None:
    for _ in range(MAX_ATTEMPTS - 1):
        log_in("ana", "wrong")

    assert log_in("ana", "long and right")
    assert not log_in("ana", "wrong")
    assert log_in("ana", "long and right")


def test_attempts_on_one_name_from_many_addresses_are_refused() -> None:
    counted = [count_attempt("ana", f"192.0.2.{number}") for number in range(MAX_ATTEMPTS_ON_NAME + 1)]

    assert counted == [True] * MAX_ATTEMPTS_ON_NAME + [False]


def test_attempts_on_many_names_from_one_address_are_refused_unless_it_is_a_proxy(settings: object) -> None:
    counted = [count_attempt(f"name {number}", "192.0.2.1") for number in range(MAX_ATTEMPTS_FROM_ADDRESS + 1)]

    assert counted == [True] * MAX_ATTEMPTS_FROM_ADDRESS + [False]
    settings.TRUSTED_PROXIES = ["192.0.2.1"]  # type: ignore[attr-defined]
    assert count_attempt("another", "192.0.2.1")


def test_staff_can_log_in_while_redis_is_down(ana: User, dead_redis: None) -> None:
    forget_attempts("ana", "192.0.2.1")

    assert log_in("ana", "long and right")


def test_a_session_ends_after_twelve_hours(ana: User) -> None:
    client = Client()
    client.force_login(ana)

    assert client.session.get_expiry_age() == 12 * 3_600


def test_pages_ask_for_https_where_it_is_configured_and_probes_do_not(settings: object) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 3_600  # type: ignore[attr-defined]

    redirect = Client().get(LOGIN)
    secure = Client().get(LOGIN, secure=True)

    assert (redirect.status_code, redirect["Location"]) == (301, "https://testserver/admin/login/")
    assert secure["Strict-Transport-Security"] == "max-age=3600"
    assert Client().get("/health/live").status_code == 200


@pytest.mark.slow
def test_the_documented_production_settings_pass_the_checks_of_django() -> None:
    documented = {
        "MEMORY_ALLOWED_HOSTS": "memory.example",
        "MEMORY_SECURE_COOKIES": "true",
        "MEMORY_HTTPS_REDIRECT": "true",
        "MEMORY_HSTS_SECONDS": "31536000",
        "MEMORY_SECRET_KEY": token_urlsafe(50),
    }
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]

    done = subprocess.run(command, env=os.environ | documented, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("secret", ["changeme", "x" * 60, "django-insecure-0123456789012345678901234567890123456789"])
def test_default_and_weak_secrets_are_refused(secret: str) -> None:
    with pytest.raises(SettingError, match=r"^MEMORY_SECRET_KEY "):
        refuse_weak_secret(secret)


def test_a_random_secret_is_accepted() -> None:
    refuse_weak_secret(installed.SECRET_KEY)
