"""The files of pydantic-ai's memory as keyed entries of a persistent context, and the results of its operations."""

import re
from collections.abc import AsyncIterator
from typing import Any

from agent_memory_client import AsyncClient, NotFoundError, PreconditionFailedError
from agent_memory_client.calls import Call
from agent_memory_client.models import EntryAnswer
from agent_memory_client.table import OPERATIONS
from pydantic_ai_harness import memory

from agent_memory_integrations.contexts import AsyncNamedContext
from agent_memory_integrations.item_pages import ItemPages

FILES, RECEIPTS = "files", "receipts"
"""First segments of the keys of files and of results of operations, which are items of the context."""
RECEIPT_SECONDS = 7 * 86_400
SEGMENT = re.compile(r"(?!\.$)(?!.*\.\.)[A-Za-z0-9_.-]+")


class FileEntries:
    """Reads and writes the entries of files. The version of a file is the ETag of its entry."""

    def __init__(self, client: AsyncClient, *, context: str) -> None:
        self.client = client
        self._context = AsyncNamedContext(client, context)

    async def find(self, path: str) -> EntryAnswer | None:
        """Return the entry of a file, or None. Raises ValueError for a path that is none."""
        if not all(SEGMENT.fullmatch(segment) for segment in path.split("/")):
            raise ValueError(f"invalid memory path: {path!r}")
        if not (context_id := await self._context.find_id()):
            return None
        try:
            async for entry in self.client.list_context_entries(context_id, key=f"{FILES}/{path}"):
                return await self.client.get_entry(entry.id)
        except NotFoundError:
            # the entry or the context was deleted meanwhile
            self._context.drop_id()
        return None

    async def find_version(self, path: str, expected_version: str | None) -> EntryAnswer | None:
        """Return the entry of a file, or None. Raises MemoryConflictError if it has another version."""
        entry = await self.find(path)
        if (entry.etag if entry else None) != expected_version:
            raise conflict(path)
        return entry

    async def create(self, path: str, value: dict[str, Any]) -> str:
        """Store a new file, and return its version. Raises MemoryConflictError if there is one by now."""
        item = {"namespace": [FILES], "key": path, "value": value, "texts": [value["text"].strip() or path]}
        try:
            written = await self._context.write(items=[item | {"expected_version": 0}])
        except PreconditionFailedError as err:
            raise conflict(path) from err
        # the ETag of its entry
        return f'"{written.versions[0]}"'

    async def replace(self, path: str, entry: EntryAnswer, value: dict[str, Any]) -> None:
        """Store the next version of a file. Raises MemoryConflictError if somebody else was faster."""
        entry.content, entry.value = value["text"].strip() or path, value
        try:
            await entry.save()
        except PreconditionFailedError as err:
            raise conflict(path) from err

    async def delete(self, path: str, entry: EntryAnswer) -> None:
        """Delete a file. Raises MemoryConflictError if somebody else was faster."""
        delete: Call[None] = Call(
            operation=OPERATIONS["delete_entry"], ids=(entry.id,), fields={}, answer=None, etag=entry.etag
        )
        try:
            await self.client.run(delete)
        except (NotFoundError, PreconditionFailedError) as err:
            raise conflict(path) from err

    async def list_items(self, **question: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield all files as items, whose keys are the paths; with a query, the nearest ones first."""
        pages = ItemPages({"namespace_prefix": [FILES], **question})
        while (asked := pages.next_search()) and (found := await self._context.query(searches=[asked])):
            for item in pages.read_items(found):
                yield item

    async def find_receipt(self, operation: memory.MemoryOperation) -> dict[str, Any] | None:
        """Return what an operation of the last seven days came to, or None."""
        found = await self._context.query(reads=[{"namespace": [RECEIPTS], "key": operation.id}])
        receipt: dict[str, Any] | None = ((found["reads"][0] if found else None) or {}).get("value")
        return receipt

    async def store_receipt(self, operation: memory.MemoryOperation, receipt: dict[str, Any]) -> None:
        """Store what an operation came to."""
        item = {"namespace": [RECEIPTS], "key": operation.id, "value": receipt, "ttl_seconds": RECEIPT_SECONDS}
        await self._context.write(items=[item])


def conflict(path: str) -> memory.MemoryConflictError:
    return memory.MemoryConflictError(f"memory path {path!r} changed in the meantime")
