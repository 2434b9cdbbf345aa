"""A memory service of Google's ADK: `Runner(…, memory_service=AgentMemoryService(client))`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_memory_client import AsyncClient
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from agent_memory_integrations.turns import NO_TEXT, add_turns, cut_query

DEFAULT_RESULTS = 10
NO_SESSION = "no-session"
TURN = "turn"


class AgentMemoryService(BaseMemoryService):
    """Sessions as conversations of the service: the app is the agent, and the user is the user.

    Sessions are added as often as one likes, since an event is stored once. The ids that the client names are not used.
    """

    def __init__(self, client: AsyncClient, *, max_results: int = DEFAULT_RESULTS) -> None:
        self.client = client
        self.max_results = max_results

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that say something. Partial ones come again as a whole and are left out."""
        turns = [make_event_turn(event, custom_metadata) for event in events if find_text(event) and not event.partial]
        conversation_id = name_conversation(app_name, user_id, session_id or NO_SESSION)
        await add_turns(self.client, conversation_id, turns, agent_id=app_name, user_id=user_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember texts as they are."""
        for each in memories:
            metadata = {**(custom_metadata or {}), **each.custom_metadata}
            options: dict[str, Any] = {"event_time": each.timestamp} if each.timestamp else {}
            if text := find_text(each):
                await self.client.remember(text, agent_id=app_name, user_id=user_id, metadata=metadata, **options)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what bears on the query, best first."""
        if not (query := cut_query(query)):
            return SearchMemoryResponse(memories=[])
        found = await self.client.recall(query, agent_id=app_name, user_id=user_id, top_k=self.max_results)
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=make_id(each),
                    content=types.Content(role="user", parts=[types.Part(text=each.text)]),
                    author=each.kind,
                    timestamp=each.event_time,
                    custom_metadata={"kind": each.kind, "confidence": each.confidence},
                )
                for each in found.results
            ]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase what `search_memory` returned under this id. Raises ValueError for a turn of another user."""
        if not memory_id:
            return
        found_id, _, conversation_id = memory_id.partition("@")
        if not conversation_id:
            await self.client.forget(found_id, agent_id=app_name, user_id=user_id)
            return
        if not conversation_id.startswith(name_conversation(app_name, user_id, "")):
            raise ValueError("This memory belongs to another app or user.")
        await self.client.delete_conversation_turn(conversation_id, found_id, agent_id=app_name)


def name_conversation(app_name: str, user_id: str, session_id: str) -> str:
    """Return the conversation of a session, whose id is unique for one user of one app only.

    A slash in the name of an app or a user is written %2F: another user could be meant otherwise.
    """
    return "/".join([*(each.replace("%", "%25").replace("/", "%2F") for each in (app_name, user_id)), session_id])


def make_id(found: Any) -> str:
    """Return the id under which a result is deleted; that of a turn names its conversation."""
    return f"{found.id}@{found.conversation_id}" if found.kind == TURN else str(found.id)


def find_text(entry: Event | MemoryEntry) -> str:
    parts = (entry.content.parts or ()) if entry.content else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def make_event_turn(event: Event, custom_metadata: Mapping[str, object] | None) -> dict[str, Any]:
    turn = {
        "role": "user" if event.author == "user" else "assistant",
        "content": find_text(event) or NO_TEXT,
        "timestamp": datetime.fromtimestamp(event.timestamp, UTC),
        "metadata": {**(custom_metadata or {}), "author": event.author},
    }
    return turn | ({"client_id": event.id} if event.id else {})
