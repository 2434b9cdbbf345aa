"""Both Python clients over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_memory_client import AsyncClient, Client, NotFoundError, PreconditionFailedError

from tests.web_server import SharedServers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def url(shared_server: SharedServers) -> str:
    return f"http://127.0.0.1:{shared_server({}).port}"


def test_ids_may_hold_any_character(url: str, api_key: str) -> None:
    conversations = ["a/b", "..", "100 %", "gruß?#"]

    with Client(url, api_key, agent_id="assistant") as client:
        for conversation in conversations:
            client.add_turns(conversation, [{"role": "user", "content": "hello"}])

        assert [client.get_conversation(each).conversation_id for each in conversations] == conversations


def test_a_stream_is_sent_in_lines_over_one_connection(url: str, api_key: str) -> None:
    turns = ({"role": "user", "content": f"turn {number}"} for number in range(300))

    with Client(url, api_key, agent_id="assistant") as client:
        client.stream_turns("trip", turns)

        assert [turn.index for turn in client.turns("trip", page_size=200)] == list(range(300))


async def turns() -> AsyncIterator[dict[str, Any]]:
    for number in range(5):
        await asyncio.sleep(0)
        yield {"role": "user", "content": f"turn {number}"}


def test_the_async_client_streams_lists_and_saves(url: str, api_key: str) -> None:
    async def use() -> None:
        async with AsyncClient(url, api_key, agent_id="assistant", user_id="ana") as client:
            await client.stream_turns("trip", turns())
            assert [turn.index async for turn in client.turns("trip", page_size=2)] == list(range(5))
            goal = await client.add_goal("book seats")
            stale = await client.get_goal(goal.id)
            goal.priority = 5
            await goal.save()
            stale.priority = 7
            with pytest.raises(PreconditionFailedError):
                await stale.save()
            assert (await client.get_goal(goal.id)).priority == 5

    asyncio.run(use())


def test_the_async_client_has_raw_responses_and_sends_many_calls_at_once(url: str, api_key: str) -> None:
    async def use() -> None:
        async with AsyncClient(url, api_key, agent_id="assistant") as client:
            await asyncio.gather(*(client.add_goal(f"goal {number}") for number in range(20)))
            page = (await client.with_raw_response.goals(page_size=200)).parse()
            lost = await client.with_raw_response.get_pool("nowhere")
            assert (len(page.results), lost.status_code) == (20, 404)
            with pytest.raises(NotFoundError):
                lost.parse()

    asyncio.run(use())
