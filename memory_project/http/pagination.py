"""Keyset pagination: a cursor holds the ordering values of a page's last row, so pages neither skip nor repeat rows.

An order may begin with a score that changes over time (`ScoreOrdering`). The scores of all pages are then computed for
the time of the first page, which the cursor carries. A row whose score is changed by a write or a read between two
pages moves: it may be on both pages or on neither.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable
from django.utils import timezone
from rest_framework.pagination import BasePagination
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ValidationError
from rest_framework.utils.urls import replace_query_param

from memory_project.http.paths import quote_path
from memory_project.large_values import has_large_values, read_with_small_values

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
PAGE_PARAMETERS = frozenset({"cursor", "page_size"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOrdering:
    """An order by a number, greatest first. `score(at)` is the expression at that time; rows get it as `name`.

    A view has one as `scored`; its `ordering` then holds only the columns that break ties.
    """

    name: str
    score: Callable[[datetime], Combinable]


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorPosition:
    """The rows after the row with these values of the ordering columns; with `backwards`, the rows before it.

    `scored_at` is the time of the scores, if the order has one.
    """

    values: tuple[Any, ...]
    backwards: bool
    scored_at: datetime | None = None

    def encode(self) -> str:
        scored_at = [] if self.scored_at is None else [self.scored_at]
        plain = [self.backwards, *scored_at, *self.values]
        return base64.urlsafe_b64encode(json.dumps(plain, default=_to_text).encode()).decode().rstrip("=")


def _to_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def decode_cursor(
    cursor: str, rows: QuerySet[Any], columns: Sequence[str], *, scored: ScoreOrdering | None = None
) -> CursorPosition:
    """Decode what `CursorPosition.encode` wrote. Raises a validation error for anything else."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        backwards, *plain = json.loads(base64.urlsafe_b64decode(padded))
        scored_at: datetime | None = None
        scores: list[float] = []
        if scored is not None:
            time, score, *plain = plain
            scored_at, scores = _parse_scored_at(time, score)
        values = [_parse_column_value(rows, name, value) for name, value in zip(columns, plain, strict=True)]
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError, DjangoValidationError) as err:
        detail = "This is not a cursor of this list. Follow the links `next` and `previous` of a page."
        raise ValidationError({"cursor": [detail]}) from err
    return CursorPosition(values=(*scores, *values), backwards=backwards is True, scored_at=scored_at)


def _parse_scored_at(time: str, score: float) -> tuple[datetime, list[float]]:
    parsed = datetime.fromisoformat(time)
    if parsed.tzinfo is None or isinstance(score, bool | str) or not math.isfinite(score):
        raise ValueError("not a score at a time with a zone")
    return parsed.astimezone(UTC), [float(score)]


def _parse_column_value(rows: QuerySet[Any], column: str, plain: Any) -> Any:
    if plain is None or isinstance(plain, list | dict):
        raise ValueError("not a column's value")
    annotation: Any = rows.query.annotations.get(column)
    field: Any = rows.model._meta.get_field(column) if annotation is None else annotation.output_field
    value = field.to_python(plain)
    if value is None or (isinstance(value, datetime) and timezone.is_naive(value)) or "\0" in str(value):
        raise ValueError("not a column's value")
    return value


def rows_beyond(ordering: Sequence[str], position: CursorPosition) -> Q:
    """Return the condition for rows beyond a position: a < x, or a = x and b < y, and so on along the ordering."""
    condition, equal = Q(), Q()
    for term, value in zip(ordering, position.values, strict=True):
        descending = term.startswith("-") is not position.backwards
        column = term.removeprefix("-")
        condition |= equal & Q(**{f"{column}__{'lt' if descending else 'gt'}": value})
        equal &= Q(**{column: value})
    return condition


def ordering_columns(ordering: Sequence[str]) -> list[str]:
    return [term.removeprefix("-") for term in ordering]


def reverse_ordering(ordering: Sequence[str]) -> list[str]:
    return [term[1:] if term.startswith("-") else f"-{term}" for term in ordering]


