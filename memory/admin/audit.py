"""The audit log, whose payloads can be erased. It shows a week by default, since each day is a partition."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin
from memory.admin.change_lists import LeanChangeList
from memory.admin.columns import column, json_column, list_link, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.filters import KnownValueFilter, LinkedFilter, RecentFilter
from memory.admin.text import excerpt_of, indent_json, mark_invisible
from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.services.audit import erase_payloads
from memory.services.bulk.actions import BulkAction, BulkResult
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup

CHANGES, REQUEST_ID, REASON = "changes", "request_id", "reason"
"""Names in the metadata of an entry, as `memory.audit` and `memory.services.row_changes` write them."""

MAX_VALUE_CHARACTERS = 2_000


class OperationFilter(KnownValueFilter):
    title = "operation"
    parameter_name = "operation"
    known = (
        "store", "retrieve", "update", "delete", "archive", "unarchive", "quarantine", "release", "pin", "unpin",
        "bury", "unbury", "embed", "create", "revoke", "rotate", "run_job", "mark", "evict", "clear", "promote",
        "confirm", "correct", "supersede", "retract", "reject", "review", "lift", "merge", "split", "complete",
        "abandon", "block", "unblock", "reinforce", "deep_replay", "erase", "erase_audit", "set_audit_level",
        "delete_account", "export", "import",
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


class RequestFilter(LinkedFilter):
    """A filter for all that one request did. The entries of that request link to it."""

    title = "request"
    parameter_name = "request"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(metadata__request_id=self.value()) if self.value() else queryset


def request_link(entry: AuditEntry) -> SafeString | str:
    """Link the id of an entry's request to all entries of that request."""
    request_id = entry.metadata.get(REQUEST_ID)
    if not isinstance(request_id, str) or not request_id:
        return "-"
    query = {"account": entry.account_id, "request": request_id, "since": "ever"}
    return list_link("auditentry", mark_invisible(request_id), **query)


class AuditChangeList(LeanChangeList):
    """The list with the entries of one request as a group, which its first entry names."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        first = None
        for entry in self.result_list:
            request_id = entry.metadata.get(REQUEST_ID)
            if first is not None and request_id and request_id == first.metadata.get(REQUEST_ID):
                first.grouped_entries += 1
                entry.is_grouped = True
            else:
                first, entry.grouped_entries = entry, 1


def render_group(entry: Any) -> SafeString | str:
    """Link the request at the first entry of its group. The others only say that they belong to it."""
    if getattr(entry, "is_grouped", False):
        return format_html('<span class="quiet same-request">{}</span>', "same request")
    count = getattr(entry, "grouped_entries", 1)
    more = format_html(' <span class="quiet">({} entries)</span>', count) if count > 1 else ""
    return format_html("{}{}", request_link(entry), more)


def reason_of(entry: AuditEntry) -> str:
    return mark_invisible(str(entry.metadata.get(REASON) or ""))


def render_changes(entry: AuditEntry) -> SafeString | str:
    """Render a table of the columns that changed, for each row."""
    changes = entry.metadata.get(CHANGES)
    if not isinstance(changes, Mapping) or not changes:
        return "-"
    return format_html_join("", "{}", ((render_row(str(row_id), found),) for row_id, found in changes.items()))


def render_row(row_id: str, found: Any) -> SafeString:
    if not isinstance(found, Mapping):
        return format_html("<p>{}: {}</p>", mark_invisible(row_id), mark_invisible(str(found)))
    pairs = ((name, values) for name, values in found.items() if isinstance(values, list) and len(values) == 2)
    lines = ((mark_invisible(str(name)), show_value(old), show_value(new)) for name, (old, new) in pairs)
    rows = format_html_join("", '<tr><th scope="row">{}</th><td>{}</td><td>{}</td></tr>', lines)
    return format_html(
        '<table class="live changes"><caption>{}</caption><thead><tr><th scope="col">Column</th>'
        '<th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>{}</tbody></table>',
        mark_invisible(row_id),
        rows,
    )


def show_value(value: Any) -> SafeString:
    if value is None or value == "":
        return format_html('<span class="quiet">{}</span>', "empty")
    text = value if isinstance(value, str) else indent_json(value, characters=MAX_VALUE_CHARACTERS)
    cut = "…" if len(text) > MAX_VALUE_CHARACTERS else ""
    return format_html('<div class="said" dir="auto">{}{}</div>', mark_invisible(text[:MAX_VALUE_CHARACTERS]), cut)


def render_query(entry: AuditEntry) -> str:
    return format_html('<pre class="json">{}</pre>', mark_invisible(entry.query_text)) if entry.query_text else "-"


def erase_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    erase_payloads(owner, row_ids)
    return BulkResult(changed=list(row_ids))


@admin.register(AuditEntry)
class AuditEntryAdmin(ListExportAdmin, ReadOnlyAdmin):
    """The entries of the log. They outlive their account, whose name is missing once it is gone."""

    changed_by = StaffGroup.OPERATOR
    list_display = (
        "timestamp", "account_name", "actor", "operation", "memory_type", "reason_excerpt", "agent_id",
        "conversation_id", "success", "request_group",
    )  # fmt: skip
    list_filter = (
        AccountFilter,
        RecentFilter,
        OperationFilter,
        MemoryTypeFilter,
        AffectedFilter,
        RequestFilter,
        "success",
    )
    list_select_related = False
    search_fields = (
        "actor__exact", "operation__exact", "memory_type__exact", "agent_id__exact", "user_id__exact",
        "conversation_id__exact", "source_channel__exact",
    )  # fmt: skip
    search_help_text = (
        "Search for a complete id of an object or a request, an actor (key:…, staff:…), operation, type, agent, user, "
        "conversation or channel."
    )
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
        ("Change", {"fields": ("reason", "changes", "of_request")}),
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
    of_request = column("Request", request_link)
    request_group = column("Request", render_group)
    reason = column("Reason", lambda entry: reason_of(entry) or "-")
    reason_excerpt = column("Reason", lambda entry: excerpt_of(reason_of(entry)))
    changes = column("Before and after", render_changes)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[AuditChangeList]:
        return AuditChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        account = Account.objects.filter(id=OuterRef("account_id"))
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        return entries.annotate(account_name=Subquery(account.values("name")[:1]))

    def search_condition(self, request: HttpRequest, search_term: str) -> Any:
        term = search_term.strip()
        columns = Q(*((name, term) for name in self.search_fields), _connector=Q.OR)
        return columns | Q(affected_ids__contains=[term]) | Q(metadata__request_id=term)

    @admin.display(description="Account")
    def account_name(self, entry: AuditEntry) -> str:
        return getattr(entry, "account_name", None) or str(entry.account_id)

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change entries. Erasing their payloads is the only change there is."""
        return bool(request.user.has_perm("memory.change_auditentry"))
