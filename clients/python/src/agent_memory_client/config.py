"""Settings of a client: arguments, else the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_memory_client.errors import AgentMemoryError

API = "/api/v1"
DEFAULT_BASE_URL = "http://127.0.0.1:8002"
DEFAULT_TIMEOUT_SECONDS = 30.0
DEFAULT_MAX_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The service's address and who asks. `base_url` ends in `/api/v1`; an empty id is not sent."""

    base_url: str
    api_key: str = field(repr=False)
    agent_id: str
    user_id: str
    max_retries: int


def read_settings(
    *,
    base_url: str | None,
    api_key: str | None,
    agent_id: str | None,
    user_id: str | None,
    max_retries: int,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Return the settings. What is None comes from AGENT_MEMORY_BASE_URL, _API_KEY, _AGENT_ID and _USER_ID."""
    key = read_key(environ.get("AGENT_MEMORY_API_KEY", "") if api_key is None else api_key)
    url = environ.get("AGENT_MEMORY_BASE_URL", DEFAULT_BASE_URL) if base_url is None else base_url
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise AgentMemoryError(f"{url!r} is not the address of a service. It begins with http:// or https://.")
    return Settings(
        base_url=url if url.endswith(API) else url + API,
        api_key=key,
        agent_id=environ.get("AGENT_MEMORY_AGENT_ID", "") if agent_id is None else agent_id,
        user_id=environ.get("AGENT_MEMORY_USER_ID", "") if user_id is None else user_id,
        max_retries=max_retries,
    )


def read_key(text: str) -> str:
    """Return a key without the line end of its file. Raises AgentMemoryError, which never shows it."""
    key = text.strip()
    if not key:
        raise AgentMemoryError("There is no key. Pass api_key=…, or set AGENT_MEMORY_API_KEY.")
    if not is_key(key):
        raise AgentMemoryError("The key has blanks, line ends or characters that no key has. Pass the key alone.")
    return key


def is_key(text: str) -> bool:
    """Return True if a text may be a key: without characters that cannot stand in a header."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text