class CursorPagination(BasePagination):
    """Pages of the form `{"next", "previous", "results"}`.

    The view's `ordering` names columns, or annotations, that are never null; the last one is unique.
    """

    scored_at: datetime | None = None
    backwards = False

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        scored: ScoreOrdering | None = view.scored
        ordering: list[str] = list(view.ordering)
        size = parse_page_size(request.query_params)
        position, cursor = None, request.query_params.get("cursor")
        if cursor is not None:
            position = decode_cursor(cursor, queryset, ordering_columns(ordering), scored=scored)
        if scored is not None:
            self.scored_at = (position.scored_at if position else None) or timezone.now()
            queryset = queryset.annotate(**{scored.name: scored.score(self.scored_at)})
            ordering.insert(0, f"-{scored.name}")
        self.columns = ordering_columns(ordering)
        backwards = position is not None and position.backwards
        rows = queryset if position is None else queryset.filter(rows_beyond(ordering, position))
        rows = rows.order_by(*(reverse_ordering(ordering) if backwards else ordering))[: size + 1]
        found = read_with_small_values(rows)
        return self.set_page(found, position=position, size=size, request=request)

    def set_page(
        self, found: Sequence[Any], *, position: CursorPosition | None, size: int, request: Request
    ) -> list[Any]:
        """Return the page in the order of the list.

        `found` holds up to `size + 1` rows beyond the position, in the direction of the search. One row more than
        `size` means that another page follows.
        """
        self.base_url = request.build_absolute_uri(quote_path(request.path))
        self.parameters = request.query_params
        self.backwards = backwards = position is not None and position.backwards
        has_more = len(found) > size
        self.page = list(found[:size][::-1] if backwards else found[:size])
        self.has_next = has_more if not backwards else True
        self.has_previous = has_more if backwards else position is not None
        return self.page

    def serialize_rows(self, page: Sequence[Any], serialize: Callable[[Any], Any]) -> list[Any]:
        """Serialize the rows of the page, and end it early once its large rows fill an answer."""
        results: list[Any] = []
        room = settings.ANSWER_LIMIT_BYTES
        for row in reversed(page) if self.backwards else page:
            if results and room <= 0:
                break
            results.append(serialize(row))
            if has_large_values(row):
                room -= len(JSONRenderer().render(results[-1]))
        return self.end_early(results[::-1] if self.backwards else results)

    def end_early(self, results: list[Any]) -> list[Any]:
        """Limit the page to the rows of these results, the last ones of a page that was read backwards."""
        if len(results) < len(self.page):
            rows = list(self.page)
            self.page = rows[-len(results) :] if self.backwards else rows[: len(results)]
            self.has_previous, self.has_next = self.has_previous or self.backwards, self.has_next or not self.backwards
        return results

    def get_paginated_response(self, data: Any) -> Response:
        return Response(self.describe_page(data))

    def describe_page(self, data: Any) -> dict[str, Any]:
        """Return the page with its links."""
        following = self._link(self.page[-1], backwards=False) if self.has_next and self.page else None
        previous = self._link(self.page[0], backwards=True) if self.has_previous and self.page else None
        return {"next": following, "previous": previous, "results": data}

    def _link(self, row: Any, *, backwards: bool) -> str:
        values = tuple(row[name] if isinstance(row, Mapping) else getattr(row, name) for name in self.columns)
        url = self.base_url
        for name, given in self.parameters.lists():
            url = replace_query_param(url, name, given[-1])
        position = CursorPosition(values=values, backwards=backwards, scored_at=self.scored_at)
        return replace_query_param(url, "cursor", position.encode())

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            # each is described by itself
            "properties": {"next": link, "previous": {**link}, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE}
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}},
            {"name": "page_size", "in": "query", "required": False, "schema": size},
        ]


def parse_page_size(parameters: Mapping[str, str]) -> int:
    """Return `page_size`, from 1 to MAX_PAGE_SIZE. Raises a validation error."""
    text = parameters.get("page_size", str(DEFAULT_PAGE_SIZE))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_PAGE_SIZE):
        raise ValidationError({"page_size": [f"Must be a whole number from 1 to {MAX_PAGE_SIZE}."]})
    return int(text)
