"""Short-term memories of agents: found by agent and session, corrected, refreshed and deleted."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.base import ServiceForm, staff_owner
from memory.admin.columns import column, json_column, list_link, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import JSONValueField
from memory.admin.text import excerpt_of, json_excerpt, mark_invisible
from memory.errors import NotFound, Unprocessable
from memory.models import AgentShortTermMemory
from memory.models.short_term import MIN_PROMOTION_READS, ShortTermKey
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.short_term import correct_entry, delete_entry, refresh_entry
from memory_project.admin_lists import AccountFilter


class ShortTermForm(ServiceForm):
    """The value, and when the value that the page showed was written, so that later changes are not overwritten."""

    memory_value = JSONValueField(
        label="Value as JSON",
        widget=forms.Textarea(attrs={"rows": 12, "class": "vLargeTextField json", "spellcheck": "false"}),
        help_text="A correction does not change when the memory expires. It may be promoted again.",
    )
    seen_at = forms.DateTimeField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "seen_at" in self.fields:
            self.fields["seen_at"].initial = self.instance.updated_at


class LifeFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"
    options = {
        "live": "Live",
        "expired": "Expired",
        "waiting": "Expired, waiting for promotion",
        "promoted": "Promoted",
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return self.options.items()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: Any = queryset
        now = datetime.now(UTC)
        match self.value():
            case "live":
                rows = rows.live(now)
            case "expired":
                rows = rows.filter(expires_at__lte=now)
            case "waiting":
                rows = rows.to_promote().filter(expires_at__lte=now)
            case "promoted":
                rows = rows.filter(promoted_at__isnull=False)
        found: QuerySet[Any] = rows
        return found


def format_life(entry: AgentShortTermMemory) -> str:
    """Describe whether the entry can be read, and what happens to it next."""
    is_waiting = entry.access_count >= MIN_PROMOTION_READS and entry.promoted_at is None
    if entry.is_expired(datetime.now(UTC)):
        if not is_waiting:
            return "expired; to be deleted"
        return (
            "expired, key written again; waiting for promotion"
            if entry.superseded
            else "expired; waiting for promotion"
        )
    if is_waiting:
        return "live; to be promoted"
    return "live; promoted" if entry.promoted_at else "live"


def entries_link(text: str, **query: object) -> SafeString:
    """Link a text to the list of the entries that have it in common."""
    return list_link("agentshorttermmemory", mark_invisible(text), **query)


def render_session(entry: AgentShortTermMemory) -> SafeString | str:
    if not entry.session_id:
        return "none"
    return entries_link(entry.session_id, account=entry.account_id, session_id__exact=entry.session_id)


def refresh_entries(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Restart the time to live of those of the entries that have not expired."""

    def refresh(entry: AgentShortTermMemory) -> None:
        if entry.is_expired(now):
            raise Unprocessable("entries that have expired cannot be refreshed")
        refresh_entry(owner, ShortTermKey(id=entry.pk), now=now)

    rows = AgentShortTermMemory.objects.filter(account_id=owner.account_id, pk__in=row_ids)
    return change_each(rows.order_by("-pk"), refresh)


@admin.register(AgentShortTermMemory)
class ShortTermAdmin(ListExportAdmin):
    """The pages of short-term memories, which agents write and staff correct. Expired ones cannot be changed."""

    form = ShortTermForm
    list_display = (
        "key", "agent", "session", "memory_type", "state", "access_count", "expires_at", "excerpt", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "memory_type", LifeFilter)
    search_fields = ("memory_key__startswith", "agent_id__exact", "session_id__exact")
    search_help_text = "Search for the beginning of a key, or for a complete agent or session."
    bulk_actions = (
        BulkAction(
            name="refresh",
            label="Refresh selected %(verbose_name_plural)s",
            done="Restarted the time to live of",
            apply=refresh_entries,
            explanation="Entries that have expired are left alone.",
        ),
    )
    long_columns = ("memory_value",)
    list_annotations = {"value_excerpt": json_excerpt("memory_value")}
    detail_fields = (
        "key", "agent", "session", "memory_type", "account", "state", "expires_at", "ttl_seconds", "access_count",
        "last_accessed_at", "promoted_at", "created_at", "updated_at", "id",
    )  # fmt: skip
    readonly_fields = (*detail_fields, "stored_value")
    allow_add = False
    deletion_note = ""

    key = text_column("Key", "memory_key", empty="")
    agent = column(
        "Agent", lambda entry: entries_link(entry.agent_id, account=entry.account_id, agent_id__exact=entry.agent_id)
    )
    session = column("Session", render_session)
    excerpt = column("Value", lambda entry: excerpt_of(getattr(entry, "value_excerpt", None) or "null"))
    stored_value = json_column("Value", "memory_value")
    state = column("State", format_life)

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        is_expired = obj is not None and obj.is_expired(datetime.now(UTC))
        return super().has_change_permission(request, obj) and not is_expired

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        may_change = self.has_change_permission(request, obj)
        content = ("memory_value", "seen_at") if may_change else ("stored_value",)
        return (("Content", {"fields": content}), ("Details", {"fields": self.detail_fields}))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if "memory_value" in form.changed_data:
            value, seen = form.cleaned_data["memory_value"], form.cleaned_data["seen_at"]
            correct_entry(staff_owner(request, obj.account_id), obj.pk, value=value, seen=seen, now=datetime.now(UTC))

    def remove_row(self, owner: Owner, row: Any) -> None:
        now = datetime.now(UTC)
        try:
            delete_entry(owner, ShortTermKey(id=row.pk), now=now)
        except NotFound:
            # the service deletes an expired entry and nevertheless reports that there was none
            if not row.is_expired(now):
                raise
