"""What is true of an endpoint whatever it is asked for."""

from datetime import UTC, datetime

import pytest
from django.core.exceptions import ImproperlyConfigured

from memory.providers.endpoints import check_base_url, read_retry_after

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


@pytest.mark.parametrize("base_url", ["", "http://127.0.0.1:8000/v1", "https://user:password@host.example/v1/"])
def test_a_base_url_is_empty_or_of_the_web(base_url: str) -> None:
    check_base_url(base_url)


@pytest.mark.parametrize("base_url", ["host.example:8000/password", "ftp://password", "http://", "http://[password/v1"])
def test_no_other_base_url_is_taken_or_repeated(base_url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="OPENAI_BASE_URL must be") as caught:
        check_base_url(base_url)

    assert "password" not in str(caught.value)
