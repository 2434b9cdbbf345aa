"""Use an `AgentMemoryStore` through Strands' manager."""

import asyncio

from agent_memory_client import AsyncClient
from agent_memory_integrations.strands import AgentMemoryStore
from strands.memory import AddMessagesContext, MemoryManager


async def main() -> None:
    async with (
        AsyncClient(agent_id="tester", user_id="tess") as client,
        AsyncClient(agent_id="tester", user_id="ben") as other,
    ):
        store = AgentMemoryStore(client, name="own", conversation_id="run")
        manager = MemoryManager(stores=[store], add_tool_config=True)
        await manager.add("Tess prefers window seats.", {"metadata": {"source": "form"}})
        [found] = await manager.search("Which seats does Tess like?", {"max_search_results": 1})
        assert (found.content, found.store_name) == ("Tess prefers window seats.", "own"), found
        assert found.metadata
        assert await manager.search("Which seats does Tess like? " * 500)
        assert (await client.get_memory(found.metadata["id"])).metadata == {"source": "form"}
        assert not [each for each in await AgentMemoryStore(other).search("seats") if "Tess" in each.content]

        messages = [
            {"role": "user", "content": [{"text": "We fly to Madeira."}, {"text": "On 4 May."}]},
            {"role": "assistant", "content": [{"toolUse": {"name": "search", "toolUseId": "1", "input": {}}}]},
        ]
        for _ in range(2):
            await store.add_messages(messages, AddMessagesContext(sequence_numbers=[0, 1]))
        await store.add_messages(messages[:1])
        turns = [(turn.role, turn.content) async for turn in client.turns("run")]
        assert turns[:2] == [("user", "We fly to Madeira.\nOn 4 May."), ("assistant", "(no text)")], turns
        assert len(turns) == 3
        image = {"image": {"format": "png", "source": {"bytes": b"x" * 2_000_000}}}
        await store.add_messages([{"role": "user", "content": [{"text": "Look at this."}, image]}])
        assert [turn.content async for turn in client.turns("run")][3:] == ["Look at this."]


asyncio.run(main())
