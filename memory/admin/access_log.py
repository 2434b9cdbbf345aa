"""The access log of contexts: which agent read or wrote which entry. It shows a week unless another time is chosen."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin
from memory.admin.columns import SECOND, column, row_link, text_column, time_column
from memory.admin.contexts import LONG_CONTEXT_COLUMNS, ContextFilter, context_link
from memory.admin.exports import ListExportAdmin
from memory.admin.filters import LinkedFilter, RecentFilter
from memory.admin.text import mark_invisible
from memory.kinds import spec_of
from memory.models import ContextAccessLog, Memory
from memory_project.admin_lists import AccountFilter, chosen_account, read_uuid

LOST = ContextAccessLog.Action.LOST


class EntryFilter(LinkedFilter):
    """A filter for one entry, set by a link on its page."""

    title = "entry"
    parameter_name = "entry"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        self.entry_id = read_uuid(request.GET.get(self.parameter_name, ""))
        return [(str(self.entry_id), str(self.entry_id))] if self.entry_id else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.entry_id is None:
            return queryset.none()
        # every index begins with the account; for an entry that is gone it has to be chosen
        memory = Memory.objects.filter(id=self.entry_id).values_list("account_id", flat=True).first()
        account_id = memory or chosen_account(request)
        if account_id is None:
            return queryset.none()
        return queryset.filter(account_id=account_id, entry_id=self.entry_id)


class AccessTimeFilter(RecentFilter):
    column = "accessed_at"


def render_access(line: ContextAccessLog) -> SafeString | str:
    if line.action != LOST:
        return str(line.get_action_display())
    lost = f"{line.count:,} line{'' if line.count == 1 else 's'} lost"
    return format_html('<strong class="lost">⚠ {}</strong>', lost)


def render_entry(line: ContextAccessLog) -> SafeString | str:
    kind = getattr(line, "kind", None)
    if line.entry_id is not None and kind is None:
        return f"{line.entry_id} (deleted)"
    return row_link(spec_of(kind).admin_page if kind else "memory", line.entry_id, line.entry_id)


@admin.register(ContextAccessLog)
class ContextAccessLogAdmin(ListExportAdmin, ReadOnlyAdmin):
    """The lines of the log, which outlive the entries that they are about."""

    list_display = ("time", "access", "context_page", "entry", "agent", "actor_name", "account")
    list_filter = (AccountFilter, AccessTimeFilter, "action", ContextFilter, EntryFilter)
    list_select_related = ("account", "context")
    # the order of the indexes
    ordering = ("-accessed_at", "-pk")
    search_fields = ("agent_id__exact",)
    search_help_text = "Search for a complete agent."
    fields = ("time", "access", "count", "context_page", "entry", "agent", "actor_name", "account", "id")

    time = time_column("Time", "accessed_at", pattern=SECOND)
    access = column("Action", render_access)
    context_page = column("Context", context_link)
    entry = column("Entry", render_entry)
    agent = column("Agent", lambda line: "-" if line.action == LOST else mark_invisible(line.agent_id) or "the account")
    actor_name = text_column("Actor", "actor", empty="")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ContextAccessLog]:
        memory = Memory.objects.filter(account_id=OuterRef("account_id"), id=OuterRef("entry_id"))
        rows: QuerySet[ContextAccessLog] = super().get_queryset(request)
        long_columns = (f"context__{name}" for name in LONG_CONTEXT_COLUMNS)
        return rows.annotate(kind=Subquery(memory.values("kind")[:1])).defer(*long_columns)
