"""Pages by key: a cursor is the last row's place in the order, so that pages neither skip nor repeat, however deep."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Model, Q
from django.utils import timezone
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ValidationError
from rest_framework.utils.urls import replace_query_param

from memory_project.http.paths import external_path

DEFAULT_SIZE = 50
LARGEST_SIZE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Beyond the row with these values of the ordering columns; `backwards` looks at what comes before it."""

    values: tuple[Any, ...]
    backwards: bool

    def encode(self) -> str:
        plain = [self.backwards, *map(_plain, self.values)]
        return base64.urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, int | float | str) else str(value)


def decode_position(cursor: str, model: type[Model], columns: Sequence[str]) -> Position:
    """The inverse of `encode`. Raises a validation error for anything that `encode` did not write."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        backwards, *plain = json.loads(base64.urlsafe_b64decode(padded))
        values = tuple(_read(model, name, value) for name, value in zip(columns, plain, strict=True))
    except (ValueError, TypeError, RecursionError, DjangoValidationError) as err:
        raise ValidationError({"cursor": ["not a cursor of this list"]}) from err
    return Position(values=values, backwards=backwards is True)


def _read(model: type[Model], column: str, plain: Any) -> Any:
    if plain is None or isinstance(plain, list | dict):
        raise ValueError("not a column's value")
    field: Any = model._meta.get_field(column)
    value = field.to_python(plain)
    if value is None or (isinstance(value, datetime) and timezone.is_naive(value)) or "\0" in str(value):
        raise ValueError("not a column's value")
    return value


def beyond(ordering: Sequence[str], position: Position) -> Q:
    """The rows after (or before) a position: a < x, or a = x and b < y, and so on along the ordering."""
    condition, equal = Q(), Q()
    for term, value in zip(ordering, position.values, strict=True):
        descending = term.startswith("-") is not position.backwards
        column = term.removeprefix("-")
        condition |= equal & Q(**{f"{column}__{'lt' if descending else 'gt'}": value})
        equal &= Q(**{column: value})
    return condition


def reverse(ordering: Sequence[str]) -> list[str]:
    return [term[1:] if term.startswith("-") else f"-{term}" for term in ordering]


class Cursor(BasePagination):
    """`{"next", "previous", "results"}`. The view's `ordering` names columns that are never null, the last unique."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        ordering: Sequence[str] = view.ordering
        self.columns = [term.removeprefix("-") for term in ordering]
        self.base_url = request.build_absolute_uri(external_path(request.path))
        self.parameters = request.query_params
        size = read_size(request.query_params)
        position = self._position(request, queryset.model)
        backwards = position is not None and position.backwards
        rows = queryset if position is None else queryset.filter(beyond(ordering, position))
        found = list(rows.order_by(*(reverse(ordering) if backwards else ordering))[: size + 1])
        has_more = len(found) > size
        self.page = found[:size][::-1] if backwards else found[:size]
        self.has_next = has_more if not backwards else True
        self.has_previous = has_more if backwards else position is not None
        return self.page

    def _position(self, request: Request, model: type[Model]) -> Position | None:
        cursor = request.query_params.get("cursor")
        return None if cursor is None else decode_position(cursor, model, self.columns)

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self._next(), "previous": self._previous(), "results": data})

    def _next(self) -> str | None:
        return self._link(self.page[-1], backwards=False) if self.has_next and self.page else None

    def _previous(self) -> str | None:
        return self._link(self.page[0], backwards=True) if self.has_previous and self.page else None

    def _link(self, row: Any, *, backwards: bool) -> str:
        values = tuple(row[name] if isinstance(row, Mapping) else getattr(row, name) for name in self.columns)
        url = self.base_url
        for name, given in self.parameters.lists():
            url = replace_query_param(url, name, given[-1])
        return replace_query_param(url, "cursor", Position(values=values, backwards=backwards).encode())

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE, "default": DEFAULT_SIZE}
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}},
            {"name": "page_size", "in": "query", "required": False, "schema": size},
        ]


PARAMETERS = frozenset({"cursor", "page_size"})


def read_size(parameters: Mapping[str, str]) -> int:
    """`page_size`, 1 to 200. Raises a validation error."""
    text = parameters.get("page_size", str(DEFAULT_SIZE))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LARGEST_SIZE):
        raise ValidationError({"page_size": [f"a whole number from 1 to {LARGEST_SIZE}"]})
    return int(text)
