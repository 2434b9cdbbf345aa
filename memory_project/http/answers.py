"""Answers: a serializer declares the fields of one shape, and both the OpenAPI document and the JSON follow from it."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, cast

from django.db.models import JSONField, Model
from rest_framework import serializers
from rest_framework.utils.field_mapping import ClassLookupDict

NOTHING: Mapping[str, Any] = {}
TYPES_OF_COLUMNS: Any = ClassLookupDict(cast("Any", serializers.ModelSerializer.serializer_field_mapping))
TYPES_OF_JSON = {dict: serializers.DictField, list: serializers.ListField}
"""Types of JSON by the default of the column."""


def columns_of(model: type[Model], names: str) -> dict[str, Any]:
    """Return the fields of an answer that are columns of the model: each has the type, choices and null of its column.

    `names` are separated by blanks.
    """
    return {name: _field_of_column(model._meta.get_field(name)) for name in names.split()}


def _field_of_column(column: Any) -> Any:
    if column.choices:
        return serializers.ChoiceField(column.choices, allow_null=column.null)
    stored = column.target_field if column.is_relation else column
    is_json = isinstance(stored, JSONField)
    field = TYPES_OF_JSON.get(stored.default, serializers.JSONField) if is_json else TYPES_OF_COLUMNS[stored]
    return field(allow_null=column.null)


class AnswerSerializer(serializers.Serializer[Any]):
    """Base of the shapes that the service answers.

    Fields of which there is no more to say than the model does are declared together, as
    `columns = columns_of(Fact, "temporal valid_from")`.

    The value of a field is the row's attribute of that name, or the one that `source` names (dots lead through
    attributes). UUIDs become text, nested AnswerSerializers become objects, everything else is left to the renderer.
    A field that no attribute holds has a static method `compute_<field>(row)`; a field class may have a static method
    `from_attribute(value)`. Fields with `required=False` are in an answer only where the caller gives them.
    """

    columns: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "columns" in vars(cls):
            declared: dict[str, Any] = {**cls._declared_fields, **cls.columns}
            # in the order of their declarations, as DRF has them
            ordered = sorted(declared.items(), key=lambda each: each[1]._creation_counter)
            cls._declared_fields = dict(ordered)

    @classmethod
    def serialize(cls, row: Any, given: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
        """Return the JSON object of a row; members in `given` are taken from there instead of from the row."""
        names, read, conversions, computations = _plan(cls, tuple(given))
        # not strict, which costs time: `read` returns one value per name
        answer: dict[str, Any] = dict(zip(names, read(row)))  # noqa: B905
        for name, convert in conversions:
            answer[name] = convert(answer[name])
        for name, compute in computations:
            answer[name] = compute(row)
        answer.update(given)
        return answer

    @classmethod
    def serialize_each(cls, rows: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the JSON objects of rows, in their order."""
        return [cls.serialize(row) for row in rows]

    @classmethod
    def columns_in(cls, model: type[Model]) -> list[str]:
        """Return the columns of a model that this shape reads, for `QuerySet.only`."""
        columns = {column.name for column in model._meta.concrete_fields}
        sources = [field.source or name for name, field in cls._declared_fields.items()]
        return [source for source in sources if source in columns]


class _Plan(NamedTuple):
    """The steps of serializing a row: `read` returns the values of `names`; `conversions` then change some of them."""

    names: tuple[str, ...]
    read: Callable[[Any], tuple[Any, ...]]
    conversions: list[tuple[str, Callable[[Any], Any]]]
    computations: list[tuple[str, Callable[[Any], Any]]]


@cache
def _plan(shape: type[AnswerSerializer], given: tuple[str, ...]) -> _Plan:
    """Work out once per shape what `serialize` does, so that a row costs no more than a handwritten dict."""
    fields = {name: field for name, field in shape._declared_fields.items() if field.required and name not in given}
    computations = [(name, getattr(shape, f"compute_{name}")) for name in fields if hasattr(shape, f"compute_{name}")]
    computed = {name for name, _ in computations}
    names = tuple(name for name in fields if name not in computed)
    conversions = [(name, convert) for name in names if (convert := _conversion(fields[name]))]
    return _Plan(names, _attribute_reader([fields[name].source or name for name in names]), conversions, computations)


def _attribute_reader(sources: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return an attrgetter that returns a tuple for any number of attributes."""
    if len(sources) > 1:
        return attrgetter(*sources)
    return lambda row: tuple(attrgetter(source)(row) for source in sources)


def _conversion(field: Any) -> Callable[[Any], Any] | None:
    if convert := getattr(field, "from_attribute", None):
        return convert  # type: ignore[no-any-return]  # what a field class defines has no type here
    if isinstance(field, serializers.UUIDField):
        return lambda value: None if value is None else str(value)
    if isinstance(field, serializers.ListField) and isinstance(field.child, serializers.UUIDField):
        return lambda ids: [str(each) for each in ids]
    if isinstance(field, serializers.ListSerializer) and isinstance(field.child, AnswerSerializer):
        return field.child.serialize_each
    if isinstance(field, AnswerSerializer):
        serialize = field.serialize
        return lambda row: None if row is None else serialize(row)
    return None
