"""The persistent context that an integration keeps its data in, found by its name.

Its id is kept. After somebody has deleted the context, the next call finds none, or makes a new one.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_memory_client import AsyncClient, Client, ConflictError, NotFoundError


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

    def query(self, **asked: Any) -> dict[str, Any] | None:
        """Return what `query_items` answers, or None if there is no context."""
        answer = self._call(self.find_id, lambda found: self.client.query_items(found, **asked))
        return None if answer is None else dict(answer.to_dict())

    def write(self, **changes: Any) -> None:
        """Call `write_items`, on a new context if there is none."""
        self._call(self.ensure_id, lambda found: self.client.write_items(found, **changes))

    def _call(self, find: Callable[[], str], send: Callable[[str], Any]) -> Any:
        was_known, found = bool(self._id), find()
        try:
            return send(found) if found else None
        except NotFoundError:
            if not was_known:
                raise
        # it was deleted since
        self._id = ""
        return self._call(find, send)


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

    def drop_id(self) -> None:
        """Look for the context anew next time."""
        self._id = ""

    async def query(self, **asked: Any) -> dict[str, Any] | None:
        """Return what `query_items` answers, or None if there is no context."""
        answer = await self._call(self.find_id, lambda found: self.client.query_items(found, **asked))
        return None if answer is None else dict(answer.to_dict())

    async def write(self, **changes: Any) -> Any:
        """Call `write_items`, on a new context if there is none, and return its answer."""
        return await self._call(self.ensure_id, lambda found: self.client.write_items(found, **changes))

    async def _call(self, find: Callable[[], Awaitable[str]], send: Callable[[str], Awaitable[Any]]) -> Any:
        was_known, found = bool(self._id), await find()
        try:
            return await send(found) if found else None
        except NotFoundError:
            if not was_known:
                raise
        # it was deleted since
        self._id = ""
        return await self._call(find, send)
