"""Chats as ChatGPT exports them: each a tree of messages, of which the path to the current one was the conversation.

    [{"title", "create_time", "conversation_id" | "id", "current_node", "mapping": {node: {"parent", "children",
      "message": {"id", "author": {"role", "name"}, "create_time", "recipient",
                  "content": {"content_type", "parts" | "text" | …}, "metadata": {"model_slug", …}} | null}}}]

Answers that were generated again and questions that were edited away lie beside the path, and are left out; so are
messages that ChatGPT hides from the reader, and empty ones.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator

from memory.extraction.archives import ArchiveEntry
from memory.extraction.imported import (
    MAX_ID_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    Id,
    ImportedConversation,
    ImportedMessage,
    Lenient,
    NothingSaid,
    StorableObject,
    read_chat_message,
    refuse_nul,
    refuse_repeated_ids,
)
from memory.owner import Owner

_Text = Annotated[str, AfterValidator(refuse_nul)]


class _Author(Lenient):
    role: str
    name: _Text | None = None


class _Message(Lenient):
    id: Id
    author: _Author
    create_time: float | None = None
    recipient: _Text | None = None
    content: StorableObject | None = None
    metadata: StorableObject | None = None


class _Node(Lenient):
    parent: str | None = None
    message: _Message | None = None


class _Chat(Lenient):
    title: _Text | None = None
    conversation_id: Id | None = None
    id: Id | None = None
    current_node: str
    mapping: dict[str, Any]


def read_chat(entry: ArchiveEntry, owner: Owner) -> ImportedConversation | NothingSaid:
    """One conversation, for this owner's agent, user and channel. Raises ValueError (pydantic's among them)."""
    chat = _Chat.model_validate(entry.value)
    conversation_id = chat.conversation_id or chat.id
    if conversation_id is None:
        raise ValueError("conversation_id is missing")
    told = [message for message in path_to(chat.current_node, chat.mapping) if is_visible(message)]
    messages = tuple(read_message_of(position, message) for position, message in enumerate(told))
    if not messages:
        return NothingSaid(number=entry.number)
    refuse_repeated_ids(messages)
    return ImportedConversation(
        number=entry.number,
        size_bytes=entry.size_bytes,
        conversation_id=conversation_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        title=(chat.title or "")[:MAX_TITLE_CHARACTERS],
        messages=messages,
    )


def path_to(leaf: str, mapping: Mapping[str, Any]) -> list[_Message]:
    """Return the messages from the root to the leaf. Raises ValueError if a node is missing or comes after itself."""
    path: list[_Message] = []
    seen: set[str] = set()
    node_id: str | None = leaf
    while node_id is not None:
        if node_id in seen or node_id not in mapping:
            raise ValueError("mapping goes round in a ring" if node_id in seen else "mapping lacks a node of the path")
        seen.add(node_id)
        node = _Node.model_validate(mapping[node_id])
        path += [node.message] if node.message else []
        node_id = node.parent
    return path[::-1]


def is_visible(message: _Message) -> bool:
    """Return whether a reader of the chat sees the message, and it says something."""
    hidden = (message.metadata or {}).get("is_visually_hidden_from_conversation")
    return not hidden and bool(says(content_of(message)))


def says(content: str | list[dict[str, Any]]) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return any(part["type"] != "text" or str(part.get("text") or "").strip() for part in content)


def content_of(message: _Message) -> str | list[dict[str, Any]]:
    """Return a text where that is all; else parts, each object of the archive whole under the type that it names."""
    content = dict(message.content or {})
    parts, text = content.get("parts"), content.get("text")
    if isinstance(parts, list):
        told = [part_of(part) for part in parts if part not in ("", None)]
        return str(told[0]["text"]) if len(told) == 1 and told[0].keys() == {"type", "text"} else told
    if isinstance(text, str):
        return text
    # thoughts, quotations of web pages, …
    kind = content.pop("content_type", None)
    return [{"type": str(kind)} | content] if content else ""


def part_of(part: Any) -> dict[str, Any]:
    if isinstance(part, dict):
        return {"type": str(part.get("content_type", "object"))} | part
    return {"type": "text", "text": part if isinstance(part, str) else str(part)}


def read_message_of(position: int, message: _Message) -> ImportedMessage:
    """Read a message; what an assistant says to a tool is a call of it."""
    content = content_of(message)
    told: dict[str, Any] = {"role": message.author.role, "name": (message.author.name or "")[:MAX_ID_CHARACTERS]}
    recipient = message.recipient or "all"
    if message.author.role == "assistant" and recipient != "all" and isinstance(content, str):
        function = {"name": recipient, "arguments": content}
        told |= {"content": None, "tool_calls": [{"id": message.id, "type": "function", "function": function}]}
    else:
        told["content"] = content
    metadata = message.metadata or {}
    attachments = metadata.get("attachments")
    model = metadata.get("model_slug")
    return ImportedMessage(
        message=read_chat_message(told, place=f"messages[{position}]"),
        timestamp=time_of(position, message.create_time),
        model=model[:MAX_ID_CHARACTERS] if isinstance(model, str) else "",
        client_id=message.id,
        metadata={"attachments": attachments} if attachments else {},
    )


def time_of(position: int, seconds: float | None) -> datetime | None:
    """Convert seconds since 1970."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
    except (OverflowError, ValueError, OSError) as err:
        raise ValueError(f"messages[{position}].create_time is out of range") from err
