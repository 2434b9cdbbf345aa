"""Shapes of answers: what a model is told of them, and whether an answer is of its shape."""

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
MOST_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where in an answer, and of which kind in pydantic's words, such as `missing`; nothing of its contents."""

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
    faults = tuple(Fault(place=place_of(each), kind=each["type"]) for each in errors[:MOST_FAULTS])
    return Misfit(answer=answer, faults=faults)


def place_of(error: ErrorDetails) -> str:
    """In the shape's own names: that of a field beyond the shape is the answer's, and may be anything."""
    place = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    return ".".join(map(str, place)) or "the whole"


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """The shape as strict endpoints take it: nothing beyond its fields, all of them required, and no bounds."""
    return tighten(shape.model_json_schema())


def tighten(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema and all that stand in it; `properties` and `$defs` hold schemas by names, which may be any."""
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
