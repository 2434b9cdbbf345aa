"""Request shapes that refuse unknown fields, and the strict fields that both apps use."""

import math
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, ClassVar

from rest_framework import serializers

from memory_project.http.paths import CONTROL, MAX_ID_CHARACTERS

MAX_NAMED_ERRORS = 20
TEXT_FIELDS = ("description", "content", "summary")
"""Documented names of what other services call `text`, suggested where `text` is no alias."""


class StrictSerializer(serializers.Serializer[Any]):
    """A shape that refuses unknown fields by name, as do the shapes nested in it. Fields may have an alias."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            for name, field in self.fields.items():
                data = rename_alias(data, getattr(field, "alias", ""), name)
            refuse_unknown_names(data, [name for name, field in self.fields.items() if not field.read_only])
        return super().to_internal_value(data)


class ObjectOrText(StrictSerializer):
    """An object, or a text that stands for an object with nothing but the field `text_field`."""

    text_field: ClassVar[str] = "text"

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value({self.text_field: data} if isinstance(data, str) else data)


def rename_alias(given: dict[str, Any], alias: str, name: str) -> dict[str, Any]:
    """Return the object with the field `alias` under its documented name. Raise a validation error if it has both."""
    if not alias or alias not in given:
        return given
    if name in given:
        raise serializers.ValidationError({alias: [f'"{alias}" is another name of "{name}": send one of them.']})
    return {name if each == alias else each: value for each, value in given.items()}


def refuse_unknown_names(given: Iterable[str], allowed: Collection[str], *, noun: str = "field") -> None:
    """Raise a validation error by unknown name, for at most MAX_NAMED_ERRORS names. It says what is allowed instead."""
    unknown = sorted(set(given).difference(allowed))[:MAX_NAMED_ERRORS]
    if not unknown:
        return
    known = sorted(allowed)
    sentences = [describe_unknown_name(name, known, noun=noun) for name in unknown]
    # once is enough: an object may have twenty unknown fields, and a list may have twenty such objects
    sentences[0] += f" Allowed: {', '.join(known)}." if known else " None is allowed."
    raise serializers.ValidationError(
        {name[:MAX_ID_CHARACTERS]: [sentence] for name, sentence in zip(unknown, sentences, strict=True)}
    )


def describe_unknown_name(name: str, known: list[str], *, noun: str) -> str:
    """Return a sentence that says that nothing has this name, with the known name that it may be a misspelling of."""
    shown = name[:MAX_ID_CHARACTERS]
    close = [each for each in TEXT_FIELDS if each in known] if name == "text" else get_close_matches(shown, known, n=1)
    return f'"{shown}" is not a {noun} here.' + (f' Did you mean "{close[0]}"?' if close else "")


class Text(serializers.CharField):
    """A string, unchanged: numbers are refused instead of converted, and spaces are kept.

    `alias` is another name under which `StrictSerializer` accepts the field.
    """

    def __init__(self, *, alias: str = "", **options: Any) -> None:
        if alias:
            options["help_text"] = f"{options['help_text']} May be sent as `{alias}`."
        super().__init__(**{"trim_whitespace": False, **options})
        self.alias = alias

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ExternalId(Text):
    """An id chosen by the client: 1 to 100 characters, no control characters."""

    default_error_messages = {"control": "Control characters, such as line breaks, are not allowed here."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_ID_CHARACTERS, **options})

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if CONTROL.search(text):
            self.fail("control")
        return text


class WholeNumber(serializers.IntegerField):
    """A JSON number without a fraction. Texts and booleans, which int() would accept, are refused."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            return int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """The JSON values true and false; not 1, not "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class BoundedList(serializers.ListField):
    """A list of at most `max_length` elements.

    The length is checked before any element, and at most MAX_NAMED_ERRORS invalid elements are reported.
    """

    def __init__(self, *, max_length: int, **options: Any) -> None:
        super().__init__(max_length=max_length, **options)
        self.max_elements = max_length

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and len(data) > self.max_elements:
            self.fail("max_length", max_length=self.max_elements)
        return super().to_internal_value(data)

    def run_child_validation(self, data: list[Any]) -> list[Any]:
        checked: list[Any] = []
        errors: dict[Any, Any] = {}
        for index, element in enumerate(data):
            try:
                checked.append(self.child.run_validation(element))
            except serializers.ValidationError as err:
                errors[index] = err.detail
                if len(errors) == MAX_NAMED_ERRORS:
                    break
        if errors:
            raise serializers.ValidationError(errors)
        return checked


class FiniteFloat(serializers.FloatField):
    """A JSON number. The texts `"nan"` and `"inf"`, which float() would accept, are refused."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool | str):
            self.fail("invalid")
        number = super().to_internal_value(data)
        if not math.isfinite(number):
            self.fail("invalid")
        return number


class ActingFields(StrictSerializer):
    """The acting agent. Optional: a bound key determines it, and an unbound key may act for its account."""

    agent_id = ExternalId(
        required=False,
        help_text="Agent that acts. Default: the agent that the key is bound to, else the account itself.",
    )
