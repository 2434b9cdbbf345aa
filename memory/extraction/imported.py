"""The results and checks that all readers of conversations share: ids, times, sizes, and what no row can hold.

Files come from strangers. Nothing in them stops the reading: what cannot be read is yielded as a BadLine that
says where it is and why, without repeating what it says.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from memory.extraction.messages import ChatMessage, MalformedMessage, read_message
from memory.owner import GLOBAL_CHANNEL

MAX_CONVERSATION_BYTES = 64 * 1024 * 1024
"""As much of a file as one conversation may be."""
MAX_TEXT_BYTES = 2 * 1024 * 1024
"""Of a message as it is searched: twice what the API takes as content, since tool calls are told in it too."""
MAX_ID_CHARACTERS = 100
MAX_TITLE_CHARACTERS = 200
MAX_TIME_CHARACTERS = 60
MAX_REASONS = 3
MAX_FIELD_CHARACTERS = 40

_COMPLAINTS = {
    "missing": "is missing",
    "extra_forbidden": "is no known field",
    "model_type": "is not a JSON object",
    "model_attributes_type": "is not a JSON object",
    "dict_type": "is not a JSON object",
    "string_type": "is not a text",
    "list_type": "is not a list",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """A message from a file; the time in UTC. An agent, user or channel of None is the conversation's."""

    message: ChatMessage
    timestamp: datetime | None = None
    # as it was told, where `canonical_time` tells it otherwise
    timestamp_text: str = ""
    model: str = ""
    client_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    agent_id: str | None = None
    user_id: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """A conversation from a file; times in UTC. `number` is its 1-based place: line, sample or entry."""

    # where it was told is no part of what was told
    number: int = field(compare=False)
    size_bytes: int = field(compare=False)
    conversation_id: str
    agent_id: str
    messages: tuple[ImportedMessage, ...]
    user_id: str = ""
    channel: str = GLOBAL_CHANNEL
    title: str = ""
    continues: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    outcome: str = ""
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """Something that could not be read: its 1-based place (line, sample or entry) and a reason fit for a terminal."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingSaid:
    """An archive's conversation without a message: opened, and left again."""

    number: int


Item = ImportedConversation | BadLine | NothingSaid


def refuse_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    return text


def refuse_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def refuse_unstorable(value: Any) -> Any:
    """Any JSON value that PostgreSQL can hold: no NUL in its texts and names, no number beyond floats."""
    if isinstance(value, str):
        refuse_nul(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("holds a number that is out of range")
    elif isinstance(value, Mapping):
        refuse_unstorable([*value, *value.values()])
    elif isinstance(value, list):
        for part in value:
            refuse_unstorable(part)
    return value


def parse_time(value: object) -> datetime:
    """Parse an ISO 8601 time with a zone, into UTC. Numbers are refused: seconds and milliseconds look alike."""
    if not isinstance(value, str):
        raise ValueError("is not a text")
    try:
        moment = datetime.fromisoformat(value if len(value) <= MAX_TIME_CHARACTERS else "")
    except ValueError as err:
        raise ValueError("is no ISO 8601 time") from err
    if moment.tzinfo is None:
        raise ValueError("has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as err:
        raise ValueError("is out of range") from err


def canonical_time(moment: datetime) -> str:
    """`2026-03-02T08:30:00Z`: in UTC, with a fraction of six digits where there is one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Nameable = Annotated[str, Field(max_length=MAX_ID_CHARACTERS), AfterValidator(refuse_nul)]
# blanks alone are an id too: the API takes them
Id = Annotated[Nameable, Field(min_length=1)]
Title = Annotated[str, Field(max_length=MAX_TITLE_CHARACTERS), AfterValidator(refuse_nul)]
Storable = Annotated[Any, AfterValidator(refuse_unstorable)]
StorableObject = Annotated[dict[str, Any], AfterValidator(refuse_unstorable)]


class Strict(BaseModel):
    """Our own format: a field that nobody knows is an error, not a loss."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Lenient(BaseModel):
    """Other people's formats, which grow fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


def read_chat_message(message: Mapping[str, Any], *, place: str) -> ChatMessage:
    """`read_message` with bounds; raises ValueError that begins with `place`."""
    try:
        read = read_message(message)
    except MalformedMessage as err:
        raise ValueError(f"{place}.{err.field} {err}") from err
    if len(read.text.encode()) > MAX_TEXT_BYTES:
        raise ValueError(f"{place}.content is longer than {MAX_TEXT_BYTES} bytes")
    return read


def refuse_repeated_ids(messages: Iterable[ImportedMessage]) -> None:
    """Refuse a client id that two messages of the conversation have."""
    first: dict[str, int] = {}
    for position, message in enumerate(messages):
        if message.client_id and first.setdefault(message.client_id, position) != position:
            raise ValueError(f"messages[{position}].client_id is that of messages[{first[message.client_id]}]")


def reason_of(error: ValidationError) -> str:
    """Return the first few complaints with their places: one line of printable ASCII, without values of the file."""
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"{_place(each['loc'])} {_complaint(each['type'], each['msg'])}".strip() for each in complaints]
    more = len(told) - MAX_REASONS
    return "; ".join(told[:MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _place(location: Sequence[int | str]) -> str:
    """`("messages", 3, "name")` as `messages[3].name`; field names of the file escaped and shortened."""
    return "".join(map(_step, location)).removeprefix(".")


def _step(part: int | str) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{ascii(part[:MAX_FIELD_CHARACTERS])[1:-1]}"


def _complaint(kind: str, message: str) -> str:
    return _COMPLAINTS.get(kind) or message.removeprefix("Value error, ")
