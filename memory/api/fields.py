"""Fields and base shapes that many bodies, queries and answers share."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory.dates import CLOCK_SKEW
from memory.invisible_characters import is_blank
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import (
    ActingFields,
    BoundedList,
    ExternalId,
    FiniteFloat,
    StrictSerializer,
    Text,
    WholeNumber,
)

MAX_TOP_K = 200
MAX_METADATA_BYTES = 65_536
OF_USER_HELP = (
    "Limit to memories of this user and of no user in particular. Of the latter, an agent sees its own and those that "
    "the account stored; without `agent_id`, all are listed."
)
_ZONE_WITHOUT_PLUS = re.compile(r":\d\d(?:\.\d+)? \d\d(?::?\d\d)?$")
"""The end of a time whose zone had a `+` that was not encoded: in the query of a URL it stands for a blank."""
IN_FUTURE = f"Must be at most {CLOCK_SKEW.total_seconds() / 60:.0f} minutes in the future."


class AwareDateTimeField(serializers.DateTimeField):
    """A time in ISO 8601 with a zone."""

    def to_internal_value(self, value: Any) -> datetime:
        return parse_timestamp(value)


class OwnerFields(ActingFields):
    """The acting agent, the user that the operation is for, and the project."""

    user_id = ExternalId(
        required=False,
        help_text="User that the memory is about. Default: the user that the key is bound to, else no user.",
    )
    channel = ExternalId(required=False, help_text="Name of the project. Default: `_global`.")


class TimeRangeFields(StrictSerializer):
    """The time range of a search or a list."""

    since = AwareDateTimeField(required=False, help_text="Limit to this time and later.")
    until = AwareDateTimeField(required=False, help_text="Limit to earlier times.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "since" in attrs and "until" in attrs and attrs["until"] <= attrs["since"]:
            raise serializers.ValidationError({"until": ["Must be later than `since`."]})
        return attrs


class MemoryFields(AnswerSerializer):
    """Base of answers that are a memory: its ids and its owner."""

    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")
    agent_id = serializers.CharField(help_text="Agent that stored it first. Empty: it was stored for the account.")
    user_id = serializers.CharField(help_text="User that it belongs to. Empty: no user in particular.")
    channel = serializers.CharField(help_text="Name of the project, or `_global`.")


MemoryStatus = partial(
    serializers.CharField,
    allow_null=True,
    help_text="Status of a fact (`active`, `superseded`: another fact replaced it, `ended`: it was true until its "
    "`valid_to`) or of a goal (`active`, `blocked`, `completed`, `abandoned`). Null for other kinds.",
)
"""The status of a memory of any kind."""


class EmbeddingState(serializers.ChoiceField):
    """`stored` or `pending`, from the column `embed_after`: the time from which the memory waits for its vector."""

    def __init__(self) -> None:
        super().__init__(
            ["stored", "pending"],
            source="embed_after",
            help_text="`pending`: the vector is not made yet, and searches find the memory by its words only.",
        )

    @staticmethod
    def from_attribute(embed_after: datetime | None) -> str:
        return "stored" if embed_after is None else "pending"


@cache
def _names_of(draft: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(draft))


def draft_fields(draft: type, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a checked body that are fields of the dataclass `draft`."""
    return {name: body[name] for name in _names_of(draft) if name in body}


def changed_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a checked body that change a row: all but the owner and the client's vector."""
    return {name: value for name, value in body.items() if name not in NOT_CHANGES}


NOT_CHANGES = frozenset({*OwnerFields._declared_fields, "embedding", "embedding_model"})


class QuestionText(Text):
    """A text with at least one character that is not white space. One that nobody sees finds nothing."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not text.strip():
            self.fail("blank")
        return text


class NonBlankText(Text):
    """A text with at least one character that readers see."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if is_blank(text):
            self.fail("blank")
        return text


