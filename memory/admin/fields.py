"""Form fields: ids as clients send them, texts as they are stored, and JSON as strict as the API's."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from rest_framework.exceptions import ParseError

from memory.admin.text import INVISIBLE, indent_json
from memory_project.http.parsers import parse_json
from memory_project.http.paths import CONTROL, MAX_ID_CHARACTERS

INDENTED_FACTOR = 3
INDENTED_ANYWAY_CHARACTERS = 10_000
"""A document is indented if that makes it at most INDENTED_FACTOR times as long, plus this many characters."""

ONE_LINE = {"class": "vTextField", "dir": "auto"}


class ExternalIdField(forms.CharField):
    """An id that clients choose: at most 100 characters, no control characters; spaces are kept."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_ID_CHARACTERS, "strip": False, "empty_value": "", **options})

    def clean(self, value: Any) -> str:
        text: str = super().clean(value)
        if CONTROL.search(text):
            raise ValidationError("Control characters are not allowed.")
        return text


class NameField(forms.CharField):
    """A name on one line; spaces are kept. Browsers drop line ends from such a box, which is not an edit."""

    widget = forms.TextInput(attrs=ONE_LINE)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(str(initial or "").replace("\r", "").replace("\n", "") != (data or ""))


class PlainTextField(forms.CharField):
    """A long text. Browsers send its line ends as CRLF, which are restored so that viewing a text is not an edit."""

    widget = forms.Textarea(attrs={"rows": 12, "class": "vLargeTextField", "dir": "auto"})

    def __init__(self, *, rows: int | None = None, **options: Any) -> None:
        if rows is not None:
            options["widget"] = forms.Textarea(attrs={"rows": rows, "class": "vLargeTextField", "dir": "auto"})
        super().__init__(**{"strip": False, **options})

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n") if isinstance(text, str) else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(initial or "") != self.to_python(data or ""))


class IdListField(PlainTextField):
    """A list of ids, one per line. Agents may be named before they have ever written."""

    widget = forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        lines = [line for line in (super().clean(value) or "").split("\n") if line]
        for number, line in enumerate(lines, start=1):
            try:
                ExternalIdField().clean(line)
            except ValidationError as err:
                raise ValidationError([f"Line {number}: {message}" for message in err.messages]) from err
        return lines

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial or []), data)


def escape_invisible(text: str) -> str:
    """Return the same JSON with each invisible or direction-changing character as a visible escape."""
    return INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class StrictJSONField(forms.JSONField):
    """Any JSON that the API accepts: no NaN, no NUL, no lone surrogate, at most 64 levels deep."""

    widget = forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField json", "spellcheck": "false"})

    def to_python(self, value: Any) -> Any:
        if self.disabled or value in self.empty_values or not isinstance(value, str):
            return value
        try:
            return parse_json(value.encode("utf-8", "surrogatepass"))
        except ParseError as err:
            message = str(err.detail).replace("The body", "The value")
            if isinstance(cause := err.__cause__, json.JSONDecodeError):
                message = f"{message} {cause.msg}: line {cause.lineno}, column {cause.colno}."
            raise ValidationError(message, code="invalid") from err

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
        return escape_invisible(json.dumps(value, ensure_ascii=False, indent=2))

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            value = self.to_python(data)
        except ValidationError:
            return True
        return json.dumps(initial, sort_keys=True) != json.dumps(value, sort_keys=True)


class JSONObjectField(StrictJSONField):
    """A JSON object. An empty box is an empty object."""

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


class JSONListField(JSONObjectField):
    """A JSON list. An empty box is an empty list."""

    shape = list
    shape_name = "a list"


class JSONTextsField(JSONListField):
    """A JSON list of texts."""

    def clean(self, value: Any) -> Any:
        texts = super().clean(value)
        if not all(isinstance(text, str) for text in texts):
            raise ValidationError("Each item of the list must be a text in quotes.")
        return texts


class JSONDocumentField(JSONObjectField):
    """A JSON object that may be large, in an editor. The order of its names counts, and an empty box is refused."""

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
        compact = escape_invisible(json.dumps(value, ensure_ascii=False))
        max_characters = INDENTED_FACTOR * len(compact) + INDENTED_ANYWAY_CHARACTERS
        indented = indent_json(value, characters=max_characters)
        return compact if len(indented) > max_characters else escape_invisible(indented)

    def has_changed(self, initial: Any, data: Any) -> bool:
        if data is None:
            return False
        try:
            return json.dumps(initial) != json.dumps(self.clean(data))
        except ValidationError:
            return True


class JSONValueField(StrictJSONField):
    """Any JSON value, including `null` and empty ones. An empty box is no value and is refused."""

    def clean(self, value: Any) -> Any:
        if not (value or "").strip():
            raise ValidationError(self.error_messages["required"], code="required")
        return self.to_python(value)
