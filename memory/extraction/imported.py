"""The results and checks that all readers of conversations share: ids, times, sizes, and values that no row can hold.

Files come from strangers, and nothing in them stops the reading. For each part that cannot be read a BadLine is
yielded, which says where it is and what is wrong without quoting it.
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
"""Bytes that one conversation may have in a file."""
MAX_TEXT_BYTES = 2 * 1024 * 1024
"""Bytes of a message's text: twice what the API takes as content, since the text contains tool calls too."""
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
    """A message from a file, with its time in UTC. An agent, user or channel of None is that of the conversation."""

    message: ChatMessage
    timestamp: datetime | None = None
    # the time as written in the file, if `canonical_time` writes it differently
    timestamp_text: str = ""
    model: str = ""
    client_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    agent_id: str | None = None
    user_id: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """A conversation from a file, with times in UTC. `number` is its line, sample or entry in the file, from 1."""

    # its place in the file does not count in comparisons
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
    """A part of a file that could not be read: its line, sample or entry, from 1, and a reason to print."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingSaid:
    """A conversation of an archive that has no messages."""

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
    """Return a JSON value. Raises ValueError if PostgreSQL cannot store it: for NUL characters and infinite numbers."""
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
    """Parse an ISO 8601 time with a zone and convert it to UTC. Raises ValueError.

    Numbers are refused, because seconds and milliseconds look alike.
    """
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
    """Format a time in UTC as `2026-03-02T08:30:00Z`, with six more digits if it has a fraction of a second."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Text = Annotated[str, AfterValidator(refuse_nul)]
Nameable = Annotated[str, Field(max_length=MAX_ID_CHARACTERS), AfterValidator(refuse_nul)]
# the API accepts ids of blanks alone, so files may contain them
Id = Annotated[Nameable, Field(min_length=1)]
Title = Annotated[str, Field(max_length=MAX_TITLE_CHARACTERS), AfterValidator(refuse_nul)]
Storable = Annotated[Any, AfterValidator(refuse_unstorable)]
StorableObject = Annotated[dict[str, Any], AfterValidator(refuse_unstorable)]


class Strict(BaseModel):
    """Base of shapes in the native format: unknown fields are errors, so that nothing is lost silently."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Lenient(BaseModel):
    """Base of shapes in foreign formats: unknown fields are ignored, since others add fields at any time."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


def read_chat_message(message: Mapping[str, Any], *, place: str) -> ChatMessage:
    """Read a message as `read_message` does, and check its length. Raises ValueError that begins with `place`."""
    try:
        read = read_message(message)
    except MalformedMessage as err:
        raise ValueError(f"{place}.{err.field} {err}") from err
    if len(read.text.encode()) > MAX_TEXT_BYTES:
        raise ValueError(f"{place}.content is longer than {MAX_TEXT_BYTES} bytes")
    return read


def refuse_repeated_ids(messages: Iterable[ImportedMessage]) -> None:
    """Raise ValueError if two messages of the conversation have the same client id."""
    first: dict[str, int] = {}
    for position, message in enumerate(messages):
        if message.client_id and first.setdefault(message.client_id, position) != position:
            raise ValueError(f"messages[{position}].client_id is that of messages[{first[message.client_id]}]")


def reason_of(error: ValueError) -> str:
    """Return why something could not be read, on one line.

    Of an error of pydantic the first few complaints are named with their places: in ASCII, without values of the file.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    reasons = [
        f"{_place(each['loc'])} {_COMPLAINTS.get(each['type']) or each['msg'].removeprefix('Value error, ')}".strip()
        for each in complaints
    ]
    more = len(reasons) - MAX_REASONS
    return "; ".join(reasons[:MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _place(location: Sequence[int | str]) -> str:
    """Format a location such as `("messages", 3, "name")` as `messages[3].name`, with field names escaped and cut."""
    return "".join(map(_step, location)).removeprefix(".")


def _step(part: int | str) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{ascii(part[:MAX_FIELD_CHARACTERS])[1:-1]}"
