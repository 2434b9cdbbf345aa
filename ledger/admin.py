"""Read-only admin of the injection journal."""

from django.contrib import admin
from django.http import HttpRequest

from ledger.models import Injection
from memory_project.admin_lists import AccountFilter, BoundedPaginator
from memory_project.staff import AccountLimitedAdmin


@admin.register(Injection)
class InjectionAdmin(AccountLimitedAdmin):
    list_display = ("at", "account", "conversation_id", "event", "item_key", "value", "agent_id")
    list_filter = (AccountFilter, "event", "at")
    list_select_related = ("account",)
    # exact matches only: a search for a part of a text would scan the whole journal
    search_fields = ("conversation_id__exact", "item_key__exact", "agent_id__exact")
    search_help_text = "Search by a complete conversation id, item key or agent id."
    ordering = ("-stream_id",)
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Injection | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Injection | None = None) -> bool:
        return False
