"""Endpoints of models, whatever they are asked for: how patiently, and what their failures mean.

The retries of OpenAI's client are off: they give every attempt the full timeout and know of no deadline. A reply is
read as a stream, so that its size is not the server's to choose, nor its slowness (`connections`), and parsed by who
asked: the client checks little of it, and refuses no HTML.
"""

import email.utils
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, TypeVar
from urllib.parse import urlsplit

import httpx2
import openai
from django.core.exceptions import ImproperlyConfigured

from memory.errors import (
    ProviderError,
    ProviderRefused,
    ProviderReplyInvalid,
    ProviderTooSlow,
    ProviderUnavailable,
)
from memory.providers.connections import keep_time, trusted_authorities
from memory.providers.deadlines import Deadline

T = TypeVar("T")

MAX_WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint: address, model, and patience; `what` names it in errors."""

    what: ClassVar[str] = "endpoint"

    model: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    """Empty: OpenAI's own."""
    timeout_seconds: float = 5.0
    """Of one request."""
    max_attempts: int = 4
    backoff_seconds: float = 0.25
    """Before the second attempt, doubled before each later one, between half and all of it by chance."""


def check_base_url(base_url: str, *, setting: str = "OPENAI_BASE_URL") -> None:
    """Check an address. Raises ImproperlyConfigured, which does not repeat it: it may hold a password."""
    try:
        parts = urlsplit(base_url)
        is_sound = not base_url or (parts.scheme in ("http", "https") and is_host(httpx2.URL(base_url)))
    except (ValueError, httpx2.InvalidURL):
        is_sound = False
    if not is_sound:
        raise ImproperlyConfigured(f"{setting} must be empty or a URL that starts with http:// or https://")


def is_host(url: httpx2.URL) -> bool:
    """Return whether a name can be resolved. Raises UnicodeError if it cannot be encoded."""
    # as the socket will do it
    return bool(url.raw_host.decode().encode("idna")) and "%" not in url.host


def check_api_key(api_key: str, *, setting: str = "OPENAI_API_KEY") -> None:
    """Check that a header can hold the key. Raises ImproperlyConfigured, without repeating it."""
    if not (api_key.isascii() and api_key.isprintable() and api_key == api_key.strip()):
        raise ImproperlyConfigured(f"{setting} must be of printable ASCII, without white space around it")


def open_client(endpoint: Endpoint) -> openai.OpenAI:
    return openai.OpenAI(
        # an endpoint of one's own may need no key; the client insists on one
        api_key=endpoint.api_key or "none",
        base_url=endpoint.base_url or None,
        max_retries=0,
        http_client=keep_time(openai.DefaultHttpxClient(verify=trusted_authorities())),
    )


def ask_patiently(ask: Callable[[], T], *, endpoint: Endpoint, deadline: Deadline) -> T:
    """Return the answer, asking again while that may help and the deadline leaves time. Raises a ProviderError."""
    attempt = 1
    while True:
        try:
            return ask_once(ask, what=endpoint.what)
        except ProviderUnavailable as failure:
            wait = wait_seconds(endpoint, attempt, failure.retry_after_seconds)
            is_last = attempt == endpoint.max_attempts or wait > MAX_WAIT_SECONDS
            if is_last or not deadline.leaves_room_for(wait):
                raise
        time.sleep(wait)
        attempt += 1


def ask_once(ask: Callable[[], T], *, what: str) -> T:
    """Return the answer of one request. Raises a ProviderError for what the client raises."""
    try:
        return ask()
    except (openai.OpenAIError, httpx2.HTTPError) as err:
        failure = translate_failure(err, what=what)
    except (httpx2.InvalidURL, UnicodeError):
        # raised before anything is sent, or by a redirection to nowhere
        failure = ProviderRefused(f"the {what} cannot be asked: its address or its key is none", status=0)
    # outside the handler, or the original, whose text may echo the key, would be its context in logs
    raise failure


def wait_seconds(endpoint: Endpoint, attempt: int, retry_after_seconds: float | None) -> float:
    if retry_after_seconds is not None:
        return retry_after_seconds
    # jitter, or all workers that failed together come back together
    return endpoint.backoff_seconds * 2.0 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311


def read_reply(parts: Iterable[bytes], *, most_bytes: int) -> bytes:
    """Return the reply. Raises ProviderReplyInvalid for one that is too large."""
    body = bytearray()
    for part in parts:
        body += part
        if len(body) > most_bytes:
            raise ProviderReplyInvalid(f"the reply is larger than {most_bytes} bytes, too large for what was asked")
    return bytes(body)


def translate_failure(err: openai.OpenAIError | httpx2.HTTPError, *, what: str) -> ProviderError:
    """Return the error that says what to do, without a word of the provider's own."""
    if isinstance(err, openai.APIStatusError):
        return translate_status(err.response, what=what)
    if isinstance(err, openai.APITimeoutError | httpx2.TimeoutException):
        return ProviderTooSlow(f"the {what} did not answer in time")
    if isinstance(err, openai.APIConnectionError | httpx2.TransportError):
        return ProviderUnavailable(f"the connection to the {what} failed")
    return ProviderReplyInvalid(f"the answer of the {what} could not be read ({type(err).__name__})")


def translate_status(response: httpx2.Response, *, what: str) -> ProviderError:
    status = response.status_code
    if status in (408, 409, 425, 429) or status >= 500:
        wait = read_retry_after(response.headers.get("retry-after", ""), now=datetime.now(UTC))
        # the server's own limit of time, or a gateway's before it
        failure = ProviderTooSlow if status in (408, 504) else ProviderUnavailable
        return failure(f"the {what} answered {status}", retry_after_seconds=wait)
    if status >= 400:
        return ProviderRefused(f"the {what} refused the request with {status}", status=status)
    return ProviderReplyInvalid(f"the {what} answered {status}")


def read_retry_after(value: str, *, now: datetime) -> float | None:
    """Seconds from a Retry-After header (RFC 9110, 10.2.3): digits or a date; None without a sound one."""
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        return None
    return max(0.0, (until - now).total_seconds())
