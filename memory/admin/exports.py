"""Exports of what a list shows, or of all memories of one user, as JSON Lines or CSV, within one account.

Rows are streamed, newest first, in slices by key: behind a pooler, a cursor of the database would read all of them at
once. In CSV, texts that a spreadsheet would take for a formula begin with an apostrophe.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import BinaryField, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_safe

from memory.admin.base import BoundedAdmin, staff_owner
from memory.audit import record_audit
from memory.models import Memory, MemoryTable
from memory_project.admin_lists import chosen_account

MAX_EXPORTED_ROWS = 100_000
PAGE_ROWS = 1_000
FORMAT, USER = "as", "of_user"
"""Parameters of an export besides those of the list: the format, and a complete user id."""
CONTENT_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
INTERNAL_COLUMNS = frozenset(
    {
        *("identity", "content_hash", "wording", "token_count", "base_salience", "faded_salience", "embed_after"),
        *("embed_attempts", "embed_error", "has_secret", "version"),
        *("summary_lease_until", "extract_lease_until", "lease_until", "leased_by", "cursor", "erasing"),
    }
)
"""Columns that say nothing about what was stored."""
WITHHELD_COLUMNS = frozenset({"secret_hash", "saved_session"})
"""Columns that no export shows. Nor does it show binary ones: what is sealed in the database, and vectors."""
FORMULA_SIGNS = "=+-@＝＋－＠"
"""Signs with which a spreadsheet begins a formula, full-width ones included."""


def exported_columns(model: type[Model]) -> list[str]:
    """Return the columns of a model but for those that are internal, withheld, or binary."""
    left_out = INTERNAL_COLUMNS | WITHHELD_COLUMNS
    fields = [each for each in model._meta.concrete_fields if each.name not in left_out]
    return [each.attname for each in fields if not isinstance(each, BinaryField)]


def json_value(value: Any) -> Any:
    # a time is a date, too
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, (UUID, Decimal)) else value


def neutralize_cell(value: Any) -> Any:
    """Return the value of a cell of CSV: JSON for lists and objects, and no text that begins a formula.

    >>> neutralize_cell("=1+1"), neutralize_cell("tea"), neutralize_cell(-1.5)
    ("'=1+1", 'tea', -1.5)
    """
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return value
    begins_formula = value.lstrip()[:1] in tuple(FORMULA_SIGNS) or value[:1] in ("\t", "\r", "\n")
    return f"'{value}" if begins_formula else value


def json_lines(columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    for row in rows:
        values = dict(zip(columns, map(json_value, row), strict=True))
        yield json.dumps(values, ensure_ascii=False) + "\n"


class EchoFile:
    """A file for `csv.writer` that returns each line instead of keeping it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    writer: Any = csv.writer(EchoFile())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([neutralize_cell(json_value(value)) for value in row])


class ListExportAdmin(BoundedAdmin):
    """Lists whose rows can be exported as they are filtered."""

    can_export_list: ClassVar[bool] = True

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(partial(export_list, self)))
        return [path("export/", view, name=f"memory_{self.opts.model_name}_export"), *super().get_urls()]


def export_list(pages: ListExportAdmin, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """Return the rows that the list's parameters find, as a file; or to the list, with the reason against it."""
    if not pages.has_view_permission(request):
        raise PermissionDenied
    query = request.GET.copy()
    format_, user_id = (query.pop(name, [""])[-1] for name in (FORMAT, USER))
    account_id = chosen_account(request)
    request.GET = query  # type: ignore[assignment]
    list_url = f"{reverse(f'admin:memory_{pages.opts.model_name}_changelist')}?{query.urlencode()}"
    given = [text for name, values in request.GET.lists() for text in (name, *values)]
    if any("\x00" in text for text in (*given, user_id)) or format_ not in CONTENT_TYPES:
        return HttpResponseRedirect(list_url.partition("?")[0])
    if account_id is None:
        message = "Nothing was exported. Choose an account: an export stays within one."
        pages.message_user(request, message, messages.ERROR)
        return HttpResponseRedirect(list_url)
    try:
        listed: QuerySet[Any] = pages.get_changelist_instance(request).queryset
    except IncorrectLookupParameters:
        return HttpResponseRedirect(list_url.partition("?")[0])
    rows = listed.filter(account_id=account_id)
    rows = rows.filter(user_id=user_id) if user_id else rows
    count = rows.order_by().values("pk")[: MAX_EXPORTED_ROWS + 1].count()
    if count > MAX_EXPORTED_ROWS:
        message = f"Nothing was exported. An export has at most {MAX_EXPORTED_ROWS:,} rows: search or filter for fewer."
        pages.message_user(request, message, messages.ERROR)
        return HttpResponseRedirect(list_url)
    return stream_rows(pages, request, account_id, rows, count=count, format_=format_)


def stream_rows(
    pages: ListExportAdmin, request: HttpRequest, account_id: UUID, rows: QuerySet[Any], *, count: int, format_: str
) -> StreamingHttpResponse:
    """Return the rows as a file. The audit log says who exported how many."""
    name = str(pages.opts.model_name)
    owner = staff_owner(request, account_id)
    record_audit(owner, operation="export", memory_type=name, result_count=count, metadata={"format": format_})
    # memories of all kinds have the columns of their kinds as well
    table: type[Model] = MemoryTable if pages.model is Memory else pages.model
    columns = exported_columns(table)
    read = read_rows(rows, table, columns, account_id)
    lines = csv_lines(columns, read) if format_ == "csv" else json_lines(columns, read)
    answer = StreamingHttpResponse(lines, content_type=CONTENT_TYPES[format_])
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}.{format_}"'
    return answer


def read_rows(
    rows: QuerySet[Any], table: type[Model], columns: Sequence[str], account_id: UUID
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of the rows, newest first, in slices of PAGE_ROWS."""
    keys = rows.order_by("-pk").values_list("pk", flat=True)
    ids = list(keys[:PAGE_ROWS])
    while ids:
        found = table._default_manager.filter(account_id=account_id, pk__in=ids).order_by("-pk")
        yield from found.values_list(*columns)
        ids = list(keys.filter(pk__lt=ids[-1])[:PAGE_ROWS])
