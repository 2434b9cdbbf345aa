"""A `MemoryStore` for the memory capability of pydantic-ai's harness: files are keyed entries of a persistent context.

A version is the ETag of the entry, and `expected_version` goes to the service as If-Match.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agent_memory_client import AsyncClient, NotFoundError, PreconditionFailedError
from agent_memory_client.calls import Call
from agent_memory_client.models import EntryAnswer
from agent_memory_client.table import OPERATIONS
from pydantic_ai_harness import memory

from agent_memory_integrations.contexts import AsyncNamedContext

CONTEXT = "pydantic-ai"
FILES, RECEIPTS = "files", "receipts"
"""First segments of the keys of files and of results of operations, which are items of the context."""
RECEIPT_SECONDS = 7 * 86_400
MAX_FOUND = 1_000
SEGMENT = re.compile(r"(?!\.$)(?!.*\.\.)[A-Za-z0-9_.-]+")


class AgentMemoryStore:
    """The memory files of one agent, with a tree for each user of it: `Memory(store=AgentMemoryStore(client))`."""

    def __init__(self, client: AsyncClient, *, context: str = "") -> None:
        self.client = client
        user_id = client.settings.user_id
        self._context = AsyncNamedContext(client, context or (f"{CONTEXT}:{user_id}" if user_id else CONTEXT))

    async def read(self, path: str, *, max_chars: int) -> memory.MemoryFile | None:
        """Return a file, or None."""
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        entry = await self._find(path)
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
        if not (context_id := await self._context.find_id()):
            return None
        found = await self.client.query_items(context_id, reads=[{"namespace": [RECEIPTS], "key": operation.id}])
        receipt = (found.to_dict()["reads"][0] or {}).get("value")
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
        entry = await self._check(path, expected_version)
        if entry is None:
            context_id = await self._context.ensure_id()
            made = await self.client.add_context_entries(
                context_id, key=f"{FILES}/{path}", content=content.strip() or path, value=value
            )
            entry = await self.client.get_entry(made["id"])
            return await self._finish(operation, entry.etag, existed=False)
        entry.content, entry.value = content.strip() or path, value
        try:
            await entry.save()
        except PreconditionFailedError as err:
            raise conflict(path) from err
        return await self._finish(operation, entry.etag, existed=True)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: memory.MemoryOperation | None = None
    ) -> memory.MemoryMutation:
        """Delete a file, if its version is `expected_version`."""
        if operation and (receipt := await self.get_operation(operation)):
            return receipt
        if entry := await self._check(path, expected_version):
            delete: Call[None] = Call(
                operation=OPERATIONS["delete_entry"], ids=(entry.id,), fields={}, answer=None, etag=entry.etag
            )
            try:
                await self.client.run(delete)
            except (NotFoundError, PreconditionFailedError) as err:
                raise conflict(path) from err
        return await self._finish(operation, None, existed=entry is not None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the paths that begin with `prefix`, sorted."""
        found = [item["key"] async for item in self._list({}) if item["key"].startswith(prefix)]
        return sorted(found)[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> memory.MemorySearchResult:
        """Find files right below `prefix` by meaning, best first."""
        matches: list[memory.MemorySearchMatch] = []
        left, scanned = max_chars, 0
        async for item in self._list({"query": query} if query.strip() else {}):
            path = item["key"]
            if not path.startswith(prefix) or "/" in path.removeprefix(prefix) or scanned >= max_files:
                continue
            scanned += 1
            snippet = item["value"]["text"][: min(max_file_chars, left)]
            if item["score"] and snippet and len(matches) < limit:
                left -= len(snippet)
                matches.append(memory.MemorySearchMatch(path=path, snippet=snippet, score=item["score"]))
        return memory.MemorySearchResult(matches=matches, scanned=scanned, truncated=scanned > len(matches))

    async def _list(self, question: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        context_id, offset = await self._context.find_id(), 0
        items: list[dict[str, Any]] = [{}] * MAX_FOUND
        while context_id and len(items) == MAX_FOUND:
            asked = {"namespace_prefix": [FILES], "limit": MAX_FOUND, "offset": offset, **question}
            items = (await self.client.query_items(context_id, searches=[asked])).to_dict()["searches"][0]["items"]
            offset += MAX_FOUND
            for item in items:
                yield item

    async def _find(self, path: str) -> EntryAnswer | None:
        if not all(SEGMENT.fullmatch(segment) for segment in path.split("/")):
            raise ValueError(f"invalid memory path: {path!r}")
        if not (context_id := await self._context.find_id()):
            return None
        async for entry in self.client.list_context_entries(context_id, key=f"{FILES}/{path}"):
            return await self.client.get_entry(entry.id)
        return None

    async def _check(self, path: str, expected_version: str | None) -> EntryAnswer | None:
        entry = await self._find(path)
        if (entry.etag if entry else None) != expected_version:
            raise conflict(path)
        return entry

    async def _finish(
        self, operation: memory.MemoryOperation | None, version: str | None, *, existed: bool
    ) -> memory.MemoryMutation:
        if operation:
            value = {"fingerprint": operation.fingerprint, "version": version, "existed": existed}
            item = {"namespace": [RECEIPTS], "key": operation.id, "value": value, "ttl_seconds": RECEIPT_SECONDS}
            await self.client.write_items(await self._context.ensure_id(), items=[item])
        return memory.MemoryMutation(version=version, replayed=False, existed=existed)


def conflict(path: str) -> memory.MemoryConflictError:
    return memory.MemoryConflictError(f"memory path {path!r} changed in the meantime")
