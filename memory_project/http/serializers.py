"""Request shapes that refuse unknown fields, and the strict fields that both apps use."""

import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar

from rest_framework import serializers

from memory_project.http.paths import CONTROL, MAX_ID_CHARACTERS

MAX_NAMED_ERRORS = 20
TEXT = "text"
TEXT_FIELDS = ("claim", "summary", "insight", "description", "content", "thought")
"""Documented names of the text of a thing. The first one that a shape has may be sent as `text` as well."""
MEANT_BY: Mapping[str, tuple[str, ...]] = {
    "limit": ("top_k", "page_size"),
    "k": ("top_k",),
    "n_results": ("top_k",),
    "max_results": ("top_k", "page_size"),
    "threshold": ("min_score",),
    "q": ("query",),
    "question": ("query",),
    "prompt": ("query",),
    "memory": (TEXT,),
    "content": (TEXT,),
    "statement": ("claim", TEXT),
    "fact": ("claim",),
    TEXT: ("query", "task_description"),
    "messages": ("turns",),
    "message": ("content", "turns"),
    "title": ("name", "description"),
    "name": ("pool_id", "key"),
    "session_id": ("conversation_id",),
    "thread_id": ("conversation_id",),
    "run_id": ("conversation_id", "workflow_run_id"),
    "namespace": ("channel",),
    "project": ("channel",),
    "ttl": ("ttl_seconds",),
    "tags": ("metadata",),
    "event_time": ("timestamp",),
    "timestamp": ("event_time", "since"),
    "created_at": ("event_time", "timestamp"),
    "date": ("event_time", "timestamp"),
    "time": ("event_time", "timestamp"),
}
"""Names that other services use, with ours. They are suggested where misspelling does not explain a name."""


_OF_THREAD = threading.local()
_OF_REQUEST = ("initial_data", "_validated_data", "_errors", "_data")
"""Attributes of a serializer that belong to what it checks."""


