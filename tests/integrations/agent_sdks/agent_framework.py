"""Use the providers in an agent of the Microsoft Agent Framework."""

import asyncio
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, Message
from agent_memory_client import AsyncClient
from agent_memory_integrations.agent_framework import AgentMemoryContextProvider, AgentMemoryHistoryProvider


class Echo(BaseChatClient):
    """A model that repeats what it was given."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [" | ".join(each.text for each in messages)])])

        return answer()


async def keep_messages(client: AsyncClient) -> None:
    history = AgentMemoryHistoryProvider(client)
    call = Content.from_function_call("c1", "search", arguments={"to": "FNC"})
    messages = [Message("user", ["We fly."], author_name="tess"), Message("assistant", [call])]
    await history.save_messages("kept", messages)
    await history.save_messages(None, messages)
    await history.save_messages("kept", [])
    assert [each.to_dict() for each in await history.get_messages("kept")] == [each.to_dict() for each in messages]
    assert await history.get_messages(None) == await history.get_messages("none") == []
    await client.add_turns("foreign", [{"role": "user", "content": "hi"}])
    assert [each.text for each in await history.get_messages("foreign")] == ["hi"]


async def run_agent(client: AsyncClient) -> None:
    await client.remember("Tess prefers window seats.")
    providers = [AgentMemoryHistoryProvider(client), AgentMemoryContextProvider(client, top_k=3)]
    agent = Agent(Echo(), context_providers=providers)
    session = agent.create_session(session_id="run")
    first = await agent.run("Which seats does Tess prefer?", session=session)
    assert "- Tess prefers window seats." in first.text, first.text
    second = await agent.run("And when?", session=session)
    assert second.text.startswith("Which seats does Tess prefer? |"), second.text
    assert [turn.role async for turn in client.turns("run")] == ["user", "assistant", "user", "assistant"]


async def find_others_behind_the_own_session(client: AsyncClient) -> None:
    await client.remember("Tess pays 90 euros a night for the hotel in Porto.")
    said = [{"role": "user", "content": f"The hotel in Porto has a room with number {number}."} for number in range(8)]
    await client.add_turns("long", said)
    agent = Agent(Echo(), context_providers=[AgentMemoryContextProvider(client, top_k=1)])
    answer = await agent.run("Which room has the hotel in Porto?", session=agent.create_session(session_id="long"))
    assert "- Tess pays 90 euros a night for the hotel in Porto." in answer.text, answer.text
    assert (await agent.run("The hotel in Porto. " * 900)).text.endswith("The hotel in Porto. ")


async def main() -> None:
    async with AsyncClient(agent_id="tester", user_id="tess") as client:
        await keep_messages(client)
        await run_agent(client)
        await find_others_behind_the_own_session(client)


asyncio.run(main())
