"""Large values of rows: read with the page only if they are small, so that a page needs little memory.

A text may have megabytes and a page 200 rows. The database sends a large value when the row's attribute is read, and by
then the answer may have ended (`http.answer_limits`).
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Case, F, Func, IntegerField, Q, QuerySet, TextField, Value, When
from django.db.models.lookups import LessThanOrEqual
from django.db.models.query import ModelIterable

SMALL_BYTES = 65_536
SMALL_STORED_BYTES = 16_384
"""As PostgreSQL stores JSON: compressed."""
HAS_LARGE = "_has_large_values"


def read_with_small_values(rows: QuerySet[Any]) -> list[Any]:
    """Return the rows of a query. Values of its model's `LARGE_COLUMNS` are loaded now only if they are small."""
    names = [name for name in getattr(rows.model, "LARGE_COLUMNS", ()) if is_loaded(rows, name)]
    if not names or rows._iterable_class is not ModelIterable:
        return list(rows)
    annotated = rows.defer(*names)
    for name in names:
        annotated = annotated.annotate(**{f"small_{name}": Case(When(is_small(rows, name), then=F(name)))})
        if rows.model._meta.get_field(name).null:
            annotated = annotated.annotate(
                **{f"{name}_is_null": Case(When(Q(**{f"{name}__isnull": True}), then=Value(True)))}
            )
    return [load_small_values(row, names) for row in annotated]


def is_loaded(rows: QuerySet[Any], name: str) -> bool:
    names, is_deferred = rows.query.deferred_loading
    return (name not in names) if is_deferred else name in names


def is_small(rows: QuerySet[Any], name: str) -> Any:
    """Return the condition that a value is small. Neither function reads what is stored out of line."""
    is_text = isinstance(rows.model._meta.get_field(name), TextField)
    size: Any = Func(F(name), function="octet_length" if is_text else "pg_column_size", output_field=IntegerField())
    return LessThanOrEqual(size, SMALL_BYTES if is_text else SMALL_STORED_BYTES)


def load_small_values(row: Any, names: Iterable[str]) -> Any:
    values = row.__dict__
    for name in names:
        value = values.pop(f"small_{name}")
        if value is not None or values.pop(f"{name}_is_null", False):
            values[name] = value
        else:
            values[HAS_LARGE] = True
    return row


def has_large_values(row: Any) -> bool:
    """Return whether values of the row were left in the database."""
    return HAS_LARGE in getattr(row, "__dict__", ())
