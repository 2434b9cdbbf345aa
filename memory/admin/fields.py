"""Form fields for what staff type: ids as clients may send them, texts as they are, JSON as strictly as the API."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from rest_framework.exceptions import ParseError

from memory.admin.text import INVISIBLE
from memory_project.http.parsers import parse_json
from memory_project.http.paths import CONTROL, LONGEST_ID


class ExternalIdField(forms.CharField):
    """An id of the clients': at most 100 characters, none of them a control character; spaces are kept."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": LONGEST_ID, "strip": False, "empty_value": "", **options})

    def clean(self, value: Any) -> str:
        text: str = super().clean(value)
        if CONTROL.search(text):
            raise ValidationError("Control characters are not allowed.")
        return text


class PlainTextField(forms.CharField):
    """A long text. Browsers send line ends as CRLF: taken back, or looking at a text would change it."""

    widget = forms.Textarea(attrs={"rows": 12, "class": "vLargeTextField", "dir": "auto"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"strip": False, **options})

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if isinstance(text, str) else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(initial or "") != self.to_python(data or ""))


def tell_json_error(err: ParseError) -> str:
    """What is wrong with a value, and where, for people."""
    told = str(err.detail).replace("The body", "The value")
    place = err.__cause__
    if not isinstance(place, json.JSONDecodeError):
        return told
    return f"{told} {place.msg}: line {place.lineno}, column {place.colno}."


def with_escapes(text: str) -> str:
    """The same JSON, in which nobody overlooks a character that shows nothing or turns the line."""
    return INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class StrictJSONField(forms.JSONField):
    """Any JSON that the API would take: no NaN, no NUL, no lone surrogate, at most 64 deep."""

    widget = forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField json", "spellcheck": "false"})

    def to_python(self, value: Any) -> Any:
        if self.disabled or value in self.empty_values or not isinstance(value, str):
            return value
        try:
            return parse_json(value.encode("utf-8", "surrogatepass"))
        except ParseError as err:
            raise ValidationError(tell_json_error(err), code="invalid") from err

    def bound_data(self, data: Any, initial: Any) -> Any:
        if self.disabled:
            return initial
        if data is None:
            return None
        try:
            return parse_json(data.encode("utf-8", "surrogatepass"))
        except ParseError:
            return InvalidJSONInput(data)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, InvalidJSONInput):
            return value
        return with_escapes(json.dumps(value, ensure_ascii=False, indent=2))

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            value = self.to_python(data)
        except ValidationError:
            return True
        return json.dumps(initial, sort_keys=True) != json.dumps(value, sort_keys=True)


class ShapedJSONField(StrictJSONField):
    """JSON of one shape; an empty box is an empty one."""

    shape: type[dict[str, Any]] | type[list[Any]] = dict
    shape_name = "an object"

    def clean(self, value: Any) -> Any:
        parsed = self.to_python(value)
        if parsed is None or parsed == "":
            return self.shape()
        if not isinstance(parsed, self.shape):
            raise ValidationError(f"The value must be {self.shape_name}.")
        return parsed

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(initial, data or json.dumps(self.shape()))


class JSONObjectField(ShapedJSONField):
    """An object."""


class JSONDocumentField(JSONObjectField):
    """An object that may be large, in an editor; the order of its names counts, and an empty box is none."""

    widget = forms.Textarea(
        attrs={"rows": 28, "cols": 120, "class": "vLargeTextField json json-document", "spellcheck": "false"}
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "initial": dict, **options})

    def clean(self, value: Any) -> Any:
        parsed = self.to_python(value)
        if not isinstance(parsed, self.shape):
            raise ValidationError("The value must be an object; an empty one is {}.")
        return parsed

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, InvalidJSONInput):
            return value
        compact = with_escapes(json.dumps(value, ensure_ascii=False))
        # what is nested deeply is many times longer over lines
        pieces, length = [], 0
        for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_STRETCH * len(compact) + STRETCHED_ANYHOW:
                return compact
        return with_escapes("".join(pieces))

    def has_changed(self, initial: Any, data: Any) -> bool:
        if data is None:
            return False
        try:
            return json.dumps(initial) != json.dumps(self.clean(data))
        except ValidationError:
            return True


MOST_STRETCH = 3
STRETCHED_ANYHOW = 10_000
"""A document is shown over lines where that makes it no longer than MOST_STRETCH times and so many characters."""


class JSONListField(ShapedJSONField):
    """A list."""

    shape = list
    shape_name = "a list"


class JSONTextsField(JSONListField):
    """A list of texts."""

    def clean(self, value: Any) -> Any:
        texts = super().clean(value)
        if not all(isinstance(text, str) for text in texts):
            raise ValidationError("Each of the list is a text.")
        return texts


class JSONValueField(StrictJSONField):
    """Any JSON value, `null` and empty ones included; an empty box is no value."""

    def clean(self, value: Any) -> Any:
        if not (value or "").strip():
            raise ValidationError(self.error_messages["required"], code="required")
        return self.to_python(value)
