"""Filters of lists: query parameters that become conditions."""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django_filters import CharFilter, FilterSet, TypedChoiceFilter
from drf_spectacular.utils import extend_schema_field

from memory_project.http.paths import MAX_ID_CHARACTERS

Row = TypeVar("Row", bound=Model)


class RowFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Base of the filters of a list. An unknown choice is answered with the choices."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for each in vars(cls).get("declared_filters", {}).values():
            if choices := each.extra.get("choices"):
                allowed = ", ".join(str(value) for value, _label in choices)
                message = f'"%(value)s" is not one of the choices: {allowed}.'
                each.extra.setdefault("error_messages", {"invalid_choice": message})


class TextFilter(CharFilter):  # type: ignore[misc]  # django-filter has no types
    """Rows whose column equals the text, spaces included. By default as long as an id may be."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_ID_CHARACTERS, "strip": False, **options})


def boolean_filter(**options: Any) -> Any:
    """Return a filter that refuses everything but `true` and `false`, which django-filter's own ignores."""
    choices = (("true", "true"), ("false", "false"))
    found = TypedChoiceFilter(choices=choices, coerce=lambda text: text == "true", **options)
    return extend_schema_field(bool)(found)


def filter_rows(rows: QuerySet[Row], query: Mapping[str, Any], lookups: Mapping[str, str]) -> QuerySet[Row]:
    """Filter rows by the parameters that a checked query has. `lookups` maps parameters to Django lookups."""
    return rows.filter(**{lookup: query[name] for name, lookup in lookups.items() if name in query})
