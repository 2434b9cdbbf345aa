"""Names of rows on pages and in messages: Django names a row by its `str`, which for memories is their kind and id."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from memory.services.custody.stores import tables

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
else:
    # Django's class has no parameters at run time
    Admin = admin.ModelAdmin

CHANGED_NAMES = "_changed_names"
"""The attribute of a request that holds the `str` of the row that it changes, and its name, both escaped."""
DELETED_NAME = "_deleted_name"
"""The attribute of a request that holds the name of the row that it deletes."""


def name_table(table: str) -> str:
    """Return what pages call the rows of a table, such as "audit entries" for `memory_audit_log`."""
    model = tables().get(table)
    # all kinds of memories are in one table
    if model is None or table == "memories":
        return table.replace("_", " ")
    return str(model._meta.verbose_name_plural)


class NamedRowAdmin(Admin):
    """Pages that name a row as `name_row` does, in questions, in the history, and in messages."""

    def name_row(self, row: Any) -> str:
        """Return how pages that ask for confirmation, messages and the history name a row."""
        return str(row)

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        return super().render_delete_form(request, {**context, "named": self.name_row(context["object"])})

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        # the last step before the row is deleted
        for row in queryset:
            setattr(request, DELETED_NAME, self.name_row(row))
        return super().log_deletions(request, queryset)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: int) -> HttpResponse:
        return super().response_delete(request, getattr(request, DELETED_NAME, obj_display), obj_id)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        setattr(request, CHANGED_NAMES, (escape(obj), escape(self.name_row(obj))))
        return super().response_change(request, obj)

    def message_user(self, request: HttpRequest, message: Any, *args: Any, **kwargs: Any) -> None:
        """Name the row in Django's message that it was changed, which is HTML with a link."""
        names = getattr(request, CHANGED_NAMES, None)
        if names and isinstance(message, SafeString):
            message = mark_safe(message.replace(f">{names[0]}<", f"><bdi>{names[1]}</bdi><"))  # noqa: S308 - escaped
        super().message_user(request, message, *args, **kwargs)
