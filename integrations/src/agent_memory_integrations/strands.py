"""A memory store of Strands agents: `MemoryManager(stores=[AgentMemoryStore(client)])`."""

from typing import Any
from uuid import uuid4

from agent_memory_client import AsyncClient
from strands.memory import AddMessagesContext, MemoryEntry, MemoryStore, SearchOptions
from strands.types.content import Message

from agent_memory_integrations.turns import add_turns, cut_query, make_turn

WHOLE = "strands"
DEFAULT_RESULTS = 5


class AgentMemoryStore(MemoryStore):
    """Gives the agent what is known for the client's agent and user.

    `add` remembers a text. `add_messages` stores messages as turns of a conversation, from which the service extracts
    knowledge by itself, so that no model is called for it here.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        name: str = "agent-memory",
        description: str | None = "What earlier conversations were about, and what is known about the user.",
        max_search_results: int | None = None,
        extraction: Any = None,
        conversation_id: str = "",
    ) -> None:
        self.client = client
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = True
        self.extraction = extraction
        self.conversation_id = conversation_id or f"strands-{uuid4()}"
        # sequence numbers begin anew with each run
        self._run = uuid4().hex

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return what bears on the query, best first."""
        wanted = (options or {}).get("max_search_results") or self.max_search_results or DEFAULT_RESULTS
        found = await self.client.recall(cut_query(query), top_k=wanted)
        return [
            MemoryEntry(
                content=each.text,
                metadata={"id": each.id, "kind": each.kind, "score": each.confidence, "event_time": each.event_time},
            )
            for each in found.results
        ]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> str:
        """Remember a text. Returns the id of the memory."""
        options = {"metadata": metadata} if metadata else {}
        return str((await self.client.remember(content, **options)).id)

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Store messages. A batch that is sent again is stored once."""
        numbers = context.sequence_numbers if context else None
        turns = []
        for at, message in enumerate(messages):
            text = "\n".join(block["text"] for block in message["content"] if block.get("text"))
            turn = make_turn(message["role"], text, member=WHOLE, whole=leave_out_bytes(message))
            turns.append(turn | ({"client_id": f"{self._run}-{numbers[at]}"} if numbers else {}))
        await add_turns(self.client, self.conversation_id, turns)


def leave_out_bytes(value: Any) -> Any:
    """Return a part of a message with the number of bytes of images and files instead of the bytes."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, dict):
        return {name: leave_out_bytes(each) for name, each in value.items()}
    return [leave_out_bytes(each) for each in value] if isinstance(value, list) else value
