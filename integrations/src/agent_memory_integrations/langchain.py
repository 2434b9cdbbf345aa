"""A LangChain chat history whose messages are turns of a conversation: searched, summarized, learnt from."""

from collections.abc import Sequence
from typing import Any

from agent_memory_client import Client, NotFoundError
from agent_memory_client.models import TurnAnswer
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
    messages_from_dict,
)

from agent_memory_integrations.turns import MAX_TURNS, is_erased, make_turn, read_text, read_whole

WHOLE = "langchain"
"""Member of a turn's metadata with the whole message, so that it comes back as it was."""
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "assistant"}
BY_ROLE: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}


class AgentMemoryChatHistory(BaseChatMessageHistory):
    """The messages of one conversation, also those that were stored by other means."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.client = client
        self.session_id = session_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages in order."""
        try:
            turns = self.client.turns(self.session_id, page_size=200)
            return [read_message(turn) for turn in turns if not is_erased(turn)]
        except NotFoundError:
            return []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, in as many requests as they need."""
        turns = [make_message_turn(message) for message in messages]
        for start in range(0, len(turns), MAX_TURNS):
            self.client.add_turns(self.session_id, turns[start : start + MAX_TURNS])

    def clear(self) -> None:
        """Erase the conversation, with all that was derived from it."""
        try:
            self.client.delete_conversation(self.session_id)
        except NotFoundError:
            return


def make_message_turn(message: BaseMessage) -> dict[str, Any]:
    # a tool's answer is told by the assistant, since the service would look for the call
    role = ROLES.get(message.type, "user")
    return make_turn(role, str(message.text), member=WHOLE, whole=message_to_dict(message))


def read_message(turn: TurnAnswer) -> BaseMessage:
    # former versions of this adapter stored the message as JSON
    whole = read_whole(turn, WHOLE) or (turn.metadata or {}).get(WHOLE)
    if isinstance(whole, dict):
        try:
            return messages_from_dict([whole])[0]
        except (KeyError, TypeError, ValueError):
            # another program's metadata
            pass
    return BY_ROLE.get(turn.role, HumanMessage)(content=read_text(turn))
