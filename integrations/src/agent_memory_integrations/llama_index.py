"""A memory block of LlamaIndex: `Memory.from_defaults(memory_blocks=[AgentMemoryBlock(client=client)])`."""

from typing import Any

from agent_memory_client import AsyncClient
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock

from agent_memory_integrations.turns import add_turns, cut_query, make_turn

WHOLE = "llama_index"
CHARACTERS_PER_TOKEN = 4


class AgentMemoryBlock(BaseMemoryBlock[str]):
    """Gives the agent what is recalled about the latest messages, as a list.

    Messages that leave the short-term memory become turns of a conversation: of the memory's session, else of
    `conversation_id`. Agent and user are those of the client.
    """

    name: str = "AgentMemory"
    client: AsyncClient = Field(exclude=True)
    conversation_id: str = "llama-index"
    top_k: int = 5
    query_messages: int = Field(default=3, description="Number of latest messages that make up the query.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [message.content for message in messages or () if message.role.value == "user" and message.content]
        query = cut_query("\n".join(said[-self.query_messages :]))
        if not query:
            return ""
        found = await self.client.recall(query, top_k=self.top_k)
        return "\n".join(f"- {each.text}" for each in found.results)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_conversation: dict[str, list[dict[str, Any]]] = {}
        for message in messages:
            conversation_id = message.additional_kwargs.get("session_id") or self.conversation_id
            whole = message.model_dump(mode="json")
            turn = make_turn(message.role.value, message.content or "", member=WHOLE, whole=whole)
            by_conversation.setdefault(str(conversation_id), []).append(turn)
        for conversation_id, turns in by_conversation.items():
            await add_turns(self.client, conversation_id, turns)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Drop the last lines, which are the least likely to help."""
        kept, to_drop = content.split("\n"), tokens_to_truncate * CHARACTERS_PER_TOKEN
        while kept and to_drop > 0:
            to_drop -= len(kept.pop()) + 1
        return "\n".join(kept) or None
