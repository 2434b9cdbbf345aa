"""Compare an `AgentMemoryStore` with the harness's own store in memory, and let an agent use it."""

import asyncio
from typing import Any

from agent_memory_client import AsyncClient
from agent_memory_integrations.pydantic_ai import AgentMemoryStore
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.memory import (
    InMemoryStore,
    Memory,
    MemoryConflictError,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)


async def outcome(call: Any) -> Any:
    """Return what a call returns without versions, which stores choose, or the name of its error."""
    try:
        result = await call
    except (MemoryConflictError, MemoryOperationConflictError, ValueError) as err:
        return type(err).__name__
    if hasattr(result, "existed"):
        return (result.version is None, result.replayed, result.existed)
    if hasattr(result, "content"):
        return (result.content, result.truncated, result.metadata, result.operation_id)
    return result


async def run_story(store: Any) -> list[Any]:
    first, other = MemoryOperation(id="o1", fingerprint="a"), MemoryOperation(id="o1", fingerprint="b")
    outcomes = [
        await outcome(store.read("a.md", max_chars=10)),
        await outcome(store.write("a.md", "one", expected_version="7")),
        await outcome(store.write("a.md", "one", expected_version=None, operation=first)),
        await outcome(store.write("a.md", "one", expected_version=None, operation=first)),
        await outcome(store.get_operation(other)),
        await outcome(store.write("a.md", "two", expected_version=None)),
        await outcome(store.read("a.md", max_chars=2)),
    ]
    stale = (await store.read("a.md", max_chars=9)).version
    written = await store.write_with_metadata("a.md", "", expected_version=stale, metadata={"by": "me"})
    outcomes += [
        await outcome(store.read("a.md", max_chars=9)),
        await outcome(store.write("a.md", "late", expected_version=stale)),
        await outcome(store.delete("a.md", expected_version=stale)),
        await outcome(store.write("b/c.md", "Madeira", expected_version=None)),
        await outcome(store.write("b/d/e.md", "Lisbon", expected_version=None)),
        await outcome(store.list_paths("b/", limit=10)),
        await outcome(store.list_paths(limit=2)),
        await outcome(store.delete("a.md", expected_version=written.version)),
        await outcome(store.delete("a.md", expected_version=None)),
        await outcome(store.read("a.md", max_chars=9)),
        await outcome(store.write("a.md", "again", expected_version=None)),
        await outcome(store.read("../a.md", max_chars=9)),
        await outcome(store.write("a/./b", "x", expected_version=None)),
    ]
    return outcomes


async def create_at_once(client: AsyncClient) -> None:
    """Create each file by several stores at once: one does it, and knows its version."""
    stores = [AgentMemoryStore(client, context="race") for _ in range(4)]
    for path in ("a.md", "b.md", "c.md"):
        writes = [store.write(path, f"of {at}", expected_version=None) for at, store in enumerate(stores)]
        done = await asyncio.gather(*writes, return_exceptions=True)
        [(at, made)] = [(at, each) for at, each in enumerate(done) if not isinstance(each, BaseException)]
        assert all(isinstance(each, MemoryConflictError) for each in done if each is not made), done
        found = await stores[0].read(path, max_chars=9)
        assert found is not None
        assert (found.content, found.version) == (f"of {at}", made.version)


async def create_with_secret(client: AsyncClient) -> None:
    """Create a file with a secret, which the account masks: another text is stored, and its version is known."""
    store = AgentMemoryStore(client, context="secrets")
    made = await store.write("a.md", "api_key = sk-proj-abcdefghijklmnopqrstuvwxyz123456", expected_version=None)
    found = await store.read("a.md", max_chars=99)
    assert found is not None
    assert "abcdefghij" not in found.content, found.content
    assert found.version == made.version


async def go_on_after_the_context_was_deleted(client: AsyncClient) -> None:
    store = AgentMemoryStore(client, context="gone")
    await store.write("a.md", "first", expected_version=None)
    [context] = [each async for each in client.list_contexts(name="gone")]
    await client.delete_context(context.id)
    assert await store.read("a.md", max_chars=10) is None
    await store.write("a.md", "second", expected_version=None)
    found = await store.read("a.md", max_chars=10)
    assert found, found
    assert found.content == "second", found


async def main() -> None:
    async with (
        AsyncClient(agent_id="tester", user_id="tess") as client,
        AsyncClient(agent_id="tester", user_id="ben") as other,
    ):
        store = AgentMemoryStore(client)
        for protocol in (MemoryStore, MetadataMemoryStore, SearchableMemoryStore):
            assert isinstance(store, protocol), protocol
        ours, theirs = await run_story(store), await run_story(InMemoryStore())
        assert ours == theirs, [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
        limits = {"limit": 5, "max_files": 10, "max_chars": 100, "max_file_chars": 100}
        found = await store.search("b/", "Madeira", **limits)
        assert [(each.path, each.snippet) for each in found.matches] == [("b/c.md", "Madeira")], found
        assert await AgentMemoryStore(other).list_paths(limit=10) == []
        await create_at_once(client)
        await create_with_secret(client)
        await go_on_after_the_context_was_deleted(client)
        agent = Agent(
            TestModel(call_tools=["write_memory"]), capabilities=[Memory(store=AgentMemoryStore(client, context="run"))]
        )
        await agent.run("Remember that Ana flies to Madeira.")
        assert await AgentMemoryStore(client, context="run").list_paths(limit=10)


asyncio.run(main())
