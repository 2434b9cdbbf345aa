"""Chats as Claude exports them.

    [{"uuid", "name", "created_at", "updated_at", "chat_messages": [{"uuid", "sender": "human" | "assistant", "text",
      "content": [{"type": "text" | "tool_use" | "tool_result" | …, …}], "created_at", "parent_message_uuid",
      "attachments": [{"file_name", "extracted_content", …}], "files": [{"file_name", …}]}]}]

Newer archives name each message's parent: of messages that were edited or answered again, the ones on the path to the
last message are the conversation.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from memory.extraction.archives import ArchiveEntry
from memory.extraction.imported import (
    MAX_TITLE_CHARACTERS,
    Id,
    ImportedConversation,
    ImportedMessage,
    Lenient,
    NothingSaid,
    StorableObject,
    parse_time,
    read_chat_message,
    refuse_nul,
    refuse_repeated_ids,
)
from memory.owner import Owner

ROLES = {"human": "user", "assistant": "assistant"}
MAX_ATTACHMENT_CHARACTERS = 100_000
"""Of an attached file as it is searched. All of it is kept."""

_Text = Annotated[str, AfterValidator(refuse_nul)]
_Time = Annotated[Any, BeforeValidator(parse_time)]


class _Message(Lenient):
    uuid: Id
    sender: Literal["human", "assistant"]
    text: _Text | None = None
    content: list[StorableObject] | None = None
    created_at: _Time | None = None
    parent_message_uuid: str | None = None
    attachments: list[StorableObject] | None = None
    files: list[StorableObject] | None = None


class _Chat(Lenient):
    uuid: Id
    name: _Text | None = None
    chat_messages: list[_Message]


def read_chat(entry: ArchiveEntry, owner: Owner) -> ImportedConversation | NothingSaid:
    """One conversation, for this owner's agent, user and channel. Raises ValueError (pydantic's among them)."""
    chat = _Chat.model_validate(entry.value)
    told = [(message, list(parts_of(message))) for message in path_of(chat.chat_messages)]
    messages = tuple(
        read_message_of(position, message, parts)
        for position, (message, parts) in enumerate((message, parts) for message, parts in told if parts)
    )
    if not messages:
        return NothingSaid(number=entry.number)
    refuse_repeated_ids(messages)
    return ImportedConversation(
        number=entry.number,
        size_bytes=entry.size_bytes,
        conversation_id=chat.uuid,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        title=(chat.name or "")[:MAX_TITLE_CHARACTERS],
        messages=messages,
    )


def path_of(messages: Sequence[_Message]) -> Sequence[_Message]:
    """Return the messages from the first to the last one's, parent by parent; all of them if no parents are given."""
    by_id = {message.uuid: message for message in messages}
    if not any(message.parent_message_uuid in by_id for message in messages):
        return messages
    path: dict[str, _Message] = {}
    message: _Message | None = messages[-1]
    while message is not None:
        if message.uuid in path:
            raise ValueError("chat_messages go round in a ring")
        path[message.uuid] = message
        message = by_id.get(message.parent_message_uuid or "")
    return list(path.values())[::-1]


def parts_of(message: _Message) -> Iterator[dict[str, Any]]:
    """Return what was said and attached, as parts; empty ones are left out."""
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
    """Read a message: a single text is a text, uses of tools are calls of them, all else stays as it came."""
    calls = [call_of(part) for part in parts if part.get("type") == "tool_use"]
    others = [part for part in parts if part.get("type") != "tool_use"]
    is_text = len(others) == 1 and others[0].get("type") == "text" and not others[0].get("citations")
    content = others[0]["text"] if is_text else others or None
    told = {"role": ROLES[message.sender], "content": content} | ({"tool_calls": calls} if calls else {})
    return ImportedMessage(
        message=read_chat_message(told, place=f"chat_messages[{position}]"),
        timestamp=message.created_at,
        client_id=message.uuid,
    )


def call_of(part: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(part.get("input", {}), ensure_ascii=False)
    function = {"name": part.get("name"), "arguments": arguments}
    return {"id": str(part.get("id") or ""), "type": "function", "function": function}
