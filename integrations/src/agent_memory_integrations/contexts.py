"""The persistent context that an integration keeps its data in, found by its name."""

from agent_memory_client import AsyncClient, Client, ConflictError


class NamedContext:
    """A context of the client's agent, else of the key's, by name. Writing creates it, with the scope, if need be."""

    def __init__(self, client: Client, name: str, *, scope: str = "agent") -> None:
        self.client = client
        self.name = name
        self.scope = scope
        self._id = ""

    def find_id(self) -> str:
        """Return the id of the context, or nothing if there is none yet."""
        if not self._id:
            mine = self.client.settings.agent_id or self.client.get_key().agent_id
            found = self.client.list_contexts(name=self.name)
            self._id = next((str(each.id) for each in found if each.agent_id == mine), "")
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
            mine = self.client.settings.agent_id or (await self.client.get_key()).agent_id
            async for each in self.client.list_contexts(name=self.name):
                if each.agent_id == mine:
                    self._id = str(each.id)
                    break
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
