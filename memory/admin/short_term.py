"""Short-term entries of agents: found by agent and session, corrected, refreshed, deleted. Expired ones are as none."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, ServedForm, describe_deletion, staff_owner
from memory.admin.documents import beginning_of, show_json
from memory.admin.fields import JSONValueField
from memory.admin.text import mark_invisible, shorten
from memory.errors import NotFound
from memory.models import AgentShortTermMemory
from memory.models.short_term import PROMOTED_FROM
from memory.services.short_term.keep import correct_entry, delete_entry_by_id, refresh_entry
from memory_project.admin_lists import AccountFilter


class ShortTermForm(ServedForm):
    """The value, and when it was written that the page was opened with."""

    memory_value = JSONValueField(
        label="Value as JSON",
        widget=forms.Textarea(attrs={"rows": 12, "class": "vLargeTextField json", "spellcheck": "false"}),
        help_text="It goes on expiring when it would have, and is promoted anew.",
    )
    seen_at = forms.DateTimeField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "seen_at" in self.fields:
            self.fields["seen_at"].initial = self.instance.updated_at


class LifeFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return (
            ("live", "Live"),
            ("expired", "Expired"),
            ("waiting", "Expired, waits for promotion"),
            ("promoted", "Promoted"),
        )

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: Any = queryset
        now = datetime.now(UTC)
        narrowed = {
            "live": lambda: rows.live(now),
            "expired": lambda: rows.filter(expires_at__lte=now),
            "waiting": lambda: rows.to_promote().filter(expires_at__lte=now),
            "promoted": lambda: rows.filter(promoted_at__isnull=False),
        }
        choose = narrowed.get(self.value() or "")
        found: QuerySet[Any] = queryset if choose is None else choose()
        return found


class ShortTermChangeList(ChangeList):
    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        lean: QuerySet[Any] = rows.defer("memory_value").annotate(beginning=beginning_of("memory_value"))
        return lean


def tell_life(entry: AgentShortTermMemory, now: datetime) -> str:
    """Whether it can be read, and what becomes of it."""
    waits = entry.access_count >= PROMOTED_FROM and entry.promoted_at is None
    if entry.is_expired(now):
        if entry.superseded and waits:
            return "expired, its key was written again; waits for promotion"
        return "expired, unreadable; waits for promotion" if waits else "expired, unreadable; to be cleaned up"
    if waits:
        return "live; to be promoted"
    return "live; promoted" if entry.promoted_at else "live"


@admin.register(AgentShortTermMemory)
class ShortTermAdmin(BoundedAdmin):
    """Agents write them; here they are corrected."""

    form = ShortTermForm
    list_display = (
        "key", "of_agent", "in_session", "memory_type", "state", "access_count", "expires_at", "excerpt", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "memory_type", LifeFilter)
    list_select_related = ("account",)
    search_fields = ("memory_key__startswith", "agent_id__exact", "session_id__exact")
    search_help_text = "The beginning of a key; or an agent or a session, in full."
    actions = ("refresh",)
    shown = (
        "key", "of_agent", "in_session", "memory_type", "account", "state", "expires_at", "ttl_seconds",
        "access_count", "last_accessed_at", "promoted_at", "created_at", "updated_at", "id",
    )  # fmt: skip
    readonly_fields = (*shown, "stored_value")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ShortTermChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        is_over = obj is not None and obj.is_expired(datetime.now(UTC))
        return super().has_change_permission(request, obj) and not is_over

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        may_change = self.has_change_permission(request, obj)
        value = ("memory_value", "seen_at") if may_change else ("stored_value",)
        return (("What it says", {"fields": value}), ("What it is", {"fields": self.shown}))

    @admin.display(description="Key")
    def key(self, entry: AgentShortTermMemory) -> str:
        return mark_invisible(entry.memory_key)

    @admin.display(description="Agent")
    def of_agent(self, entry: AgentShortTermMemory) -> SafeString:
        return link_to_those(entry.agent_id, account=entry.account_id, agent_id__exact=entry.agent_id)

    @admin.display(description="Session")
    def in_session(self, entry: AgentShortTermMemory) -> SafeString | str:
        if not entry.session_id:
            return "none in particular"
        return link_to_those(entry.session_id, account=entry.account_id, session_id__exact=entry.session_id)

    @admin.display(description="Value")
    def excerpt(self, entry: AgentShortTermMemory) -> str:
        return shorten(getattr(entry, "beginning", None) or "null")

    @admin.display(description="Value")
    def stored_value(self, entry: AgentShortTermMemory) -> SafeString:
        return show_json(entry.memory_value)

    @admin.display(description="State")
    def state(self, entry: AgentShortTermMemory) -> str:
        return tell_life(entry, datetime.now(UTC))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if "memory_value" in form.changed_data:
            value, seen = form.cleaned_data["memory_value"], form.cleaned_data["seen_at"]
            correct_entry(staff_owner(request, obj.account_id), obj.pk, value=value, seen=seen, now=datetime.now(UTC))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        now = datetime.now(UTC)
        try:
            delete_entry_by_id(staff_owner(request, obj.account_id), obj.pk, now=now)
        except NotFound:
            # what has expired is deleted, and all the same none
            if not obj.is_expired(now):
                raise

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for entry in queryset:
            self.delete_model(request, entry)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(objs)

    @admin.action(description="Refresh selected %(verbose_name_plural)s", permissions=["change"])
    def refresh(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        now = datetime.now(UTC)
        rows: Any = queryset
        live = list(rows.live(now))
        for entry in live:
            refresh_entry(staff_owner(request, entry.account_id), entry.pk, now=now)
        self.message_user(request, f"They live for their time from now on: {len(live)}.", messages.SUCCESS)
        if expired := queryset.filter(expires_at__lte=now).count():
            self.message_user(request, f"Expired, and not brought back: {expired}.", messages.WARNING)


def link_to_those(text: str, **query: object) -> SafeString:
    """The text, as the way to the list of the entries that have it in common."""
    encoded = urlencode({name: str(value) for name, value in query.items()})
    return format_html(
        '<a href="{}?{}">{}</a>', reverse("admin:memory_agentshorttermmemory_changelist"), encoded, mark_invisible(text)
    )
