"""Turns as clients send them, read without a serializer: one for each of a thousand turns would cost 90 ms.

`NewTurn` is the same shape for the OpenAPI document.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memory.api.fields import read_timestamp
from memory.api.vectors import EmbeddingField
from memory.errors import Unprocessable
from memory.extraction.messages import BEYOND_TEXT, MalformedMessage, read_message
from memory.models import Turn
from memory.models.turns import ROLES
from memory.services.memories.store import Admission
from memory.services.turns.store import CLOCK_SKEW, TurnDraft
from memory_project.http.paths import CONTROL, LONGEST_ID
from memory_project.http.problems import Problem
from memory_project.http.serializers import MOST_NAMED, ExternalId, StrictSerializer, Text, WholeNumber

MOST_TURNS = 1_000
LARGEST_CONTENT = 1_048_576
LARGEST_METADATA = 16_384
LARGEST_INDEX = 2_147_483_647
EMBEDDING = EmbeddingField()
CONTENT = {
    "oneOf": [
        {"type": "string", "minLength": 1, "description": f"At most {LARGEST_CONTENT} bytes of UTF-8."},
        {"type": "array", "items": {"type": "object"}, "description": "Parts, each with a type."},
        {"type": "null", "description": "Beside tool calls."},
    ]
}


def read_external_id(value: Any) -> str:
    if not isinstance(value, str):
        raise ValidationError("Not a valid string.")
    if not 1 <= len(value) <= LONGEST_ID:
        raise ValidationError(f"Has 1 to {LONGEST_ID} characters.")
    if CONTROL.search(value):
        raise ValidationError("Control characters are not allowed.")
    return value


def read_role(value: Any) -> str:
    if value not in ROLES:
        raise ValidationError(f"Must be one of {', '.join(ROLES)}.")
    return str(value)


def read_name(value: Any) -> str:
    return "" if value is None else read_external_id(value)


def read_content(value: Any) -> Any:
    """Measured before it is looked at."""
    if size_bytes_of(value) > LARGEST_CONTENT:
        raise ValidationError(f"Has at most {LARGEST_CONTENT} bytes.")
    return value


def read_index(value: Any) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= LARGEST_INDEX:
        raise ValidationError("Must be a whole number from 0 on.")
    return number


def read_metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValidationError("Must be an object.")
    if size_bytes_of(value) > LARGEST_METADATA:
        raise ValidationError(f"Has at most {LARGEST_METADATA} bytes, serialized.")
    return value


def null_or(kind: type, name: str) -> Callable[[Any], Any]:
    """The check of a field of OpenAI's, which may be null where there is nothing to say."""

    def read(value: Any) -> Any:
        if value is not None and not isinstance(value, kind):
            raise ValidationError(f"Must be {name}, or null.")
        return value

    return read


