"""The audit log, to look at. A week unless told otherwise: each day is a partition."""

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin
from memory.admin.filters import OperationFilter, RecentFilter
from memory.models import Account, AuditEntry
from memory_project.admin_lists import AccountFilter


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Entries outlive what they speak of: an account's name is looked up, and missing once the account is gone."""

    list_display = (
        "timestamp", "account_name", "actor", "operation", "memory_type", "agent_id", "conversation_id",
        "result_count", "success",
    )  # fmt: skip
    list_filter = (AccountFilter, RecentFilter, OperationFilter, "success")
    search_fields = (
        "actor__exact", "operation__exact", "memory_type__exact", "agent_id__exact", "user_id__exact",
        "conversation_id__exact",
    )  # fmt: skip
    search_help_text = "An actor, operation, type, agent, user or conversation, in full."

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        account = Account.objects.filter(id=OuterRef("account_id"))
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        return entries.annotate(account_name=Subquery(account.values("name")[:1]))

    @admin.display(description="Account")
    def account_name(self, entry: AuditEntry) -> str:
        return getattr(entry, "account_name", None) or str(entry.account_id)
