"""The native format of conversations: JSON Lines, one conversation per line (`services.conversations.export`)."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import AfterValidator, Field

from memory.extraction.imported import (
    MAX_CONVERSATION_BYTES,
    BadLine,
    Id,
    ImportedConversation,
    ImportedMessage,
    Nameable,
    Storable,
    StorableObject,
    Strict,
    Title,
    canonical_time,
    parse_time,
    read_chat_message,
    reason_of,
    refuse_blank,
    refuse_repeated_ids,
)
from memory.extraction.messages import BEYOND_TEXT
from memory.owner import GLOBAL_CHANNEL


def _refuse_no_time(text: str) -> str:
    parse_time(text)
    return text


_Time = Annotated[str, AfterValidator(_refuse_no_time)]


class _Message(Strict):
    role: str
    name: Nameable | None = None
    content: Storable = None
    tool_calls: Storable = None
    tool_call_id: Storable = None
    function_call: Storable = None
    refusal: Storable = None
    annotations: Storable = None
    audio: Storable = None
    timestamp: _Time | None = None
    model: Nameable | None = None
    client_id: Nameable | None = None
    metadata: StorableObject | None = None
    agent: Nameable | None = None
    user: Nameable | None = None
    channel: Id | None = None


class _Conversation(Strict):
    id: Id
    agent: Nameable
    user: Nameable | None = None
    channel: Id = GLOBAL_CHANNEL
    title: Title | None = None
    continues: Nameable | None = None
    metadata: StorableObject | None = None
    outcome: Literal["success", "failure"] | None = None
    ended_at: _Time | None = None
    messages: Annotated[list[_Message], Field(min_length=1)]


def bounded_lines(stream: BinaryIO, *, max_bytes: int = MAX_CONVERSATION_BYTES) -> Iterator[bytes]:
    """Yield the lines of a binary file, each cut one byte above the limit, so that no line can fill the memory."""
    while line := stream.readline(max_bytes + 1):
        yield line
        while len(line) > max_bytes and not line.endswith(b"\n"):
            line = stream.readline(max_bytes + 1)


def read_conversations(
    lines: Iterable[bytes | str], *, max_bytes: int = MAX_CONVERSATION_BYTES
) -> Iterator[ImportedConversation | BadLine]:
    """Read JSON Lines with one conversation per line. Only one line at a time is in memory.

    `{"id", "agent", "user"?, "channel"?, "title"?, "continues"?, "metadata"?, "outcome"?, "ended_at"?, "messages"}`,
    Each message has the fields of OpenAI's chat API (`role`, `name`, `content`, BEYOND_TEXT), and `timestamp`, `model`,
    `client_id` and `metadata`. `agent`, `user` and `channel` of a message replace those of the conversation; an empty
    agent is no particular agent. Ids have 1 to 100 characters, times are ISO 8601 with a zone, unknown fields are
    refused, and a line has at most 64 MiB. Every line yields exactly one item. Blank lines and lines that begin with a
    byte order mark yield a BadLine.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield _read_line(number, line, max_bytes)
        except ValueError as err:
            yield BadLine(number=number, reason=reason_of(err))


def _read_line(number: int, line: bytes | str, max_bytes: int) -> ImportedConversation:
    text = _checked_text(line, max_bytes)
    parsed = _Conversation.model_validate_json(text)
    if parsed.continues == parsed.id:
        raise ValueError("continues names the conversation itself")
    messages = tuple(_read_message(position, message) for position, message in enumerate(parsed.messages))
    refuse_repeated_ids(messages)
    return ImportedConversation(
        number=number,
        size_bytes=len(text),
        conversation_id=parsed.id,
        agent_id=parsed.agent,
        user_id=parsed.user or "",
        channel=parsed.channel,
        title=parsed.title or "",
        continues=parsed.continues or "",
        metadata=parsed.metadata or {},
        outcome=parsed.outcome or "",
        ended_at=parse_time(parsed.ended_at) if parsed.ended_at else None,
        messages=messages,
    )


def _read_message(position: int, message: _Message) -> ImportedMessage:
    fields: dict[str, Any] = {"role": message.role, "name": message.name, "content": message.content}
    fields |= {field: getattr(message, field) for field in BEYOND_TEXT}
    timestamp = parse_time(message.timestamp) if message.timestamp is not None else None
    is_canonical = timestamp is None or message.timestamp == canonical_time(timestamp)
    return ImportedMessage(
        message=read_chat_message(fields, place=f"messages[{position}]"),
        timestamp=timestamp,
        timestamp_text="" if is_canonical else message.timestamp or "",
        model=message.model or "",
        client_id=message.client_id or "",
        metadata=message.metadata or {},
        agent_id=message.agent,
        user_id=message.user,
        channel=message.channel,
    )


def _checked_text(line: bytes | str, max_bytes: int) -> str:
    """Return the line as text that a JSON parser may read. Raises ValueError with the reason otherwise."""
    try:
        raw = line.encode() if isinstance(line, str) else line
        text = raw.decode()
    except UnicodeError as err:
        raise ValueError("is not UTF-8") from err
    if len(raw) > max_bytes:
        raise ValueError(f"is longer than {max_bytes} bytes")
    if text.startswith("\ufeff"):
        raise ValueError("starts with a byte order mark; save the file as UTF-8 without one")
    return refuse_blank(text)