def size_bytes_of(value: Any) -> int:
    """Of a text itself, of other values as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # most texts are too short for any count of bytes to matter
    return len(text) if text.isascii() else len(text.encode())


READERS: Mapping[str, Callable[[Any], Any]] = {
    "role": read_role,
    "name": read_name,
    "content": read_content,
    "timestamp": read_timestamp,
    "index": read_index,
    "metadata": read_metadata,
    "client_id": read_external_id,
    "model": read_external_id,
    "embedding": EMBEDDING.to_internal_value,
    "embedding_model": read_external_id,
    "tool_calls": null_or(list, "a list"),
    "tool_call_id": null_or(str, "a text"),
    "function_call": null_or(dict, "an object"),
    "refusal": null_or(str, "a text"),
    "annotations": null_or(list, "a list"),
    "audio": null_or(dict, "an object"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReader:
    """Reads the turns of one request, which came at `now`."""

    now: datetime
    vectors: Admission

    def read_all(self, turns: Sequence[Any]) -> list[TurnDraft]:
        """Raises a ValidationError that names up to 20 turns by their places (`turns.3.timestamp`)."""
        drafts, mistakes, mistaken = [], dict[str, Any](), 0
        for position, turn in enumerate(turns):
            try:
                drafts.append(self.read(turn))
            except ValidationError as err:
                mistakes |= placed(err, f"turns.{position}")
                mistaken += 1
                if mistaken == MOST_NAMED:
                    break
            except Unprocessable as err:
                # of a vector: which turn's, the sentence would not say
                err.args = (f"turns[{position}]: {err}",)
                raise
        if mistakes:
            raise ValidationError(mistakes)
        return drafts

    def read(self, turn: Any) -> TurnDraft:
        """Raises a ValidationError by field, and what `Admission.admit` raises for a vector."""
        fields = read_fields(turn)
        if fields.get("timestamp", self.now) > self.now + CLOCK_SKEW:
            raise ValidationError({"timestamp": ["Lies more than 5 minutes ahead."]})
        try:
            message = read_message(fields)
        except MalformedMessage as err:
            raise ValidationError({err.field: [str(err)]}) from err
        own = None
        if "embedding" in fields:
            own = self.vectors.admit(model=fields.get("embedding_model", ""), vector=fields["embedding"])
        given = {
            name: fields[name] for name in ("timestamp", "index", "client_id", "model", "metadata") if name in fields
        }
        return TurnDraft(message=message, own=own, **given)


def read_fields(turn: Any) -> dict[str, Any]:
    """The fields, each by itself as it should be."""
    if not isinstance(turn, dict):
        raise ValidationError({"non_field_errors": ["Must be an object."]})
    fields: dict[str, Any] = {}
    mistakes: dict[str, Any] = {} if "role" in turn else {"role": ["This field is required."]}
    for name, value in turn.items():
        reader = READERS.get(name)
        if reader is None:
            mistakes[name[:LONGEST_ID]] = ["no such field"]
            continue
        try:
            fields[name] = reader(value)
        except ValidationError as err:
            mistakes[name] = err.detail
    if mistakes:
        raise ValidationError(dict(list(mistakes.items())[:MOST_NAMED]))
    refuse_much_beyond_text(fields)
    return fields


def refuse_much_beyond_text(fields: Mapping[str, Any]) -> None:
    beyond = [fields[name] for name in BEYOND_TEXT if fields.get(name) is not None]
    if beyond and size_bytes_of(beyond) > LARGEST_CONTENT:
        present = ", ".join(name for name in BEYOND_TEXT if fields.get(name) is not None)
        raise ValidationError({"non_field_errors": [f"{present} have at most {LARGEST_CONTENT} bytes together."]})


def placed(err: ValidationError, place: str) -> dict[str, Any]:
    """The mistakes of one turn under the place of each."""
    detail: Any = err.detail
    return {place if name == "non_field_errors" else f"{place}.{name}": reasons for name, reasons in detail.items()}


@extend_schema_field(CONTENT)
class ContentField(serializers.JSONField):
    """A text, the parts of a chat message, or null."""


class NewTurn(StrictSerializer):
    """One message. Those of OpenAI's chat API can be sent as they are."""

    role = serializers.ChoiceField(Turn.Role.choices)
    name = ExternalId(required=False, allow_null=True, help_text="The speaker.")
    content = ContentField(allow_null=True, help_text="May be left out beside tool calls.")
    timestamp = serializers.DateTimeField(
        required=False, help_text="When it was said: with a zone, at most 5 minutes ahead. Now by default."
    )
    index = WholeNumber(
        required=False,
        min_value=0,
        max_value=LARGEST_INDEX,
        help_text="Where it belongs. The same message there already is answered again, another one is a 409.",
    )
    metadata = serializers.DictField(required=False, help_text=f"At most {LARGEST_METADATA} bytes.")
    client_id = ExternalId(required=False, help_text="Your name for it: sent again, it is stored once.")
    model = ExternalId(required=False, help_text="The model that wrote it.")
    embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")
    tool_calls = serializers.ListField(required=False, allow_null=True)
    tool_call_id = Text(required=False, allow_null=True)
    function_call = serializers.DictField(required=False, allow_null=True)
    refusal = Text(required=False, allow_null=True)
    annotations = serializers.ListField(required=False, allow_null=True)
    audio = serializers.DictField(required=False, allow_null=True)


@extend_schema_field(NewTurn(many=True))
class NewTurnList(serializers.Field[list[Any], Any, Any, Any]):
    """A list of 1 to 1,000, measured only: `TurnReader` looks at each."""

    default_error_messages = {"shape": "A list of turns is needed.", "empty": "At least one turn is needed."}

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("shape")
        if not data:
            self.fail("empty")
        if len(data) > MOST_TURNS:
            detail = f"A request has at most {MOST_TURNS} turns; as NDJSON, any number."
            raise Problem(413, "too_many_turns", detail, limit=MOST_TURNS)
        return data
