"""Large values of rows: read with the page only if they are small, so that a page needs little memory.

A text may have megabytes and a page 200 rows. The database sends a large value when the row's attribute is read, and by
then the answer may have ended (`http.answer_limits`).
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, F, Func, QuerySet, TextField
from django.db.models.query import ModelIterable

SMALL_BYTES = 65_536
SMALL_STORED_BYTES = 16_384
"""As PostgreSQL stores JSON: compressed."""
# neither function reads what is stored out of line
SMALL_TEXT = f"CASE WHEN octet_length(%(expressions)s) <= {SMALL_BYTES} THEN %(expressions)s END"
SMALL_JSON = f"CASE WHEN pg_column_size(%(expressions)s) <= {SMALL_STORED_BYTES} THEN %(expressions)s END"
IS_NULL = "%(expressions)s IS NULL"
HAS_LARGE = "_has_large_values"


def read_with_small_values(rows: QuerySet[Any]) -> list[Any]:
    """Return the rows of a query. Values of its model's `LARGE_COLUMNS` are loaded now only if they are small."""
    names = [name for name in getattr(rows.model, "LARGE_COLUMNS", ()) if is_loaded(rows, name)]
    if not names or rows._iterable_class is not ModelIterable:
        return list(rows)
    loaded, is_deferred = rows.query.deferred_loading
    # the statement that loads a large value names its account
    annotated = (rows if is_deferred else rows.only(*loaded, "account")).defer(*names)
    annotations: dict[str, Any] = {}
    for name in names:
        column = rows.model._meta.get_field(name)
        annotations[f"small_{name}"] = Func(
            F(name), template=SMALL_TEXT if isinstance(column, TextField) else SMALL_JSON
        )
        if column.null:
            annotations[f"{name}_is_null"] = Func(F(name), template=IS_NULL, output_field=BooleanField())
    return [load_small_values(row, names) for row in annotated.annotate(**annotations)]


def is_loaded(rows: QuerySet[Any], name: str) -> bool:
    names, is_deferred = rows.query.deferred_loading
    return (name not in names) if is_deferred else name in names


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
