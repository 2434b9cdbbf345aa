"""A `MemoryStore` for the memory capability of pydantic-ai's harness: files are keyed entries of a persistent context.

A version is the ETag of the entry, and `expected_version` goes to the service as If-Match.
"""

from collections.abc import Mapping
from typing import Any

from agent_memory_client import AsyncClient
from pydantic_ai_harness import memory

from agent_memory_integrations.pydantic_files import FileEntries

CONTEXT = "pydantic-ai"


class AgentMemoryStore:
    """The memory files of one agent, with a tree for each user of it: `Memory(store=AgentMemoryStore(client))`."""

    def __init__(self, client: AsyncClient, *, context: str = "") -> None:
        user_id = client.settings.user_id
        own_context = f"{CONTEXT}:{user_id}" if user_id else CONTEXT
        self._files = FileEntries(client, context=context or own_context)

    async def read(self, path: str, *, max_chars: int) -> memory.MemoryFile | None:
        """Return a file, or None."""
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        entry = await self._files.find(path)
        if entry is None:
            return None
        text, about = entry.value["text"], entry.value
        return memory.MemoryFile(
            content=text[:max_chars],
            version=entry.etag,
            operation_id=about.get("operation_id"),
            truncated=len(text) > max_chars,
            metadata=about.get("metadata"),
        )

    async def get_operation(self, operation: memory.MemoryOperation) -> memory.MemoryMutation | None:
        """Return the result of an operation of the last seven days."""
        receipt = await self._files.find_receipt(operation)
        if receipt is None:
            return None
        if receipt["fingerprint"] != operation.fingerprint:
            raise memory.MemoryOperationConflictError(f"operation id {operation.id!r} was used with other arguments")
        return memory.MemoryMutation(version=receipt["version"], replayed=True, existed=receipt["existed"])

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: memory.MemoryOperation | None = None
    ) -> memory.MemoryMutation:
        """Create or replace a file, if its version is `expected_version`."""
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: memory.MemoryOperation | None = None,
    ) -> memory.MemoryMutation:
        """Create or replace a file with what the write says about itself."""
        if operation and (receipt := await self.get_operation(operation)):
            return receipt
        value: dict[str, Any] = {"text": content, "operation_id": operation.id if operation else None}
        value |= {"metadata": dict(metadata)} if metadata else {}
        entry = await self._files.find_version(path, expected_version)
        if entry is None:
            return await self._finish(operation, await self._files.create(path, value), existed=False)
        await self._files.replace(path, entry, value)
        return await self._finish(operation, entry.etag, existed=True)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: memory.MemoryOperation | None = None
    ) -> memory.MemoryMutation:
        """Delete a file, if its version is `expected_version`."""
        if operation and (receipt := await self.get_operation(operation)):
            return receipt
        if entry := await self._files.find_version(path, expected_version):
            await self._files.delete(path, entry)
        return await self._finish(operation, None, existed=entry is not None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the paths that begin with `prefix`, sorted."""
        found = [item["key"] async for item in self._files.list_items() if item["key"].startswith(prefix)]
        return sorted(found)[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> memory.MemorySearchResult:
        """Find files right below `prefix` by meaning, best first."""
        matches: list[memory.MemorySearchMatch] = []
        left, scanned = max_chars, 0
        async for item in self._files.list_items(**({"query": query} if query.strip() else {})):
            path = item["key"]
            if not path.startswith(prefix) or "/" in path.removeprefix(prefix) or scanned >= max_files:
                continue
            scanned += 1
            snippet = item["value"]["text"][: min(max_file_chars, left)]
            if item["score"] and snippet and len(matches) < limit:
                left -= len(snippet)
                matches.append(memory.MemorySearchMatch(path=path, snippet=snippet, score=item["score"]))
        return memory.MemorySearchResult(matches=matches, scanned=scanned, truncated=scanned > len(matches))

    async def _finish(
        self, operation: memory.MemoryOperation | None, version: str | None, *, existed: bool
    ) -> memory.MemoryMutation:
        if operation:
            receipt = {"fingerprint": operation.fingerprint, "version": version, "existed": existed}
            await self._files.store_receipt(operation, receipt)
        return memory.MemoryMutation(version=version, replayed=False, existed=existed)
