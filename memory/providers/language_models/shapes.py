"""Shapes of answers: how a model is instructed about them, and how an answer is validated."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from memory.providers.language_models.base import Shape

# bounds: some strict endpoints refuse to be told of them (OpenAI's of a text's, Azure's of any); they are checked here
BEYOND_STRICT = frozenset(
    {
        "default",
        *("minLength", "maxLength", "pattern", "format"),
        *("minItems", "maxItems", "uniqueItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
# PostgreSQL keeps no NUL: an escaped one, behind an even number of backslashes
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
MAX_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of an answer: where, and its kind as pydantic names it, such as `missing`; nothing of its contents."""

    place: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """An answer that is not of its shape."""

    answer: str
    faults: tuple[Fault, ...]

    @property
    def kinds(self) -> str:
        return ", ".join(sorted({fault.kind for fault in self.faults}))


def fit_answer(answer: str, shape: type[Shape]) -> Shape | Misfit:
    """Strictly: a number in quotes is no number. Fields beyond the shape are the shape's own affair."""
    if NUL.search(answer):
        return Misfit(answer=answer, faults=(Fault(place="a text", kind="nul_character"),))
    try:
        return shape.model_validate_json(answer, strict=True)
    except ValidationError as err:
        errors = err.errors(include_url=False, include_context=False, include_input=False)
    faults = tuple(Fault(place=location_in_shape(each), kind=each["type"]) for each in errors[:MAX_FAULTS])
    return Misfit(answer=answer, faults=faults)


def location_in_shape(error: ErrorDetails) -> str:
    """Return the location in the shape's own names: the name of an unknown field comes from the answer."""
    place = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    return ".".join(map(str, place)) or "the whole"


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the schema as strict endpoints accept it: no additional fields, all of them required, and no bounds."""
    return tighten(shape.model_json_schema())


def tighten(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Make a schema and all schemas in it strict; `properties` and `$defs` hold schemas by arbitrary names."""
    strict = {key: value for key, value in schema.items() if key not in BEYOND_STRICT}
    for key in ("properties", "$defs"):
        if key in strict:
            strict[key] = {name: tighten(inner) for name, inner in strict[key].items()}
    if "items" in strict:
        strict["items"] = tighten(strict["items"])
    if "anyOf" in strict:
        strict["anyOf"] = [tighten(inner) for inner in strict["anyOf"]]
    if strict.get("type") == "object":
        strict |= {"additionalProperties": False, "required": list(strict.get("properties", {}))}
    return strict
