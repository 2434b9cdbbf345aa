"""For whom a request acts: the client with its API key, and the agent and the user that the key is bound to."""

import time
from dataclasses import dataclass, field

import httpx2
from agent_memory_client import AsyncClient, AuthenticationError, PermissionDeniedError
from agent_memory_client.config import is_key
from agent_memory_client.models import KeyAnswer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

DEFAULT_AGENT = "mcp"
"""Agent of a key that is bound to none, where the environment names none."""
KNOWN_SECONDS = 30.0
"""How long a key is trusted without asking the service again. The service checks it at every call anyway."""
MAX_KNOWN = 1_000


@dataclass(slots=True)
class Callers:
    """The clients of the keys that requests came with.

    A server over stdio has one `api_key`, and acts for this agent and user where the key is bound to none.
    """

    base_url: str
    api_key: str = ""
    agent_id: str = ""
    user_id: str = ""
    http: httpx2.AsyncClient | None = None
    _known: dict[str, tuple[float, KeyAnswer]] = field(default_factory=dict)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the key may do, or None if the service refuses it. Raises the other errors of the client."""
        if not is_key(token):
            return None
        try:
            key = await self.read_key(token)
        except (AuthenticationError, PermissionDeniedError):
            return None
        return AccessToken(token=token, client_id=key.prefix, scopes=list(key.scopes))

    async def read_key(self, token: str) -> KeyAnswer:
        """Return what a key may do. Raises the errors of the client."""
        read_at, known = self._known.get(token, (0.0, None))
        if known is not None and time.monotonic() - read_at < KNOWN_SECONDS:
            return known
        async with self.open(token, agent_id="", user_id="") as client:
            found = await client.get_key()
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[token] = time.monotonic(), found
        return found

    async def scopes(self) -> frozenset[str]:
        """Return the scopes of the present request's key. Raises the errors of the client."""
        return frozenset((await self.read_key(self._token())).scopes)

    async def client(self) -> AsyncClient:
        """Return the client of the present request, which acts for the agent and the user of its key."""
        token = self._token()
        key = await self.read_key(token)
        agent_id = key.agent_id or self.agent_id or DEFAULT_AGENT
        return self.open(token, agent_id=agent_id, user_id=key.user_id or self.user_id)

    def _token(self) -> str:
        access = get_access_token()
        return access.token if access else self.api_key

    def open(self, token: str, *, agent_id: str, user_id: str) -> AsyncClient:
        """Return a client. All of them share their connections."""
        self.http = self.http or httpx2.AsyncClient(timeout=60.0)
        return AsyncClient(self.base_url, token, agent_id=agent_id, user_id=user_id, http_client=self.http)
