"""Turns in request bodies, read without a serializer: one for each of a thousand turns would cost 90 ms.

`NewTurn` declares the same shape for the OpenAPI document.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memory.api.fields import IN_FUTURE, draft_fields, parse_timestamp
from memory.api.vectors import EmbeddingField, VectorFields
from memory.dates import CLOCK_SKEW
from memory.errors import Unprocessable
from memory.extraction.messages import BEYOND_TEXT, ChatMessage, MalformedMessage, read_message
from memory.models import Turn
from memory.models.turns import ROLES
from memory.services.memories.store import ClientVector, VectorInput
from memory.services.turns import TurnDraft
from memory_project.http.paths import CONTROL, MAX_ID_CHARACTERS
from memory_project.http.problems import Problem
from memory_project.http.serializers import (
    MAX_NAMED_ERRORS,
    ExternalId,
    Text,
    WholeNumber,
    describe_unknown_names,
    name_as_sent,
    rename_text,
)

MAX_TURNS = 1_000
MAX_CONTENT_BYTES = 1_048_576
MAX_METADATA_BYTES = 16_384
MAX_INDEX = 2_147_483_647
EMBEDDING = EmbeddingField()
CONTENT = {
    "oneOf": [
        {"type": "string", "minLength": 1, "description": f"A text of at most {MAX_CONTENT_BYTES} bytes in UTF-8."},
        {"type": "array", "items": {"type": "object"}, "description": "Parts, each with a `type`."},
        {"type": "null", "description": "Null, with tool calls."},
    ]
}


def read_external_id(value: Any) -> str:
    if not isinstance(value, str):
        raise ValidationError("Must be a text.")
    if not 1 <= len(value) <= MAX_ID_CHARACTERS:
        raise ValidationError(f"Must have 1 to {MAX_ID_CHARACTERS} characters.")
    if CONTROL.search(value):
        raise ValidationError("Control characters, such as line breaks, are not allowed here.")
    return value


def read_message_role(value: Any) -> str:
    if value not in ROLES:
        raise ValidationError(f"Must be one of: {', '.join(ROLES)}.")
    return str(value)


def read_speaker(value: Any) -> str:
    return "" if value is None else read_external_id(value)


def read_message_content(value: Any) -> Any:
    """Check the size. It is measured before the content is examined."""
    if json_size_bytes(value) > MAX_CONTENT_BYTES:
        raise ValidationError(f"Must have at most {MAX_CONTENT_BYTES} bytes.")
    return value


def read_turn_index(value: Any) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MAX_INDEX:
        raise ValidationError(f"Must be a whole number from 0 to {MAX_INDEX}.")
    return number


def read_turn_metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValidationError("Must be a JSON object.")
    if json_size_bytes(value) > MAX_METADATA_BYTES:
        raise ValidationError(f"Must have at most {MAX_METADATA_BYTES} bytes as JSON.")
    return value


def optional(kind: type, name: str) -> Callable[[Any], Any]:
    """Return the reader of one of OpenAI's message fields, which may be null."""

    def read(value: Any) -> Any:
        if value is not None and not isinstance(value, kind):
            raise ValidationError(f"Must be {name}, or null.")
        return value

    return read


