"""Requests to endpoints of models of any kind: retries, size limits, and the translation of failures.

The retries of OpenAI's client are off, because they give every attempt the full timeout and know no deadline. A reply
is read as a stream, so that its size and its time are limited (`connections`). It is parsed by the caller, because the
client checks little of it and does not refuse HTML.

OpenAI's client takes half a second to load. It is loaded with the first model that is behind it.
"""

import email.utils
import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from pydantic import BaseModel, ConfigDict, ValidationError

from memory.errors import (
    ProviderError,
    ProviderRefused,
    ProviderReplyInvalid,
    ProviderTooSlow,
    ProviderUnavailable,
)
from memory.providers.breakers import Breaker
from memory.providers.connections import Deadline, keep_time, trusted_authorities

if TYPE_CHECKING:
    import openai

T = TypeVar("T")

MAX_WAIT_SECONDS = 30.0
OPENAI_ADDRESS = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint: its address, its model, and the limits of retries. `what` names it in error messages."""

    what: ClassVar[str] = "endpoint"

    model: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    """Address of the API. Empty: that of OpenAI."""
    timeout_seconds: float = 5.0
    """Timeout of one request."""
    max_attempts: int = 4
    backoff_seconds: float = 0.25
    """Wait before the second attempt. It doubles before each later one; a random half to all of it is waited."""
    breaker: Breaker = field(default_factory=Breaker, repr=False, compare=False)


def check_base_url(base_url: str, *, setting: str = "OPENAI_BASE_URL") -> None:
    """Check an address. Raises ImproperlyConfigured, which does not repeat it: it may hold a password."""
    try:
        host = httpx2.URL(base_url)
        # as the socket will encode it; a name that cannot be is a UnicodeError
        is_host = bool(host.raw_host.decode().encode("idna")) and "%" not in host.host
        is_sound = not base_url or (urlsplit(base_url).scheme in ("http", "https") and is_host)
    except (ValueError, httpx2.InvalidURL):
        is_sound = False
    if not is_sound:
        raise ImproperlyConfigured(f"{setting} must be empty or a URL that starts with http:// or https://")


def check_api_key(api_key: str, *, setting: str = "OPENAI_API_KEY") -> None:
    """Check that a header can hold the key. Raises ImproperlyConfigured, without repeating it."""
    if not (api_key.isascii() and api_key.isprintable() and api_key == api_key.strip()):
        raise ImproperlyConfigured(f"{setting} must be of printable ASCII, without white space around it")


class StrictReply(BaseModel):
    """A reply of an endpoint, or a part of one, validated strictly: a number in quotes is no number."""

    model_config = ConfigDict(strict=True)


def openai_connection(setting: str) -> dict[str, Any]:
    """Return key and address of the OpenAI-compatible endpoint. Raises ImproperlyConfigured without a sound one."""
    if not (settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL):
        raise ImproperlyConfigured(f"{setting} needs OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint without keys")
    check_base_url(settings.OPENAI_BASE_URL)
    check_api_key(settings.OPENAI_API_KEY)
    return {"api_key": settings.OPENAI_API_KEY, "base_url": settings.OPENAI_BASE_URL}


def endpoint_connection(base_url: str) -> dict[str, Any]:
    """Return key and address of an endpoint: OPENAI_API_KEY belongs to the address of the settings, and to no other.

    An address of `""` is that of the settings. Raises ImproperlyConfigured for an unsound one.
    """
    if base_url in ("", settings.OPENAI_BASE_URL or OPENAI_ADDRESS):
        return openai_connection("The embedding model")
    check_base_url(base_url, setting="The address of the embedding endpoint")
    check_api_key(settings.EMBEDDING_SECOND_API_KEY, setting="EMBEDDING_SECOND_API_KEY")
    return {"api_key": settings.EMBEDDING_SECOND_API_KEY, "base_url": base_url}


def has_secret(base_url: str) -> bool:
    """Return True if an address holds a user, a password, or parameters, which may be secrets."""
    parts = urlsplit(base_url)
    return "@" in parts.netloc or bool(parts.query)


def open_client(endpoint: Endpoint) -> "openai.OpenAI":
    import openai  # noqa: PLC0415  not loaded by processes without such a model

    return openai.OpenAI(
        # an endpoint of one's own may need no key; the client insists on one
        api_key=endpoint.api_key or "none",
        base_url=endpoint.base_url or None,
        max_retries=0,
        http_client=keep_time(openai.DefaultHttpxClient(verify=trusted_authorities())),
    )


def ask_patiently(ask: Callable[[], T], *, endpoint: Endpoint, deadline: Deadline) -> T:
    """Return the answer, with retries while they may help and the deadline leaves time. Raises a ProviderError.

    Raises ProviderUnavailable immediately while the endpoint's breaker is open.
    """
    return endpoint.breaker.call(lambda: ask_again(ask, endpoint=endpoint, deadline=deadline), what=endpoint.what)


def ask_again(ask: Callable[[], T], *, endpoint: Endpoint, deadline: Deadline) -> T:
    attempt = 1
    while True:
        try:
            return ask_once(ask, what=endpoint.what)
        except ProviderUnavailable as failure:
            wait = wait_seconds(endpoint, attempt, failure.retry_after_seconds)
            is_last = attempt == endpoint.max_attempts or wait > MAX_WAIT_SECONDS
            if is_last or deadline.left_seconds() <= wait:
                raise
        time.sleep(wait)
        attempt += 1


def ask_once(ask: Callable[[], T], *, what: str) -> T:
    """Return the answer of one request. Translates exceptions of the client to a ProviderError."""
    try:
        return ask()
    except client_failures() as err:
        failure = translate_failure(err, what=what)
    except (httpx2.InvalidURL, UnicodeError):
        # raised before anything is sent, or by a redirection to nowhere
        failure = ProviderRefused(f"the {what} cannot be asked: its address or its key is invalid", status=0)
    # outside the handler, or the original, whose text may echo the key, would be its context in logs
    raise failure


def client_failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of the clients that are loaded."""
    loaded = sys.modules.get("openai")
    return (httpx2.HTTPError,) if loaded is None else (httpx2.HTTPError, loaded.OpenAIError)


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


