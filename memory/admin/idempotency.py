"""Responses kept for repeated requests. Their bodies are not shown, since they repeat memories."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin
from memory.models import IdempotentRequest
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup


@admin.register(IdempotentRequest)
class IdempotentRequestAdmin(ReadOnlyAdmin):
    changed_by = StaffGroup.OPERATOR
    list_display = ("__str__", "account", "api_key", "status", "created_at", "expires_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account", "api_key")
    search_fields = ("request_hash__startswith",)
    search_help_text = "Search for the beginning of the request's hash."
    exclude = ("body",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[IdempotentRequest]:
        return super().get_queryset(request).defer("body")
