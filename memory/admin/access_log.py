"""The access log of contexts, to look at. A week unless told otherwise, as the links of contexts and entries do."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin
from memory.admin.contexts import LONG_COLUMNS, ContextFilter, link_to_context
from memory.admin.filters import RecentFilter
from memory.admin.text import mark_invisible
from memory.models import ContextAccessLog, Kind, Memory
from memory_project.admin_lists import AccountFilter, chosen_account, read_uuid

PAGES: dict[str, str] = {Kind.CONTEXT_ENTRY: "contextentry", Kind.LEARNING: "learning"}
"""By kind of what was read or written: the model whose page shows it."""


class EntryFilter(admin.SimpleListFilter):
    """One entry. Chosen by a link on its page."""

    title = "entry"
    parameter_name = "entry"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        self.entry_id = read_uuid(request.GET.get(self.parameter_name, ""))
        return [(str(self.entry_id), str(self.entry_id))] if self.entry_id else []

    def has_output(self) -> bool:
        return self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.entry_id is None:
            return queryset.none()
        # every index begins with the account; that of an entry that is gone has to be chosen
        memory = Memory.objects.filter(id=self.entry_id).values_list("account_id", flat=True).first()
        account_id = memory or chosen_account(request)
        if account_id is None:
            return queryset.none()
        return queryset.filter(account_id=account_id, entry_id=self.entry_id)


class AccessTimeFilter(RecentFilter):
    column = "accessed_at"


@admin.register(ContextAccessLog)
class ContextAccessLogAdmin(ReadOnlyAdmin):
    """Which agent read or wrote which entry, when. Lines outlive the entries that they speak of."""

    list_display = ("at", "did", "of_context", "entry", "by_agent", "by_actor", "account")
    list_filter = (AccountFilter, AccessTimeFilter, "action", ContextFilter, EntryFilter)
    list_select_related = ("account", "context")
    # as the indexes have them
    ordering = ("-accessed_at", "-pk")
    search_fields = ("agent_id__exact",)
    search_help_text = "An agent, in full."
    fields = (
        "at", "did", "count", "of_context", "entry", "by_agent", "by_actor", "account", "id",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ContextAccessLog]:
        memory = Memory.objects.filter(account_id=OuterRef("account_id"), id=OuterRef("entry_id"))
        rows: QuerySet[ContextAccessLog] = super().get_queryset(request)
        return rows.annotate(kind=Subquery(memory.values("kind")[:1])).defer(
            *(f"context__{name}" for name in LONG_COLUMNS)
        )

    @admin.display(description="Time")
    def at(self, line: ContextAccessLog) -> str:
        return f"{line.accessed_at:%Y-%m-%d %H:%M:%S}"

    @admin.display(description="Action")
    def did(self, line: ContextAccessLog) -> SafeString | str:
        if line.action != ContextAccessLog.Action.LOST:
            return str(line.get_action_display())
        told = f"{line.count:,} line{'' if line.count == 1 else 's'} lost"
        return format_html('<strong class="lost">⚠ {}</strong>', told)

    @admin.display(description="Context")
    def of_context(self, line: ContextAccessLog) -> SafeString | str:
        return link_to_context(line.context) if line.context else "-"

    @admin.display(description="Entry")
    def entry(self, line: ContextAccessLog) -> SafeString | str:
        if line.entry_id is None:
            return "-"
        page = PAGES.get(getattr(line, "kind", None) or "")
        if page is None:
            return f"{line.entry_id} (gone)"
        url = reverse(f"admin:memory_{page}_change", args=[line.entry_id])
        return format_html('<a href="{}">{}</a>', url, line.entry_id)

    @admin.display(description="Agent")
    def by_agent(self, line: ContextAccessLog) -> str:
        if line.action == ContextAccessLog.Action.LOST:
            return "-"
        return mark_invisible(line.agent_id) or "the account"

    @admin.display(description="Actor")
    def by_actor(self, line: ContextAccessLog) -> str:
        return mark_invisible(line.actor)