def check_data(shape: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    """Return the data as the shape's fields understand it. Raises ValidationError.

    Each thread keeps one serializer for each shape: copying the fields of a large shape takes longer than checking a
    request. No field may depend on the serializer's context.
    """
    kept: dict[type[serializers.Serializer[Any]], serializers.Serializer[Any]]
    kept = vars(_OF_THREAD).setdefault("serializers", {})
    if shape not in kept:
        kept[shape] = shape(data=None)
    serializer = kept[shape]
    serializer.initial_data = data
    try:
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
    finally:
        for name in _OF_REQUEST:
            vars(serializer).pop(name, None)
    return checked


class StrictSerializer(serializers.Serializer[Any]):
    """A shape that refuses unknown fields by name, as do the shapes nested in it.

    Unknown fields are reported together with what else is wrong, and unknown choices with the choices. The text of a
    thing (`text_field`) may be sent as `text`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for field in vars(cls).get("_declared_fields", {}).values():
            describe_choices(field)

    @classmethod
    def text_field_name(cls) -> str:
        """Return the name of the field that may be sent as `text`; empty if there is none."""
        names = cls._declared_fields
        return "" if TEXT in names else next((name for name in TEXT_FIELDS if name in names), "")

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            return super().to_internal_value(data)
        sent, name = data, self.text_field_name()
        data = rename_text(data, name)
        unknown = describe_unknown_names(data, [name for name, field in self.fields.items() if not field.read_only])
        try:
            checked = super().to_internal_value(data)
        except serializers.ValidationError as err:
            raise serializers.ValidationError(unknown | name_as_sent(err, sent, name)) from err
        if unknown:
            raise serializers.ValidationError(unknown)
        return checked


def describe_choices(field: Any) -> None:
    """Make a declared field, and the elements of a list, answer an unknown choice with the choices."""
    child = getattr(field, "child", None)
    # not of subclasses, which say it in their own way
    if type(field) is serializers.ChoiceField:
        allowed = ", ".join(str(choice) for choice in field.choices)
        messages = {"invalid_choice": '"{input}" is not one of the choices: ' + allowed + "."}
        field.error_messages |= messages
        # serializers copy their fields from these options
        options: Any = vars(field)["_kwargs"]
        options["error_messages"] = messages | options.get("error_messages", {})
    elif child is not None:
        describe_choices(child)


class ObjectOrText(StrictSerializer):
    """An object, or a text that stands for an object with nothing but the field `text_field`."""

    text_field: ClassVar[str] = "text"

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value({self.text_field: data} if isinstance(data, str) else data)


def rename_text(given: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object with its `text` under the documented name, which may be empty if it has no other name.

    Raise a validation error if it has two different texts.
    """
    if not name or TEXT not in given:
        return given
    if name in given and given[name] != given[TEXT]:
        raise serializers.ValidationError({TEXT: [f'"{TEXT}" is another name of "{name}": send one of them.']})
    return {name if each == TEXT else each: value for each, value in given.items()}


def name_as_sent(err: serializers.ValidationError, sent: Any, name: str) -> dict[str, Any]:
    """Return the errors by field. What is wrong with a text that was sent as `text` is said of `text`."""
    errors: Any = err.detail
    if name in errors and isinstance(sent, dict) and TEXT in sent and name not in sent:
        return {TEXT if each == name else each: reasons for each, reasons in errors.items()}
    return dict(errors)


def refuse_unknown_names(given: Iterable[str], allowed: Collection[str], *, noun: str = "field") -> None:
    """Raise a validation error with `describe_unknown_names`, if there are any."""
    if unknown := describe_unknown_names(given, allowed, noun=noun):
        raise serializers.ValidationError(unknown)


def describe_unknown_names(
    given: Iterable[str], allowed: Collection[str], *, noun: str = "field"
) -> dict[str, list[str]]:
    """Return an error for each unknown name, at most MAX_NAMED_ERRORS. They say what is allowed instead."""
    unknown = sorted(set(given).difference(allowed))[:MAX_NAMED_ERRORS]
    if not unknown:
        return {}
    known = sorted(allowed)
    sentences = [describe_unknown_name(name, known, noun=noun) for name in unknown]
    # once is enough: an object may have twenty unknown fields, and a list may have twenty such objects
    sentences[0] += f" Allowed: {', '.join(known)}." if known else " None is allowed."
    return {name[:MAX_ID_CHARACTERS]: [sentence] for name, sentence in zip(unknown, sentences, strict=True)}


def describe_unknown_name(name: str, known: list[str], *, noun: str) -> str:
    """Return a sentence that says that nothing has this name, with the known name that it may be a misspelling of."""
    shown = name[:MAX_ID_CHARACTERS]
    meant = find_meant_name(shown, known)
    return f'"{shown}" is not a {noun} here.' + (f' Did you mean "{meant}"?' if meant else "")


def find_meant_name(name: str, known: Sequence[str]) -> str:
    """Return the known name that another service calls so, that is spelled like it, or that it is a word of.

    Answers name the `parent_id` of a goal, of which requests send the `parent`.
    """
    words = [each for each in known if name in each.split("_")]
    meant = (*MEANT_BY.get(name, ()), name.removesuffix("_id"))
    close = [each for each in meant if each in known] or get_close_matches(name, known, n=1)
    # a word of several names says nothing
    return next(iter(close), words[0] if len(words) == 1 else "")


class Text(serializers.CharField):
    """A string, unchanged: numbers are refused instead of converted, and spaces are kept."""

    default_error_messages = {"invalid": "Must be a text: a JSON string."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


BOUNDS = {"max_value": "Must be at most {max_value}.", "min_value": "Must be at least {min_value}."}


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

    default_error_messages = {"invalid": "Must be a whole number, without quotes.", **BOUNDS}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            return int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """The JSON values true and false; not 1, not "yes"."""

    default_error_messages = {"invalid": "Must be true or false, without quotes."}

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

    default_error_messages = {"invalid": "Must be a number, without quotes.", **BOUNDS}

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
        help_text="Agent that acts. Default: the agent that the key is bound to, else the account itself. What only an "
        "agent can have, such as a note, is refused without one (400).",
    )
