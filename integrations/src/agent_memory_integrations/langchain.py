"""A LangChain chat history whose messages are turns of a conversation: searched, summarized, learnt from."""

from collections.abc import Sequence
from typing import Any

from agent_memory_client import Client, NotFoundError
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
    messages_from_dict,
)

WHOLE = "langchain"
"""Member of a turn's metadata with the whole message, so that it comes back as it was."""
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
BY_ROLE: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}
NO_TEXT = "(no text)"


class AgentMemoryChatHistory(BaseChatMessageHistory):
    """The messages of one conversation, also those that were stored by other means."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.client = client
        self.session_id = session_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages in order."""
        try:
            return [read_message(turn.to_dict()) for turn in self.client.turns(self.session_id, page_size=200)]
        except NotFoundError:
            return []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, in one request."""
        if messages:
            self.client.add_turns(self.session_id, [make_turn(message) for message in messages])

    def clear(self) -> None:
        """Erase the conversation, with all that was derived from it."""
        try:
            self.client.delete_conversation(self.session_id)
        except NotFoundError:
            return


def make_turn(message: BaseMessage) -> dict[str, Any]:
    # a tool's answer is told by the assistant, since the service would look for the call
    role = ROLES.get(message.type, "user")
    return {
        "role": "assistant" if role == "tool" else role,
        "content": str(message.text).strip() or NO_TEXT,
        "metadata": {WHOLE: message_to_dict(message)},
    }


def read_message(turn: dict[str, Any]) -> BaseMessage:
    whole = (turn.get("metadata") or {}).get(WHOLE)
    if isinstance(whole, dict):
        try:
            return messages_from_dict([whole])[0]
        except (KeyError, TypeError, ValueError):
            # another program's metadata
            pass
    return BY_ROLE.get(turn["role"], HumanMessage)(content=turn["content"] or "")