def json_size_bytes(value: Any) -> int:
    """Return the size of a text itself, and of any other value as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # for ASCII both counts are equal, and encoding is not needed
    return len(text) if text.isascii() else len(text.encode())


EVENT_TIME = "event_time"
"""Another name of `timestamp`, the one that all other memories have."""
PLAIN_FIELDS = tuple(name for name in TurnDraft.__dataclass_fields__ if name not in ("message", "own", "place", "id"))

READERS: Mapping[str, Callable[[Any], Any]] = {
    "role": read_message_role,
    "name": read_speaker,
    "content": read_message_content,
    "timestamp": parse_timestamp,
    EVENT_TIME: parse_timestamp,
    "index": read_turn_index,
    "metadata": read_turn_metadata,
    "client_id": read_external_id,
    "model": read_external_id,
    "embedding": EMBEDDING.to_internal_value,
    "embedding_model": read_external_id,
    "tool_calls": optional(list, "a list"),
    "tool_call_id": optional(str, "a text"),
    "function_call": optional(dict, "an object"),
    "refusal": optional(str, "a text"),
    "annotations": optional(list, "a list"),
    "audio": optional(dict, "an object"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReader:
    """Reads the turns of one request that arrived at `now`."""

    now: datetime
    vectors: VectorInput
    prepare: Callable[[Any], Any] = lambda turn: turn
    """Applied to each turn before it is read."""
    field: str = "turns"
    """Name of the field that has the turns, for errors."""

    def read_all(self, turns: Sequence[Any]) -> list[TurnDraft]:
        """Return the drafts. Raises a ValidationError for up to 20 turns, by position (`turns.3.timestamp`)."""
        drafts, errors, refused = [], dict[str, Any](), 0
        for position, turn in enumerate(turns):
            try:
                drafts.append(self.read(turn, place=f"{self.field}[{position}]"))
            except ValidationError as err:
                errors |= errors_of_turn(err, f"{self.field}.{position}")
                refused += 1
                if refused == MAX_NAMED_ERRORS:
                    break
            except Unprocessable as err:
                # a refused vector: the sentence itself does not say whose it is
                err.args = (f"{self.field}[{position}]: {err}",)
                raise
        if errors:
            raise ValidationError(errors)
        return drafts

    def read_body(self, turn: Any, *, names: Mapping[str, str]) -> TurnDraft:
        """Return the draft of a body that is a turn itself. Raises what `read` raises.

        `names` maps fields of turns to those that the client sent instead.
        """
        try:
            return self.read(turn, place="the turn")
        except ValidationError as err:
            errors: Any = err.detail
            raise ValidationError({names.get(name, name): reasons for name, reasons in errors.items()}) from err

    def read(self, turn: Any, *, place: str = "") -> TurnDraft:
        """Return the draft. Raises a ValidationError by field, and what `VectorInput.validate` raises for a vector."""
        sent = self.prepare(turn)
        try:
            fields = read_fields(sent)
            if fields.get("timestamp", self.now) > self.now + CLOCK_SKEW:
                raise ValidationError({"timestamp" if "timestamp" in sent else EVENT_TIME: [IN_FUTURE]})
            message = read_message(fields)
        except MalformedMessage as err:
            raise ValidationError(name_as_sent(ValidationError({err.field: [str(err)]}), sent, "content")) from err
        except ValidationError as err:
            raise ValidationError(name_as_sent(err, sent, "content")) from err
        own = None
        if "embedding" in fields:
            own = self.vectors.validate(model=fields.get("embedding_model", ""), vector=fields["embedding"])
        return TurnDraft(message=message, own=own, place=place, **draft_fields(TurnDraft, fields))


def pack_draft(draft: TurnDraft) -> tuple[Any, ...]:
    """Return the values of a draft as a tuple, which is pickled ten times as fast."""
    message, own = draft.message, draft.own
    vector = None if own is None else (own.model, own.vector.tobytes(), own.is_comparable)
    said = (message.role, message.text, message.name, message.payload)
    return (draft.id.bytes, said, vector, *(getattr(draft, name) for name in PLAIN_FIELDS))


def unpack_drafts(packed: Sequence[tuple[Any, ...]]) -> list[TurnDraft]:
    return [unpack_draft(each) for each in packed]


def unpack_draft(packed: tuple[Any, ...]) -> TurnDraft:
    id_bytes, (role, text, name, payload), vector, *values = packed
    own = None
    if vector is not None:
        model, numbers, is_comparable = vector
        own = ClientVector(model=model, vector=np.frombuffer(numbers, dtype=np.float32), is_comparable=is_comparable)
    message = ChatMessage(role=role, text=text, name=name, payload=payload)
    plain = dict(zip(PLAIN_FIELDS, values, strict=True))
    return TurnDraft(id=UUID(bytes=id_bytes), message=message, own=own, **plain)


def read_fields(turn: Any) -> dict[str, Any]:
    """Return the fields, each checked by itself."""
    if not isinstance(turn, dict):
        raise ValidationError({"non_field_errors": ["Must be a JSON object."]})
    turn = rename_text(turn, "content")
    fields: dict[str, Any] = {}
    unknown: list[str] = []
    errors: dict[str, Any] = {} if "role" in turn else {"role": ["This field is required."]}
    for name, value in turn.items():
        if len(errors) + len(unknown) == MAX_NAMED_ERRORS:
            break
        if name not in READERS:
            unknown.append(name)
            continue
        try:
            fields[name] = READERS[name](value)
        except ValidationError as err:
            errors[name] = err.detail
    errors |= describe_unknown_names(unknown, READERS)
    if EVENT_TIME in fields:
        said_at = fields.pop(EVENT_TIME)
        if fields.setdefault("timestamp", said_at) != said_at:
            errors[EVENT_TIME] = [f'"{EVENT_TIME}" is another name of "timestamp": send one of them.']
    if errors:
        raise ValidationError(errors)
    refuse_large_extras(fields)
    return fields


def refuse_large_extras(fields: Mapping[str, Any]) -> None:
    """Raise a ValidationError if the fields beyond the text are too large together."""
    beyond = [fields[name] for name in BEYOND_TEXT if fields.get(name) is not None]
    if beyond and json_size_bytes(beyond) > MAX_CONTENT_BYTES:
        present = ", ".join(name for name in BEYOND_TEXT if fields.get(name) is not None)
        detail = f"Together, {present} must have at most {MAX_CONTENT_BYTES} bytes."
        raise ValidationError({"non_field_errors": [detail]})


def errors_of_turn(err: ValidationError, at: str) -> dict[str, Any]:
    """Return the errors of one turn by field, each name after the turn's position."""
    detail: Any = err.detail
    return {at if name == "non_field_errors" else f"{at}.{name}": reasons for name, reasons in detail.items()}


