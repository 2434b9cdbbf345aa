"""Rules that hold for every request to a provider's endpoint."""

from datetime import UTC, datetime

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured

from memory.errors import ProviderRefused
from memory.providers.connections import Deadline
from memory.providers.endpoints import Endpoint, ask_patiently, check_api_key, check_base_url, read_retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        ("", None),
        ("-1", None),
        ("soon", None),
        ("nan", None),
        ("Thu, 99 Jan 2026 00:00:10 GMT", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:10 GMT", None),
        ("Thu, 01 Jan 2026 00:00:10 +99999999999999", None),
        ("٣", None),
    ],
)
def test_retry_after_holds_digits_or_a_date(value: str, seconds: float | None) -> None:
    assert read_retry_after(value, now=NOW) == seconds


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "http://127.0.0.1:8000/v1",
        "https://user:password@host.example/v1/",
        "http://münchen.example",
        "http://[::1]:80/",
    ],
)
def test_a_base_url_that_is_empty_or_http_is_accepted(base_url: str) -> None:
    check_base_url(base_url)


@pytest.mark.parametrize(
    "base_url",
    [
        *("host.example:8000/password", "ftp://password", "http://", "http://[password/v1", "http://password:x/v1"),
        *("http://pass word/v1", "http://password../v1", f"http://{'password' * 8}.example/v1"),
    ],
)
def test_an_invalid_base_url_is_refused_without_disclosing_it(base_url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="OPENAI_BASE_URL must be") as caught:
        check_base_url(base_url)

    assert "password" not in str(caught.value)


@pytest.mark.parametrize("api_key", ["", "none", "sk-proj_A.b~c"])
def test_a_key_that_fits_in_a_header_is_accepted(api_key: str) -> None:
    check_api_key(api_key)


@pytest.mark.parametrize("api_key", ["password…", "password\n", " password", "pass\x00word"])
def test_an_invalid_key_is_refused_without_disclosing_it(api_key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="OPENAI_API_KEY must be") as caught:
        check_api_key(api_key)

    assert "password" not in str(caught.value)


@pytest.mark.parametrize("error", [httpx2.InvalidURL("http://secret"), UnicodeError("secret")])
def test_a_request_that_cannot_be_sent_is_refused_without_disclosing_it(error: Exception) -> None:
    def ask() -> None:
        raise error

    with pytest.raises(ProviderRefused, match="cannot be asked") as caught:
        ask_patiently(ask, endpoint=Endpoint(model="m"), deadline=Deadline.after(5))

    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
