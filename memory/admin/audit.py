"""The audit log, whose payloads can be erased. It shows a week by default, since each day is a partition."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html

from memory.admin.base import ReadOnlyAdmin
from memory.admin.columns import column, json_column, text_column
from memory.admin.filters import KnownValueFilter, LinkedFilter, RecentFilter
from memory.admin.text import mark_invisible
from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.services.audit import erase_payloads
from memory.services.bulk.actions import BulkAction, BulkResult
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup


class OperationFilter(KnownValueFilter):
    title = "operation"
    parameter_name = "operation"
    known = (
        "store", "retrieve", "update", "delete", "archive", "unarchive", "quarantine", "release", "pin", "unpin",
        "bury", "unbury", "embed", "create", "revoke", "rotate", "run_job", "mark", "evict", "clear", "promote",
        "confirm", "correct", "supersede", "retract", "reject", "review", "lift", "merge", "split", "complete",
        "abandon", "block", "unblock", "reinforce", "deep_replay", "erase", "erase_audit", "set_audit_level",
        "export", "import",
    )  # fmt: skip


class MemoryTypeFilter(KnownValueFilter):
    title = "memory type"
    parameter_name = "memory_type"
    known = (
        "all", "episodic", "semantic", "procedural", "working", "short_term", "pool", "conversation", "turn_record",
        "reasoning_trace", "job", "account", "api_key", "subject", "filter",
    )  # fmt: skip


class AffectedFilter(LinkedFilter):
    """A filter for the entries about one object. The history of the object links to it."""

    title = "object"
    parameter_name = "affected"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(affected_ids__contains=[self.value()]) if self.value() else queryset


def render_query(entry: AuditEntry) -> str:
    return format_html('<pre class="json">{}</pre>', mark_invisible(entry.query_text)) if entry.query_text else "-"


def erase_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    erase_payloads(owner, row_ids)
    return BulkResult(changed=list(row_ids))


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The entries of the log. They outlive their account, whose name is missing once it is gone."""

    changed_by = StaffGroup.OPERATOR
    list_display = (
        "timestamp", "account_name", "actor", "operation", "memory_type", "agent_id", "conversation_id",
        "result_count", "success",
    )  # fmt: skip
    list_filter = (AccountFilter, RecentFilter, OperationFilter, MemoryTypeFilter, AffectedFilter, "success")
    list_select_related = False
    search_fields = (
        "actor__exact", "operation__exact", "memory_type__exact", "agent_id__exact", "user_id__exact",
        "conversation_id__exact", "source_channel__exact",
    )  # fmt: skip
    search_help_text = "Search for a complete actor, operation, type, agent, user, conversation or channel."
    bulk_actions = (
        BulkAction(
            name="erase",
            label="Erase payloads of selected entries",
            done="Erased the payloads of",
            apply=erase_rows,
            permission="erase",
            explanation="Their texts are erased. The entries stay, and the log says that they were erased.",
            is_destructive=True,
        ),
    )
    fieldsets = (
        (None, {"fields": ("timestamp", "account_name", "actor", "operation", "memory_type", "affected", "id")}),
        ("Owner", {"fields": ("agent_id", "user_id", "conversation_id", "session_id")}),
        ("Channels", {"fields": ("source_channel", "channels", "result_count", "cross_channel_count")}),
        ("Result", {"fields": ("success", "error", "latency_ms")}),
        (
            "Promotion",
            {
                "fields": (
                    "promoted_from_channel", "promotion_confidence", "promotion_access_count",
                    "promotion_conversation_count",
                )
            },
        ),
        ("Configuration at the time", {"fields": ("snapshot",)}),
        ("Payload", {"fields": ("query", "payload")}),
    )  # fmt: skip

    affected = json_column("Affected ids", "affected_ids")
    channels = column("Channels", lambda entry: mark_invisible(", ".join(entry.target_channels)) or "-")
    query = column("Query", render_query)
    error = text_column("Error", "error_message")
    snapshot = json_column("Thresholds and level", "config_snapshot")
    payload = json_column("Metadata", "metadata")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        account = Account.objects.filter(id=OuterRef("account_id"))
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        return entries.annotate(account_name=Subquery(account.values("name")[:1]))

    @admin.display(description="Account")
    def account_name(self, entry: AuditEntry) -> str:
        return getattr(entry, "account_name", None) or str(entry.account_id)

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change entries. Erasing their payloads is the only change there is."""
        return bool(request.user.has_perm("memory.change_auditentry"))