def parse_reply(parse: Callable[[bytes], T], body: bytes, *, what: str) -> T:
    """Return the parsed reply, which should be the JSON of `what`. Raises ProviderReplyInvalid."""
    try:
        return parse(body)
    except ValidationError:
        pass
    # outside the handler, or the original, which quotes the reply, would be its context in logs
    raise ProviderReplyInvalid(f"the reply is not the JSON of {what}")


def translate_failure(err: Exception, *, what: str) -> ProviderError:
    """Return the error that says what to do. It quotes nothing of the provider's message."""
    if not isinstance(err, httpx2.HTTPError):
        return translate_client_failure(err, what=what)
    if isinstance(err, httpx2.TimeoutException):
        return ProviderTooSlow(f"the {what} did not answer in time")
    if isinstance(err, httpx2.TransportError):
        return ProviderUnavailable(f"the connection to the {what} failed")
    return ProviderReplyInvalid(f"the answer of the {what} could not be read ({type(err).__name__})")


def translate_client_failure(err: Exception, *, what: str) -> ProviderError:
    """Return the same for an exception of OpenAI's client."""
    import openai  # noqa: PLC0415  as above

    if isinstance(err, openai.APIStatusError):
        return translate_status(err.response, what=what)
    if isinstance(err, openai.APITimeoutError):
        return ProviderTooSlow(f"the {what} did not answer in time")
    if isinstance(err, openai.APIConnectionError):
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
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3), a number or a date; None for anything else."""
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        return None
    return max(0.0, (until - now).total_seconds())