@extend_schema_field({"type": "object", "additionalProperties": True})
class JsonObject(serializers.Field[dict[str, Any], Any, Any, Any]):
    """Any JSON object. The parser has checked its values already."""

    default_error_messages = {"not_an_object": "Must be a JSON object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        return data


class Metadata(JsonObject):
    """Any JSON object of at most MAX_METADATA_BYTES, for facts of the client's own."""

    default_error_messages = {"too_large": f"Must have at most {MAX_METADATA_BYTES} bytes as JSON."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        checked = super().to_internal_value(data)
        if len(json.dumps(checked, ensure_ascii=False).encode()) > MAX_METADATA_BYTES:
            self.fail("too_large")
        return checked


class TextList(serializers.ListField):
    """A list of texts in an answer."""

    child = serializers.CharField()


Flags = partial(
    TextList, help_text="`instruction`: the text gives orders to the model. Found by rules, which miss some."
)
"""The warnings about a stored text in an answer."""


class IdList(serializers.ListField):
    """A list of ids in an answer."""

    child = serializers.UUIDField()


class Counts(serializers.DictField):
    """Numbers by name in an answer."""

    child = serializers.IntegerField()


class BoundedIds(BoundedList):
    """A list of at most `max_length` ids in a request. Optional."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"child": serializers.UUIDField(), "required": False, **options})


Fraction = partial(FiniteFloat, min_value=0, max_value=1)
"""A number from 0 to 1."""

MinScore = partial(Fraction, default=0.0, help_text="Least `confidence` of results, from 0 to 1. Default: all results.")
"""The least confidence of the results of a search in one kind."""


class TtlSeconds(WholeNumber):
    """A time to live in seconds, from 1 to `max_value`. Optional."""

    def __init__(self, help_text: str = "", *, max_value: int, default_seconds: int | None = None) -> None:
        help_text = help_text or f"Seconds until it expires. Default: {default_seconds}."
        super().__init__(min_value=1, max_value=max_value, required=False, help_text=help_text)


class TopK(WholeNumber):
    """The number of results asked for, from 1 to MAX_TOP_K."""

    def __init__(self, *, default: int = 10, help_text: str = "Maximum number of results.") -> None:
        super().__init__(default=default, min_value=1, max_value=MAX_TOP_K, help_text=help_text)


class QueryWholeNumber(serializers.IntegerField):
    """A whole number in a query string: digits and nothing else, at most 9 of them."""

    def __init__(self, **options: Any) -> None:
        least, most = options.get("min_value", 0), options.get("max_value", 999_999_999)
        message = f"Must be a whole number from {least} to {most}."
        super().__init__(error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), message), **options)

    def to_internal_value(self, data: Any) -> int:
        if not (isinstance(data, str) and data.isascii() and data.isdigit() and len(data) < 10):
            self.fail("invalid")
        return int(data)


class QueryFlag(serializers.BooleanField):
    """`true` or `false` in a query string."""

    default_error_messages = {"invalid": "Must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "false"):
            self.fail("invalid")
        return bool(data == "true")


class Degraded(TextList):
    """The reasons why a recall's answer is worse than it could be."""

    def __init__(self, **options: Any) -> None:
        help_text = (
            "Why the answer may be incomplete: `embedder_unavailable` (the question has no vector), "
            "`embedding_pending` (some memories have no vector yet), `embedding_model_differs` (the settings name "
            "another embedding model than the one that serves), `embedding_model_unknown` (no memory has a vector "
            "of the model of `query_embedding`), and for a technique that dropped out "
            "`<technique>_failed` or `<technique>_deadline`; `results_truncated`: no result fits into `max_tokens`. "
            "Empty: nothing went wrong."
        )
        super().__init__(help_text=help_text, **options)


class SearchDegraded(serializers.ListField):
    """The reasons why a search by meaning alone fell back to words."""

    def __init__(self) -> None:
        super().__init__(
            child=serializers.ChoiceField(
                ["embedder_unavailable", "embedding_pending", "embedding_model_differs", "embedding_model_unknown"]
            ),
            help_text="Why some results were found by their words and not by meaning: `embedder_unavailable` (the "
            "query has no vector), `embedding_pending` (some memories have no vector yet). `embedding_model_differs`: "
            "the settings name another embedding model than the one that serves. `embedding_model_unknown`: no memory "
            "has a vector of the model of `query_embedding`.",
        )


Similarity = partial(
    serializers.FloatField, allow_null=True, help_text="1 - cosine distance to the query. Null: not compared by vector."
)
"""The cosine similarity of a result to the query, or null."""

Likelihood = partial(
    serializers.FloatField,
    source="likelihood",
    help_text="How likely it helps, from 0 to 1. Comparable between answers.",
)
"""The calibrated confidence of a result of a search in one kind."""


class PastDateTimeField(AwareDateTimeField):
    """A time in ISO 8601 with a zone, at most CLOCK_SKEW in the future, because clocks differ."""

    default_error_messages = {"future": IN_FUTURE}

    def to_internal_value(self, value: Any) -> datetime:
        parsed = super().to_internal_value(value)
        if parsed > timezone.now() + CLOCK_SKEW:
            self.fail("future")
        return parsed


class EventTime(PastDateTimeField):
    """The time when a new memory happened. Optional."""

    def __init__(
        self, help_text: str = "Time when it happened, at most 5 minutes in the future. Default: now."
    ) -> None:
        super().__init__(required=False, help_text=help_text)


def parse_timestamp(value: Any) -> datetime:
    """Return a time in UTC. Raises a validation error for anything but ISO 8601 with a zone.

    Times before year 1 or after year 9999 in UTC are refused, because they could not be read back.
    """
    if not isinstance(value, str):
        raise serializers.ValidationError("Must be a text in ISO 8601, such as 2026-05-04T12:00:00Z.")
    try:
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is None:
            raise serializers.ValidationError("The time zone is missing. Add one, such as Z or +02:00.")
        return parsed.astimezone(UTC)
    except OverflowError as err:
        raise serializers.ValidationError("Must be a time from year 1 to year 9999 in UTC.") from err
    except ValueError as err:
        if _ZONE_WITHOUT_PLUS.search(value):
            message = "The time zone lacks its `+`, which is sent as `%2B` in a URL. Or give the time in UTC, with Z."
            raise serializers.ValidationError(message) from err
        raise serializers.ValidationError("Must be a time in ISO 8601, such as 2026-05-04T12:00:00Z.") from err
