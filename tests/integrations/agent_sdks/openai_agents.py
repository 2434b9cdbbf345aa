"""Use an `AgentMemorySession` as the SDK's runner does, and by itself."""

import asyncio
import json
from typing import Any

from agent_memory_client import AsyncClient
from agent_memory_integrations.openai_agents import AgentMemorySession
from agents import Agent, Model, ModelResponse, Runner, Usage
from agents.memory import Session, SessionSettings
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

ITEMS: list[Any] = [
    {"role": "user", "content": "We fly to Madeira."},
    {"type": "function_call", "name": "search", "call_id": "c1", "arguments": '{"to": "FNC"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "2 flights"},
    {"z": 1, "type": "reasoning", "a": None, "summary": []},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Two.", "annotations": [{"b": 1.50, "a": "ü"}]}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:" + "x" * 100_000}]},
]


class Echo(Model):
    """A model that says how many items it got."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        text = ResponseOutputText(text=f"{len(input)} items", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def keep_items(client: AsyncClient) -> None:
    session = AgentMemorySession("items", client)
    assert isinstance(session, Session)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([])
    await session.add_items(ITEMS)
    assert json.dumps(await session.get_items()) == json.dumps(ITEMS)
    assert await session.get_items(2) == ITEMS[-2:]
    assert await session.get_items(0) == []
    assert (
        await AgentMemorySession("items", client, session_settings=SessionSettings(limit=1)).get_items() == ITEMS[-1:]
    )
    assert [await session.pop_item() for _ in range(3)] == ITEMS[:2:-1]
    await session.add_items(ITEMS[:1])
    assert await session.get_items() == [*ITEMS[:3], ITEMS[0]]
    assert await session.get_items(2) == [ITEMS[2], ITEMS[0]]
    popped = await asyncio.gather(*(session.pop_item() for _ in range(3)))
    assert sorted(map(ITEMS.index, popped)) == [0, 1, 2]
    assert await session.get_items() == ITEMS[:1]
    await session.clear_session()
    await session.clear_session()
    assert await session.get_items() == []


async def run_agent(client: AsyncClient) -> None:
    session = AgentMemorySession("run", client)
    agent = Agent(name="echo", model=Echo())
    assert (await Runner.run(agent, "Hello", session=session)).final_output == "1 items"
    assert (await Runner.run(agent, "Again", session=session)).final_output == "3 items"
    assert [turn.role async for turn in client.turns("run")] == ["user", "assistant", "user", "assistant"]


async def read_foreign_turns(client: AsyncClient) -> None:
    await client.add_turns("foreign", [{"role": "user", "content": "hi", "metadata": {"openai_agents": "{"}}])
    assert await AgentMemorySession("foreign", client).get_items() == [{"role": "user", "content": "hi"}]


async def main() -> None:
    async with AsyncClient(agent_id="tester", user_id="tess") as client:
        await keep_items(client)
        await run_agent(client)
        await read_foreign_turns(client)


asyncio.run(main())
