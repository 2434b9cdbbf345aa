"""For whom a request acts: the client with its API key, and the agent and the user that the key is bound to."""

import time
from dataclasses import dataclass, field

import httpx2
from agent_memory_client import AgentMemoryError, AsyncClient, AuthenticationError
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
    """The clients of the keys that requests came with. `api_key` is that of a server over stdio, which has one."""

    base_url: str | None = None
    api_key: str | None = None
    http: httpx2.AsyncClient | None = None
    _known: dict[str, tuple[float, KeyAnswer]] = field(default_factory=dict)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the key may do, or None if the service does not know it."""
        try:
            key = await self.read_key(token)
        except AuthenticationError:
            return None
        return AccessToken(token=token, client_id=key.prefix, scopes=list(key.scopes))

    async def read_key(self, token: str | None) -> KeyAnswer:
        """Return what a key may do. Raises the errors of the client."""
        read_at, known = self._known.get(token or "", (0.0, None))
        if known is not None and time.monotonic() - read_at < KNOWN_SECONDS:
            return known
        async with self._open(token, agent_id="", user_id="") as client:
            found = await client.get_key()
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[token or ""] = time.monotonic(), found
        return found

    async def scopes(self) -> frozenset[str]:
        """Return the scopes of the present request's key. A key that cannot be read has none."""
        try:
            return frozenset((await self.read_key(self._token())).scopes)
        except AgentMemoryError:
            return frozenset()

    async def client(self) -> AsyncClient:
        """Return the client of the present request, which acts for the agent and the user of its key."""
        token = self._token()
        key = await self.read_key(token)
        client = self._open(token, agent_id=key.agent_id or None, user_id=key.user_id or None)
        return client if client.settings.agent_id else self._open(token, agent_id=DEFAULT_AGENT, user_id=key.user_id)

    def _token(self) -> str | None:
        access = get_access_token()
        return access.token if access else self.api_key

    def _open(self, token: str | None, *, agent_id: str | None, user_id: str | None) -> AsyncClient:
        self.http = self.http or httpx2.AsyncClient(timeout=60.0)
        return AsyncClient(self.base_url, token, agent_id=agent_id, user_id=user_id, http_client=self.http)
