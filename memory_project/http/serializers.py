"""Shapes: bodies and queries that refuse what they do not know, and the fields that both apps use."""

import math
from typing import Any, ClassVar

from rest_framework import serializers

from memory_project.http.paths import CONTROL, LONGEST_ID

MOST_NAMED = 20


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields by name. Nested ones do the same for theirs."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            refuse_unknown(set(data) - {name for name, field in self.fields.items() if not field.read_only})
        return super().to_internal_value(data)


class Abridged(StrictSerializer):
    """An object, or a text that stands for one with nothing but the field `abridged_to`."""

    abridged_to: ClassVar[str] = "text"

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value({self.abridged_to: data} if isinstance(data, str) else data)


def refuse_unknown(names: set[str], *, told: str = "no such field") -> None:
    """Raise a validation error that names (the first of) them."""
    if names:
        raise serializers.ValidationError({name[:LONGEST_ID]: [told] for name in sorted(names)[:MOST_NAMED]})


class Text(serializers.CharField):
    """A string as it is: numbers are refused rather than turned into one, spaces are kept."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ExternalId(Text):
    """An id of the client's: 1 to 100 characters, no control characters."""

    default_error_messages = {"control": "Control characters are not allowed."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": LONGEST_ID, **options})

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if CONTROL.search(text):
            self.fail("control")
        return text


class WholeNumber(serializers.IntegerField):
    """A JSON number without a fraction; texts and booleans, which int() would take, are refused."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            return int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """true or false; not 1, not "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class BoundedList(serializers.ListField):
    """A list of at most `max_length` elements: measured before any is looked at, and few of many mistakes are told."""

    def __init__(self, *, max_length: int, **options: Any) -> None:
        super().__init__(max_length=max_length, **options)
        self.longest = max_length

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and len(data) > self.longest:
            self.fail("max_length", max_length=self.longest)
        return super().to_internal_value(data)

    def run_child_validation(self, data: list[Any]) -> list[Any]:
        checked: list[Any] = []
        mistakes: dict[Any, Any] = {}
        for index, element in enumerate(data):
            try:
                checked.append(self.child.run_validation(element))
            except serializers.ValidationError as err:
                mistakes[index] = err.detail
                if len(mistakes) == MOST_NAMED:
                    break
        if mistakes:
            raise serializers.ValidationError(mistakes)
        return checked


class FiniteFloat(serializers.FloatField):
    """A number; `"nan"` and `"inf"`, which float() would take, are refused."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool | str):
            self.fail("invalid")
        number = super().to_internal_value(data)
        if not math.isfinite(number):
            self.fail("invalid")
        return number


class ActingFields(StrictSerializer):
    """Who acts: optional, since a bound key says it, and an unbound one may act for its account."""

    agent_id = ExternalId(required=False, help_text="The acting agent.")
