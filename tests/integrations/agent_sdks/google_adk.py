"""Use an `AgentMemoryService` as ADK's runner does."""

import asyncio

from agent_memory_client import AsyncClient
from agent_memory_integrations.google_adk import AgentMemoryService
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import InMemorySessionService
from google.genai import types


def say(author: str, text: str, *, partial: bool = False) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    return Event(author=author, content=content, partial=partial, invocation_id="i1")


async def main() -> None:
    async with AsyncClient() as client:
        service, sessions = AgentMemoryService(client), InMemorySessionService()
        session = await sessions.create_session(app_name="travel", user_id="tess", session_id="s1")
        for event in (
            say("user", "We fly to Madeira on 4 May."),
            say("travel", "I will lo", partial=True),
            say("travel", "I will look for flights."),
        ):
            await sessions.append_event(session, event)
        session.events.append(Event(author="travel", invocation_id="i1"))
        for _ in range(2):
            await service.add_session_to_memory(session)
        turns = [turn async for turn in client.turns("travel/tess/s1", agent_id="travel")]
        assert [(turn.role, turn.content) for turn in turns] == [
            ("user", "We fly to Madeira on 4 May."),
            ("assistant", "I will look for flights."),
        ], turns

        asked = {"app_name": "travel", "user_id": "tess", "query": "When do we fly to Madeira?"}
        found = (await service.search_memory(**asked)).memories
        assert found[0].content.parts[0].text == "We fly to Madeira on 4 May."
        for stranger in ({"user_id": "ben"}, {"app_name": "other"}):
            assert (await service.search_memory(**{**asked, **stranger})).memories == [], stranger
        assert (await service.search_memory(**{**asked, "query": " "})).memories == []
        assert (await service.search_memory(**{**asked, "query": "When do we fly to Madeira? " * 500})).memories

        note = types.Content(parts=[types.Part(text="Tess likes window seats.")])
        entry = MemoryEntry(content=note, timestamp="2026-01-02T03:04:05Z", custom_metadata={"a": 1})
        await service.add_memory(app_name="travel", user_id="tess", memories=[entry], custom_metadata={"b": 2})
        [kept] = [each async for each in client.memories(agent_id="travel", user_id="tess", kind="note")]
        assert (kept.metadata, kept.event_time) == ({"a": 1, "b": 2}, "2026-01-02T03:04:05Z"), kept

        for memory in (await service.search_memory(**asked)).memories:
            await service.delete_memory(app_name="travel", user_id="tess", memory_id=memory.id)
        assert (await service.search_memory(**asked)).memories == []


async def keep_users_apart() -> None:
    async with AsyncClient() as client:
        service = AgentMemoryService(client)
        names = {"app_name": "travel", "user_id": "org/42"}
        await service.add_events_to_memory(
            app_name="travel", user_id="org/42", session_id="s1", events=[say("user", "My PIN is 4711.")]
        )
        [found] = (await service.search_memory(**names, query="What is the PIN?")).memories
        try:
            await service.delete_memory(app_name="travel", user_id="org", memory_id=found.id)
            raise SystemExit("the turn of another user was deleted")
        except ValueError:
            pass
        await service.delete_memory(**names, memory_id=found.id)
        assert (await service.search_memory(**names, query="What is the PIN?")).memories == []
        await service.add_events_to_memory(
            app_name="travel", user_id="50%", session_id="a/b", events=[say("user", "Hi.")]
        )
        assert [turn.content async for turn in client.turns("travel/50%25/a/b", agent_id="travel")] == ["Hi."]


asyncio.run(main())
asyncio.run(keep_users_apart())
