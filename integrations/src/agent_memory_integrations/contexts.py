"""The persistent context that an integration keeps its data in, found by its name."""

from agent_memory_client import AsyncClient, Client, ConflictError
from agent_memory_client.models import PersistentContextAnswer


class NamedContext:
    """A context of the client's agent, by name. Writing creates it, with the scope, if there is none."""

    def __init__(self, client: Client, name: str, *, scope: str = "agent") -> None:
        self.client = client
        self.name = name
        self.scope = scope
        self._id = ""

    def find_id(self) -> str:
        """Return the id of the context, or nothing if there is none yet."""
        if not self._id:
            mine = self.client.settings.agent_id
            found = self.client.list_contexts(name=self.name)
            self._id = next((str(each.id) for each in found if is_of_agent(each, mine)), "")
        return self._id

    def ensure_id(self) -> str:
        """Return the id of the context, creating it if there is none."""
        if not self.find_id():
            try:
                self._id = str(self.client.create_context(name=self.name, scope=self.scope).id)
            except ConflictError:
                # another process was faster
                if not self.find_id():
                    raise
        return self._id


class AsyncNamedContext:
    """`NamedContext` for an asynchronous client."""

    def __init__(self, client: AsyncClient, name: str, *, scope: str = "agent") -> None:
        self.client = client
        self.name = name
        self.scope = scope
        self._id = ""

    async def find_id(self) -> str:
        """Return the id of the context, or nothing if there is none yet."""
        if not self._id:
            async for each in self.client.list_contexts(name=self.name):
                if is_of_agent(each, self.client.settings.agent_id):
                    self._id = str(each.id)
        return self._id

    async def ensure_id(self) -> str:
        """Return the id of the context, creating it if there is none."""
        if not await self.find_id():
            try:
                self._id = str((await self.client.create_context(name=self.name, scope=self.scope)).id)
            except ConflictError:
                if not await self.find_id():
                    raise
        return self._id


def is_of_agent(context: PersistentContextAnswer, agent_id: str) -> bool:
    """Return True for a context of this agent. Without an agent, the key decides what is found."""
    return not agent_id or context.agent_id == agent_id
