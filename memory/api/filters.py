"""Filters of lists: query parameters that become conditions."""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django_filters import CharFilter, FilterSet, TypedChoiceFilter

from memory_project.http.paths import MAX_ID_CHARACTERS

Row = TypeVar("Row", bound=Model)


class RowFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Base of the filters of a list."""


class TextFilter(CharFilter):  # type: ignore[misc]  # django-filter has no types
    """Rows whose column equals the text, spaces included. By default as long as an id may be."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_ID_CHARACTERS, "strip": False, **options})


def boolean_filter(**options: Any) -> Any:
    """Return a filter that refuses everything but `true` and `false`, which django-filter's own ignores."""
    choices = (("true", "true"), ("false", "false"))
    return TypedChoiceFilter(choices=choices, coerce=lambda text: text == "true", **options)


def filter_rows(rows: QuerySet[Row], query: Mapping[str, Any], lookups: Mapping[str, str]) -> QuerySet[Row]:
    """Filter rows by the parameters that a checked query has. `lookups` maps parameters to Django lookups."""
    return rows.filter(**{lookup: query[name] for name, lookup in lookups.items() if name in query})
