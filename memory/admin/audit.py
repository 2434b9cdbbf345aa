"""The audit log, to look at. A week unless told otherwise: each day is a partition. Texts can be erased, no more."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin, by_account, staff_owner
from memory.admin.documents import show_json
from memory.admin.filters import OperationFilter, RecentFilter
from memory.admin.text import mark_invisible
from memory.models import Account, AuditEntry
from memory.services.audit.log import erase_payloads
from memory_project.admin_lists import AccountFilter


class MemoryTypeFilter(admin.SimpleListFilter):
    """The types that are recorded most; any other is found by searching for its name."""

    title = "memory type"
    parameter_name = "memory_type"
    known = (
        "all", "episodic", "semantic", "procedural", "working", "short_term", "pool", "conversation", "turn_record",
        "reasoning_trace", "job", "account", "api_key",
    )  # fmt: skip

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in self.known]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(memory_type=self.value()) if self.value() else queryset


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Entries outlive what they speak of: an account's name is looked up, and missing once the account is gone."""

    list_display = (
        "timestamp", "account_name", "actor", "operation", "memory_type", "agent_id", "conversation_id",
        "result_count", "success",
    )  # fmt: skip
    list_filter = (AccountFilter, RecentFilter, OperationFilter, MemoryTypeFilter, "success")
    search_fields = (
        "actor__exact", "operation__exact", "memory_type__exact", "agent_id__exact", "user_id__exact",
        "conversation_id__exact", "source_channel__exact",
    )  # fmt: skip
    search_help_text = "An actor, operation, type, agent, user, conversation or channel, in full."
    actions = ("erase",)
    fieldsets = (
        (None, {"fields": ("timestamp", "account_name", "actor", "operation", "memory_type", "affected", "id")}),
        ("For whom", {"fields": ("agent_id", "user_id", "conversation_id", "session_id")}),
        ("Where", {"fields": ("source_channel", "channels", "result_count", "cross_channel_count")}),
        ("How it went", {"fields": ("success", "error", "latency_ms")}),
        (
            "Promotion",
            {
                "fields": (
                    "promoted_from_channel", "promotion_confidence", "promotion_access_count",
                    "promotion_conversation_count",
                )
            },
        ),
        ("What was in force", {"fields": ("snapshot",)}),
        ("Payload", {"fields": ("query", "payload")}),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        account = Account.objects.filter(id=OuterRef("account_id"))
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        return entries.annotate(account_name=Subquery(account.values("name")[:1]))

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Whoever may change entries, which is this and nothing else."""
        return bool(request.user.has_perm("memory.change_auditentry"))

    @admin.action(description="Erase payloads of selected entries", permissions=["erase"])
    def erase(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> None:
        erased = sum(
            erase_payloads(staff_owner(request, account_id), ids) for account_id, ids in by_account(queryset).items()
        )
        self.message_user(request, f"Erased: {erased}. What happened stays, and that it was erased.", messages.SUCCESS)

    @admin.display(description="Account")
    def account_name(self, entry: AuditEntry) -> str:
        return getattr(entry, "account_name", None) or str(entry.account_id)

    @admin.display(description="What it was done to")
    def affected(self, entry: AuditEntry) -> SafeString:
        return show_json(entry.affected_ids)

    @admin.display(description="Channels")
    def channels(self, entry: AuditEntry) -> str:
        return mark_invisible(", ".join(entry.target_channels)) or "-"

    @admin.display(description="Query")
    def query(self, entry: AuditEntry) -> SafeString | str:
        return format_html('<pre class="json">{}</pre>', mark_invisible(entry.query_text)) if entry.query_text else "-"

    @admin.display(description="Error")
    def error(self, entry: AuditEntry) -> str:
        return mark_invisible(entry.error_message) or "-"

    @admin.display(description="Thresholds and level")
    def snapshot(self, entry: AuditEntry) -> SafeString:
        return show_json(entry.config_snapshot)

    @admin.display(description="Metadata")
    def payload(self, entry: AuditEntry) -> SafeString:
        return show_json(entry.metadata)
