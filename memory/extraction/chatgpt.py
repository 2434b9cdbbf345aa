"""Chats as ChatGPT exports them. Each is a tree of messages; the path to its current node is the conversation.

    [{"title", "create_time", "conversation_id" | "id", "current_node", "mapping": {node: {"parent", "children",
      "message": {"id", "author": {"role", "name"}, "create_time", "recipient",
                  "content": {"content_type", "parts" | "text" | …}, "metadata": {"model_slug", …}} | null}}}]

Answers that were generated again and questions that were edited are not on this path and are left out. So are
messages that ChatGPT hides from the reader, and empty ones.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memory.extraction.archives import ArchiveEntry, import_chat
from memory.extraction.imported import (
    MAX_ID_CHARACTERS,
    Id,
    ImportedConversation,
    ImportedMessage,
    Lenient,
    NothingSaid,
    StorableObject,
    Text,
    read_chat_message,
)
from memory.owner import Owner


class _Author(Lenient):
    role: str
    name: Text | None = None


class _Message(Lenient):
    id: Id
    author: _Author
    create_time: float | None = None
    recipient: Text | None = None
    content: StorableObject | None = None
    metadata: StorableObject | None = None


class _Node(Lenient):
    parent: str | None = None
    message: _Message | None = None


class _Chat(Lenient):
    title: Text | None = None
    conversation_id: Id | None = None
    id: Id | None = None
    current_node: str
    mapping: dict[str, Any]


def read_chat(entry: ArchiveEntry, owner: Owner) -> ImportedConversation | NothingSaid:
    """Read one conversation, for this owner's agent, user and channel. Raises ValueError, also those of pydantic."""
    chat = _Chat.model_validate(entry.value)
    conversation_id = chat.conversation_id or chat.id
    if conversation_id is None:
        raise ValueError("conversation_id is missing")
    visible = [message for message in path_to(chat.current_node, chat.mapping) if is_visible(message)]
    messages = tuple(read_message_of(position, message) for position, message in enumerate(visible))
    return import_chat(entry, owner, conversation_id=conversation_id, title=chat.title, messages=messages)


def path_to(leaf: str, mapping: Mapping[str, Any]) -> list[_Message]:
    """Return the messages from the root to the leaf. Raises ValueError if a node is missing or comes after itself."""
    path: list[_Message] = []
    seen: set[str] = set()
    node_id: str | None = leaf
    while node_id is not None:
        if node_id in seen or node_id not in mapping:
            raise ValueError("mapping has a cycle" if node_id in seen else "mapping lacks a node of the path")
        seen.add(node_id)
        node = _Node.model_validate(mapping[node_id])
        path += [node.message] if node.message else []
        node_id = node.parent
    return path[::-1]


def is_visible(message: _Message) -> bool:
    """Return True if the message has content and ChatGPT shows it to the reader of the chat."""
    hidden = (message.metadata or {}).get("is_visually_hidden_from_conversation")
    return not hidden and bool(says_something(content_of(message)))


def says_something(content: str | list[dict[str, Any]]) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return any(part["type"] != "text" or str(part.get("text") or "").strip() for part in content)


def content_of(message: _Message) -> str | list[dict[str, Any]]:
    """Return the content as a text if it is only that, otherwise as parts that keep each object and name its type."""
    content = dict(message.content or {})
    parts, text = content.get("parts"), content.get("text")
    if isinstance(parts, list):
        typed_parts = [part_of(part) for part in parts if part not in ("", None)]
        return (
            str(typed_parts[0]["text"])
            if len(typed_parts) == 1 and typed_parts[0].keys() == {"type", "text"}
            else typed_parts
        )
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
    """Read a message. A text that the assistant sends to a tool becomes a call of that tool."""
    content = content_of(message)
    fields: dict[str, Any] = {"role": message.author.role, "name": (message.author.name or "")[:MAX_ID_CHARACTERS]}
    recipient = message.recipient or "all"
    if message.author.role == "assistant" and recipient != "all" and isinstance(content, str):
        function = {"name": recipient, "arguments": content}
        fields |= {"content": None, "tool_calls": [{"id": message.id, "type": "function", "function": function}]}
    else:
        fields["content"] = content
    metadata = message.metadata or {}
    attachments = metadata.get("attachments")
    model = metadata.get("model_slug")
    return ImportedMessage(
        message=read_chat_message(fields, place=f"messages[{position}]"),
        timestamp=time_of(position, message.create_time),
        model=model[:MAX_ID_CHARACTERS] if isinstance(model, str) else "",
        client_id=message.id,
        metadata={"attachments": attachments} if attachments else {},
    )


def time_of(position: int, seconds: float | None) -> datetime | None:
    """Convert seconds since 1970 to a time in UTC. Raises ValueError for a time out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
    except (OverflowError, ValueError, OSError) as err:
        raise ValueError(f"messages[{position}].create_time is out of range") from err
