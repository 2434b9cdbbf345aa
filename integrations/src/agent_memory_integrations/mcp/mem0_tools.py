"""The tools of the profile `/mcp/mem0`, with the names that mem0's own server has."""

from typing import Annotated, Any

from agent_memory_client import AsyncClient
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from agent_memory_integrations.mcp.tools import MAX_LISTED, Answer, MemoryId, Query, Toolset, pick
from agent_memory_integrations.mem0_changes import change, read_current
from agent_memory_integrations.mem0_requests import Mem0RequestError
from agent_memory_integrations.turns import is_erased_memory
from agent_memory_integrations.updates import UPDATED, forget_versions


async def add_memory(
    memory: AsyncClient,
    text: Annotated[str, Field(description="What to remember, as one statement.", min_length=1)],
    metadata: Annotated[dict[str, Any] | None, Field(description="Facts of your own about it.")] = None,
) -> Answer:
    """Add a memory."""
    made = await memory.remember(text, **({"metadata": metadata} if metadata else {}))
    return {"results": [{"id": made.id, "memory": made.text, "event": "ADD"}]}


async def search_memories(
    memory: AsyncClient,
    query: Query,
    limit: Annotated[int, Field(description="Maximum number of memories.", ge=1, le=100)] = 10,
) -> Answer:
    """Search memories by meaning and words."""
    found = await memory.recall(query, top_k=limit)
    wanted = [(each, each.confidence or 0.0) for each in found.results]
    return {"results": [{"id": each.id, "memory": each.text, "score": score} for each, score in wanted]}


async def get_memories(
    memory: AsyncClient,
    limit: Annotated[int, Field(description="Maximum number of memories.", ge=1, le=MAX_LISTED)] = 50,
) -> Answer:
    """List memories, latest first. Facts that are true no more are left out."""
    found: list[Answer] = []
    async for each in memory.memories(page_size=limit):
        if each.status not in ("superseded", "ended") and not is_erased_memory(each):
            found.append(describe(each.to_dict()))
        if len(found) == limit:
            break
    return {"results": found}


async def get_memory(memory: AsyncClient, memory_id: MemoryId) -> Answer:
    """Return a memory; of a fact that was superseded, what is true now."""
    try:
        return describe((await read_current(memory, memory_id)).to_dict())
    except Mem0RequestError as err:
        raise ToolError(str(err)) from err


async def update_memory(
    memory: AsyncClient, memory_id: MemoryId, text: Annotated[str, Field(description="The new text.", min_length=1)]
) -> Answer:
    """Change the text of a memory. A fact gets a new id, and keeps its former text until it is deleted by either id."""
    try:
        made = await change(memory, memory_id, {"text": text})
    except Mem0RequestError as err:
        raise ToolError(str(err)) from err
    return {"id": made["id"], "memory": made["memory"]}


async def delete_memory(memory: AsyncClient, memory_id: MemoryId) -> Answer:
    """Delete a memory with its former texts, also what was said, with what was learned from it alone."""
    await forget_versions(memory, memory_id)
    return {"message": "Memory deleted successfully!"}


async def delete_all_memories(memory: AsyncClient) -> Answer:
    """Delete all memories of the user that the API key is bound to; conversations stay."""
    if not memory.settings.user_id:
        raise ToolError("The API key is bound to no user, so there is nobody whose memories are deleted.")
    while (await memory.forget_all(dry_run=False)).remaining:
        pass
    return {"message": "Memories deleted successfully!"}


def describe(memory: Answer) -> Answer:
    """Return a memory under mem0's names."""
    shown = pick(memory, "id", "user_id", "agent_id", "created_at", "updated_at")
    metadata = {name: value for name, value in memory["metadata"].items() if name != UPDATED}
    return {"memory": memory["text"], **shown, "metadata": metadata}


MEM0_TOOLS = Toolset(
    instructions="Long-term memory: add what matters later, search before you answer.",
    reads=(search_memories, get_memories, get_memory),
    writes=(add_memory, update_memory, delete_memory, delete_all_memories),
    destructive=frozenset({"update_memory", "delete_memory", "delete_all_memories"}),
)
