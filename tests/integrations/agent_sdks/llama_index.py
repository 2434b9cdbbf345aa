"""Use an `AgentMemoryBlock` in LlamaIndex's memory."""

import asyncio

from agent_memory_client import AsyncClient
from agent_memory_integrations.llama_index import AgentMemoryBlock
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory


async def main() -> None:
    async with (
        AsyncClient(agent_id="tester", user_id="tess") as client,
        AsyncClient(agent_id="tester", user_id="ben") as other,
    ):
        block = AgentMemoryBlock(client=client)
        # a queue so short that messages go on to the block
        memory = Memory.from_defaults(
            session_id="flight",
            token_limit=60,
            chat_history_token_ratio=0.5,
            token_flush_size=20,
            memory_blocks=[block],
        )
        for number in range(12):
            await memory.aput(
                ChatMessage(role="user", content=f"Line {number}: we fly to Madeira on {number + 1} May.")
            )
            await memory.aput(ChatMessage(role="assistant", content="Noted."))
        turns = [turn.content async for turn in client.turns("flight")]
        assert turns[0] == "Line 0: we fly to Madeira on 1 May.", turns
        assert any("Madeira" in str(message.content) for message in await memory.aget())

        question = [ChatMessage(role="user", content="When do we fly to Madeira?")]
        assert "Madeira" in await block.aget(question)
        assert await block.aget([]) == ""
        pasted = [ChatMessage(role="user", content=f"When do we fly to Madeira? {'A line of a log. ' * 900}")]
        assert "Madeira" in await block.aget(pasted)
        assert await AgentMemoryBlock(client=other).aget(question) == ""
        assert await block.atruncate("- one\n- two\n- three", 2) == "- one\n- two"
        assert await block.atruncate("- one", 100) is None


asyncio.run(main())
