"""Conversations out of files: our own JSON Lines, and the layout of LoCoMo.

Files come from strangers. Nothing in them stops the reading: what cannot be read is yielded as a BadLine that
says where it is and why, without repeating what it says.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, BinaryIO, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from memory.providers.summaries import Message

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_ID_CHARACTERS = 100
MAX_ROLE_CHARACTERS = 20
MAX_REASONS = 3
MAX_FIELD_CHARACTERS = 40

_SESSION_KEY = re.compile(r"session_([1-9][0-9]{0,4})")
_COMPLAINTS = {
    "missing": "is missing",
    "extra_forbidden": "is no known field",
    "model_type": "is not a JSON object",
    "string_type": "is not a text",
    "list_type": "is not a list",
    "too_short": "is empty",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """A conversation as its file tells it; times in UTC. `number` is its 1-based line (in LoCoMo: sample)."""

    # where it was told is no part of what was told
    number: int = field(compare=False)
    conversation_id: str
    agent_id: str
    messages: tuple[Message, ...]
    user_id: str = ""
    channel: str = "_global"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """What could not be read: the 1-based line (in LoCoMo: sample) and a reason fit for a terminal."""

    number: int
    reason: str


def _refuse_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    return text


def _refuse_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def _parse_timestamp(value: object) -> datetime:
    """An ISO 8601 time with a zone, in UTC. Numbers are refused: nobody can tell seconds from milliseconds."""
    if not isinstance(value, str):
        raise ValueError("is not a text")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as err:
        raise ValueError("is no ISO 8601 time") from err
    if moment.tzinfo is None:
        raise ValueError("has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as err:
        raise ValueError("is out of range") from err


def _parse_session_time(value: object) -> datetime:
    """LoCoMo's "1:56 pm on 8 May, 2023"; it names no zone, and is taken as UTC."""
    if not isinstance(value, str):
        raise ValueError("is missing or not a text")
    try:
        return datetime.strptime(value, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError as err:
        raise ValueError('is no time like "1:56 pm on 8 May, 2023"') from err


_Nameable = Annotated[str, Field(max_length=MAX_ID_CHARACTERS), AfterValidator(_refuse_nul)]
_Id = Annotated[_Nameable, AfterValidator(_refuse_blank)]
_Role = Annotated[
    str, Field(max_length=MAX_ROLE_CHARACTERS), AfterValidator(_refuse_nul), AfterValidator(_refuse_blank)
]
_Text = Annotated[str, AfterValidator(_refuse_nul)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Turn(_Strict):
    role: _Role
    name: _Nameable | None = None
    content: Annotated[_Text, AfterValidator(_refuse_blank)]
    timestamp: Annotated[datetime, BeforeValidator(_parse_timestamp)] | None = None


class _Conversation(_Strict):
    id: _Id
    agent: _Id
    user: _Nameable | None = None
    channel: _Id = "_global"
    messages: Annotated[list[_Turn], Field(min_length=1)]


def bounded_lines(stream: BinaryIO, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Lines of a binary file, each cut one byte above the limit, so that no line can fill the memory."""
    while line := stream.readline(max_bytes + 1):
        yield line
        while len(line) > max_bytes and not line.endswith(b"\n"):
            line = stream.readline(max_bytes + 1)


def read_conversations(lines: Iterable[bytes | str]) -> Iterator[ImportedConversation | BadLine]:
    """Read JSON Lines, one conversation a line, holding one line at a time.

    `{"id", "agent", "user"?, "channel"?, "messages": [{"role", "name"?, "content", "timestamp"?}]}`; ids of 1
    to 100 characters, timestamps in ISO 8601 with a zone, other fields refused, at most 8 MiB a line. Every
    line yields exactly one item; blank ones and byte order marks are bad lines too.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield _read_line(number, line)
        except ValidationError as err:
            yield BadLine(number=number, reason=_reason(err))
        except ValueError as err:
            yield BadLine(number=number, reason=str(err))


def _read_line(number: int, line: bytes | str) -> ImportedConversation:
    parsed = _Conversation.model_validate_json(_checked_text(line))
    messages = [
        Message(role=turn.role, name=turn.name or "", content=turn.content, timestamp=turn.timestamp)
        for turn in parsed.messages
    ]
    return ImportedConversation(
        number=number,
        conversation_id=parsed.id,
        agent_id=parsed.agent,
        user_id=parsed.user or "",
        channel=parsed.channel,
        messages=tuple(messages),
    )


def _checked_text(line: bytes | str) -> str:
    """The line as text that a JSON parser may see; raises ValueError with the reason otherwise."""
    try:
        raw = line.encode() if isinstance(line, str) else line
        text = raw.decode()
    except UnicodeError as err:
        raise ValueError("is not UTF-8") from err
    if len(raw) > MAX_LINE_BYTES:
        raise ValueError(f"is longer than {MAX_LINE_BYTES} bytes")
    if text.startswith("\ufeff"):
        raise ValueError("starts with a byte order mark; save the file as UTF-8 without one")
    return _refuse_blank(text)


class _LocomoTurn(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    speaker: _Id
    text: _Text
    blip_caption: _Text | None = None

    @property
    def content(self) -> str:
        """The text, and the caption of a picture behind it."""
        shared = f"[shares {self.blip_caption}]" if self.blip_caption else ""
        return f"{self.text} {shared}".strip()

    @model_validator(mode="after")
    def says_something(self) -> Self:
        _refuse_blank(self.content)
        return self


class _LocomoSession(_Strict):
    id: _Id
    turns: Annotated[list[_LocomoTurn], Field(min_length=1)]
    date_time: Annotated[datetime, BeforeValidator(_parse_session_time)]


class _LocomoSample(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    sample_id: _Id
    conversation: dict[str, object]


def read_locomo(document: bytes | str) -> Iterator[ImportedConversation | BadLine]:
    """Read a JSON list of LoCoMo samples: the agent is the sample, each `session_N` a conversation of its own.

    The conversation's id is `{sample_id}-{N}`, sessions come in the order of N, every turn has its session's
    time and its speaker's name, and a caption is told as `[shares …]`. Both speakers are people, so both have
    the role "user". A BadLine's number is the 1-based place of the sample. The whole document is held at once.
    """
    try:
        raw = document.encode() if isinstance(document, str) else document
        samples = from_json(raw, allow_inf_nan=False)
    except ValueError:
        samples = None
    if not isinstance(samples, list):
        yield BadLine(number=1, reason="the file is no JSON list of samples")
        return
    for number, value in enumerate(samples, start=1):
        try:
            sample = _LocomoSample.model_validate(value)
        except ValidationError as err:
            yield BadLine(number=number, reason=_reason(err))
        else:
            yield from _read_sessions(number, sample)


def _read_sessions(number: int, sample: _LocomoSample) -> Iterator[ImportedConversation | BadLine]:
    matches = filter(None, map(_SESSION_KEY.fullmatch, sample.conversation))
    for session_number in sorted(int(match[1]) for match in matches):
        key = f"session_{session_number}"
        fields = {
            "id": f"{sample.sample_id}-{session_number}",
            "turns": sample.conversation[key],
            "date_time": sample.conversation.get(f"{key}_date_time"),
        }
        try:
            session = _LocomoSession.model_validate(fields)
        except ValidationError as err:
            yield BadLine(number=number, reason=f"{key}: {_reason(err)}")
        else:
            yield _imported_session(number, sample.sample_id, session)


def _imported_session(number: int, sample_id: str, session: _LocomoSession) -> ImportedConversation:
    messages = [
        Message(role="user", name=turn.speaker, content=turn.content, timestamp=session.date_time)
        for turn in session.turns
    ]
    return ImportedConversation(number=number, conversation_id=session.id, agent_id=sample_id, messages=tuple(messages))


def _reason(error: ValidationError) -> str:
    """The first few complaints with their places, one line of printable ASCII, no values of the file."""
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"{_place(each['loc'])} {_complaint(each['type'], each['msg'])}".strip() for each in complaints]
    more = len(told) - MAX_REASONS
    return "; ".join(told[:MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _place(location: tuple[int | str, ...]) -> str:
    """`("messages", 3, "name")` as `messages[3].name`; field names of the file escaped and shortened."""
    return "".join(map(_step, location)).removeprefix(".")


def _step(part: int | str) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{ascii(part[:MAX_FIELD_CHARACTERS])[1:-1]}"


def _complaint(kind: str, message: str) -> str:
    return _COMPLAINTS.get(kind) or message.removeprefix("Value error, ")
