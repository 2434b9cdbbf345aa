"""A session of the OpenAI Agents SDK whose items are turns of a conversation, and come back byte for byte."""

import json
from collections.abc import Mapping
from typing import Any

from agent_memory_client import AsyncClient, NotFoundError
from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from agent_memory_integrations.turns import add_turns, make_turn, read_last_turns, read_text, read_whole

WHOLE = "openai_agents"
TEXTS = ("text", "arguments", "output", "refusal", "transcript")
"""Members of items and of their parts that are worth finding."""


class AgentMemorySession(SessionABC):
    """The items of one session, which is the conversation of this id: `Runner.run(agent, "…", session=session)`."""

    def __init__(
        self, session_id: str, client: AsyncClient, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self.client = client

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order, or the last of them."""
        wanted = limit if limit is not None else self.session_settings and self.session_settings.limit
        if wanted is not None and wanted <= 0:
            return []
        return [read_item(turn) for turn in await read_last_turns(self.client, self.session_id, wanted)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items."""
        turns = [make_turn(find_role(item), find_text(item), member=WHOLE, whole=item) for item in items]
        await add_turns(self.client, self.session_id, turns)

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the last item and return it, or None if there is none."""
        while last := await read_last_turns(self.client, self.session_id, 1):
            try:
                await self.client.delete_conversation_turn(self.session_id, last[0].id)
            except NotFoundError:
                # another process was faster
                continue
            return read_item(last[0])
        return None

    async def clear_session(self) -> None:
        """Erase the conversation, with all that was derived from it."""
        try:
            await self.client.delete_conversation(self.session_id)
        except NotFoundError:
            return


def find_role(item: Any) -> str:
    return str(item.get("role", "assistant")) if isinstance(item, Mapping) else "assistant"


def find_text(item: Any) -> str:
    """Return what an item says: the texts of its parts, the call of a tool, or the result of one."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = [each for each in content or () if isinstance(each, Mapping)]
    found = [each[name] for each in (item, *parts) for name in TEXTS if each.get(name)]
    texts = [each if isinstance(each, str) else json.dumps(each) for each in found]
    return " ".join([str(item["name"]), *texts] if item.get("name") else texts)


def read_item(turn: Any) -> TResponseInputItem:
    """Return the item of a turn; a message for a turn of another program."""
    whole = read_whole(turn, WHOLE)
    return whole if isinstance(whole, dict) else {"role": turn.role, "content": read_text(turn)}  # type: ignore[return-value]