@extend_schema_field(CONTENT)
class ContentField(serializers.JSONField):
    """A text, the parts of a chat message, or null."""


class NewTurn(VectorFields):
    """One message. Messages of OpenAI's chat API can be sent unchanged."""

    role = serializers.ChoiceField(Turn.Role.choices)
    name = ExternalId(required=False, allow_null=True, help_text="Name of the speaker.")
    content = ContentField(allow_null=True, help_text="May be left out with tool calls, and sent as `text`.")
    timestamp = serializers.DateTimeField(
        required=False, help_text="Time with a zone, at most 5 minutes ahead. Default: now. Also `event_time`."
    )
    event_time = serializers.DateTimeField(required=False, help_text="The same as `timestamp`.")
    index = WholeNumber(
        required=False,
        min_value=0,
        max_value=MAX_INDEX,
        help_text="Place in the log. If the same message is there already, it is returned again; 409 for another one.",
    )
    metadata = serializers.DictField(required=False, help_text=f"At most {MAX_METADATA_BYTES} bytes.")
    client_id = ExternalId(required=False, help_text="Your id of the turn. Sent again, it is stored once.")
    model = ExternalId(required=False, help_text="Model that wrote it.")
    tool_calls = serializers.ListField(required=False, allow_null=True)
    tool_call_id = Text(required=False, allow_null=True)
    function_call = serializers.DictField(required=False, allow_null=True)
    refusal = Text(required=False, allow_null=True)
    annotations = serializers.ListField(required=False, allow_null=True)
    audio = serializers.DictField(required=False, allow_null=True)


@extend_schema_field(NewTurn(many=True))
class NewTurnList(serializers.Field[list[Any], Any, Any, Any]):
    """A list of 1 to MAX_TURNS turns. Only its length is checked here; `TurnReader` checks each turn."""

    default_error_messages = {"shape": "Must be a list of turns.", "empty": "Send at least one turn."}

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("shape")
        if not data:
            self.fail("empty")
        if len(data) > MAX_TURNS:
            detail = f"A JSON body has at most {MAX_TURNS} turns. As NDJSON, any number can be sent."
            raise Problem(413, "too_many_turns", detail, limit=MAX_TURNS)
        return data
