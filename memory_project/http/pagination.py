"""Pages by key: a cursor is the last row's place in the order, so that pages neither skip nor repeat, however deep.

An order may begin with a score that changes as time goes by (`Scored`): all pages are then of the first one's moment,
which is in the cursor. What changes a row's score in between moves the row: it may come twice, or not at all.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable
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
class Scored:
    """An order that begins with a number, greatest first: `score` makes it of a row at a moment; rows get it as `name`.

    The moment stays the same from page to page, the rows do not: one that is written or read between two pages moves,
    and may be on both or on neither.

    A view has one as `scored`, and in its `ordering` no more than the columns that settle a draw.
    """

    name: str
    score: Callable[[datetime], Combinable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Beyond the row with these values of the ordering columns; `backwards` looks at what comes before it.

    `moment` is when scores are of, where the order has one.
    """

    values: tuple[Any, ...]
    backwards: bool
    moment: datetime | None = None

    def encode(self) -> str:
        moment = [] if self.moment is None else [self.moment]
        plain = [self.backwards, *map(_plain, [*moment, *self.values])]
        return base64.urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, int | float | str) else str(value)


def decode_position(
    cursor: str, rows: QuerySet[Any], columns: Sequence[str], *, scored: Scored | None = None
) -> Position:
    """The inverse of `encode`. Raises a validation error for anything that `encode` did not write."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        backwards, *plain = json.loads(base64.urlsafe_b64decode(padded))
        moment, scores = None, []
        if scored is not None:
            moment, scores, plain = _read_moment(plain[0]), [_read_score(plain[1])], plain[2:]
        values = [_read(rows, name, value) for name, value in zip(columns, plain, strict=True)]
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError, DjangoValidationError) as err:
        raise ValidationError({"cursor": ["not a cursor of this list"]}) from err
    return Position(values=(*scores, *values), backwards=backwards is True, moment=moment)


def _read_moment(plain: str) -> datetime:
    moment = datetime.fromisoformat(plain)
    if moment.tzinfo is None:
        raise ValueError("not a moment")
    return moment.astimezone(UTC)


def _read_score(plain: float) -> float:
    if isinstance(plain, bool | str) or not math.isfinite(plain):
        raise ValueError("not a score")
    return float(plain)


def _read(rows: QuerySet[Any], column: str, plain: Any) -> Any:
    if plain is None or isinstance(plain, list | dict):
        raise ValueError("not a column's value")
    made: Any = rows.query.annotations.get(column)
    field: Any = rows.model._meta.get_field(column) if made is None else made.output_field
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


def columns_of(ordering: Sequence[str]) -> list[str]:
    return [term.removeprefix("-") for term in ordering]


def reverse(ordering: Sequence[str]) -> list[str]:
    return [term[1:] if term.startswith("-") else f"-{term}" for term in ordering]


class Cursor(BasePagination):
    """`{"next", "previous", "results"}`. The view's `ordering` names columns that are never null, the last unique.

    A column may be one that the rows are annotated with.
    """

    moment: datetime | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        scored: Scored | None = view.scored
        ordering: list[str] = list(view.ordering)
        size = read_size(request.query_params)
        cursor = request.query_params.get("cursor")
        position = None if cursor is None else decode_position(cursor, queryset, columns_of(ordering), scored=scored)
        if scored is not None:
            self.moment = (position.moment if position else None) or timezone.now()
            queryset = queryset.annotate(**{scored.name: scored.score(self.moment)})
            ordering.insert(0, f"-{scored.name}")
        self.columns = columns_of(ordering)
        backwards = position is not None and position.backwards
        rows = queryset if position is None else queryset.filter(beyond(ordering, position))
        found = list(rows.order_by(*(reverse(ordering) if backwards else ordering))[: size + 1])
        return self.turn_to(found, position=position, size=size, request=request)

    def turn_to(self, found: Sequence[Any], *, position: Position | None, size: int, request: Request) -> list[Any]:
        """The page of what was found beyond the position, in the order of the search: one row more says that more is
        there."""
        self.base_url = request.build_absolute_uri(external_path(request.path))
        self.parameters = request.query_params
        backwards = position is not None and position.backwards
        has_more = len(found) > size
        self.page = list(found[:size][::-1] if backwards else found[:size])
        self.has_next = has_more if not backwards else True
        self.has_previous = has_more if backwards else position is not None
        return self.page

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
        position = Position(values=values, backwards=backwards, moment=self.moment)
        return replace_query_param(url, "cursor", position.encode())

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
