"""Chats as Claude exports them.

    [{"uuid", "name", "created_at", "updated_at", "chat_messages": [{"uuid", "sender": "human" | "assistant", "text",
      "content": [{"type": "text" | "tool_use" | "tool_result" | …, …}], "created_at", "parent_message_uuid",
      "attachments": [{"file_name", "extracted_content", …}], "files": [{"file_name", …}]}]}]

Newer archives name the parent of each message. Then the conversation is the path to the last message, without versions
of messages that were edited or answered again.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from memory.extraction.archives import ArchiveEntry, import_chat
from memory.extraction.imported import (
    Id,
    ImportedConversation,
    ImportedMessage,
    Lenient,
    NothingSaid,
    StorableObject,
    Text,
    parse_time,
    read_chat_message,
)
from memory.owner import Owner

ROLES = {"human": "user", "assistant": "assistant"}
MAX_ATTACHMENT_CHARACTERS = 100_000
"""Characters of an attached file up to which its text is searched. The file itself is kept whole."""

_Time = Annotated[Any, BeforeValidator(parse_time)]


class _Message(Lenient):
    uuid: Id
    sender: Literal["human", "assistant"]
    text: Text | None = None
    content: list[StorableObject] | None = None
    created_at: _Time | None = None
    parent_message_uuid: str | None = None
    attachments: list[StorableObject] | None = None
    files: list[StorableObject] | None = None


class _Chat(Lenient):
    uuid: Id
    name: Text | None = None
    chat_messages: list[_Message]


def read_chat(entry: ArchiveEntry, owner: Owner) -> ImportedConversation | NothingSaid:
    """Read one conversation, for this owner's agent, user and channel. Raises ValueError, also those of pydantic."""
    chat = _Chat.model_validate(entry.value)
    with_parts = [(message, list(parts_of(message))) for message in path_of(chat.chat_messages)]
    messages = tuple(
        read_message_of(position, message, parts)
        for position, (message, parts) in enumerate((message, parts) for message, parts in with_parts if parts)
    )
    return import_chat(entry, owner, conversation_id=chat.uuid, title=chat.name, messages=messages)


def path_of(messages: Sequence[_Message]) -> Sequence[_Message]:
    """Return the messages on the path from the first to the last one, or all messages if none names its parent."""
    by_id = {message.uuid: message for message in messages}
    if not any(message.parent_message_uuid in by_id for message in messages):
        return messages
    path: dict[str, _Message] = {}
    message: _Message | None = messages[-1]
    while message is not None:
        if message.uuid in path:
            raise ValueError("chat_messages form a cycle")
        path[message.uuid] = message
        message = by_id.get(message.parent_message_uuid or "")
    return list(path.values())[::-1]


def parts_of(message: _Message) -> Iterator[dict[str, Any]]:
    """Yield the parts of a message: texts and other blocks, attachments, files. Empty blocks are left out."""
    blocks = [block for block in message.content or () if is_said(block)]
    if blocks:
        yield from blocks
    elif message.text and message.text.strip():
        yield {"type": "text", "text": message.text}
    for attachment in message.attachments or ():
        yield attachment_part(attachment)
    for file in message.files or ():
        yield {"type": "file"} | file


def attachment_part(attachment: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "attachment"} | attachment
    extracted = attachment.get("extracted_content")
    if isinstance(extracted, str) and len(extracted) <= MAX_ATTACHMENT_CHARACTERS:
        part["text"] = part.pop("extracted_content")
    return part


def is_said(block: dict[str, Any]) -> bool:
    return bool(str(block.get("text") or "").strip()) if block.get("type") == "text" else bool(block)


def read_message_of(position: int, message: _Message, parts: Sequence[dict[str, Any]]) -> ImportedMessage:
    """Read a message. A single text becomes its content, uses of tools become tool calls, other parts stay parts."""
    calls = [call_of(part) for part in parts if part.get("type") == "tool_use"]
    others = [part for part in parts if part.get("type") != "tool_use"]
    is_text = len(others) == 1 and others[0].get("type") == "text" and not others[0].get("citations")
    content = others[0]["text"] if is_text else others or None
    fields = {"role": ROLES[message.sender], "content": content} | ({"tool_calls": calls} if calls else {})
    return ImportedMessage(
        message=read_chat_message(fields, place=f"chat_messages[{position}]"),
        timestamp=message.created_at,
        client_id=message.uuid,
    )


def call_of(part: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(part.get("input", {}), ensure_ascii=False)
    function = {"name": part.get("name"), "arguments": arguments}
    return {"id": str(part.get("id") or ""), "type": "function", "function": function}
