"""Fields that many bodies and queries share."""

import json
from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory_project.http.serializers import ActingFields, ExternalId, Text

DEGRADED = (
    "What kept the answer from being better: `embedder_unavailable` (the question has no vector), `embedding_pending` "
    "(some memories have none yet), and of a technique that dropped out `<technique>_failed` or `<technique>_deadline`."
)


class OwnerFields(ActingFields):
    """For whom: base of every body or query that takes the owner; `self.owner(data)` reads it."""

    user_id = ExternalId(required=False, help_text="Whom it is about.")
    channel = ExternalId(required=False, help_text="A project's name; `_global` by default.")


class Prose(Text):
    """A text with something in it: blanks alone have no meaning to find again."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not text.strip():
            self.fail("blank")
        return text


@extend_schema_field({"type": "object", "additionalProperties": True})
class Metadata(serializers.JSONField):
    """The client's own facts about something: any JSON object, which the parser has checked already."""

    largest_bytes = 65_536
    default_error_messages = {
        "not_an_object": "Must be an object.",
        "too_large": f"Has at most {largest_bytes} bytes, serialized.",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        if len(json.dumps(data, ensure_ascii=False).encode()) > self.largest_bytes:
            self.fail("too_large")
        return data


class Degraded(serializers.ListField):
    """What kept a recall from being better."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=serializers.CharField(), help_text=DEGRADED, **options)


class Count(serializers.IntegerField):
    """A whole number in a query: digits and nothing else."""

    def to_internal_value(self, data: Any) -> int:
        if not (isinstance(data, str) and data.isascii() and data.isdigit() and len(data) < 10):
            self.fail("invalid")
        return int(data)


class Moment(serializers.DateTimeField):
    """A moment with a zone."""

    def to_internal_value(self, value: Any) -> datetime:
        return read_timestamp(value)


def read_timestamp(value: Any) -> datetime:
    """In UTC: what is before its first year there could not be read again."""
    if not isinstance(value, str):
        raise serializers.ValidationError("Must be a text in ISO 8601.")
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise serializers.ValidationError("Needs a zone, such as Z or +02:00.")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as err:
        raise serializers.ValidationError("Must be a moment in ISO 8601, such as 2026-05-04T12:00:00Z.") from err
