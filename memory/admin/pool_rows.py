"""Rows of the pools of workflow runs: postings of blackboards and cached results of tools."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin, staff_owner
from memory.admin.columns import SECOND, agent_column, column, json_column, text_column
from memory.admin.filters import ConditionFilter
from memory.admin.page_links import row_link
from memory.admin.text import excerpt_of, json_excerpt, mark_invisible
from memory.models import BlackboardPosting, ToolCacheEntry
from memory.services.audit import delete_audited_row
from memory.services.pools.share import delete_cached_result
from memory_project.admin_lists import AccountFilter

POOL_PARAMETER = "pool__id__exact"
"""The parameter with which a pool's page links to its rows."""


def render_pool(row: Any) -> SafeString | str:
    name = getattr(row, "pool_name", None) or row.pool.pool_id
    return row_link("memorypool", row.pool_id, mark_invisible(name))


class PoolRowAdmin(ReadOnlyAdmin):
    """Base class for the rows of pools. Lists show excerpts of the values, which may be long."""

    pool_page = column("Pool", render_pool)
    agent = agent_column("Written by")
    excerpt = column("Value", lambda row: excerpt_of(getattr(row, "value_excerpt", None) or "null"))


@admin.register(BlackboardPosting)
class BlackboardPostingAdmin(PoolRowAdmin):
    """The postings of blackboards. They are only appended, and deleted with their pool."""

    list_display = ("position", "pool_page", "agent", "excerpt", "account", "created_at")
    list_filter = (AccountFilter,)
    search_fields = ("pool__pool_id__exact", "agent_id__exact")
    search_help_text = "Search for a complete pool or author."
    fields = ("pool_page", "position", "agent", "content_json", "account", "created_at", "id")
    long_columns = ("content",)
    list_annotations = {"value_excerpt": json_excerpt("content"), "pool_name": F("pool__pool_id")}
    content_json = json_column("Value", "content")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Sort the postings of one blackboard as they were posted, and those of all boards newest first."""
        return ("position", "pk") if POOL_PARAMETER in request.GET else ("-pk",)


class CacheExpiryFilter(ConditionFilter):
    title = "expiry"
    parameter_name = "expiry"
    options = {
        "live": ("Live", lambda now: Q(expires_at__gt=now)),
        "expired": ("Expired", lambda now: Q(expires_at__lte=now)),
    }


@admin.register(ToolCacheEntry)
class ToolCacheEntryAdmin(PoolRowAdmin):
    """The cached results of tools. Staff may delete one, so that the tool is called again."""

    list_display = ("named", "pool_page", "agent", "excerpt", "hit_count", "expiry", "account")
    list_filter = (AccountFilter, CacheExpiryFilter)
    search_fields = ("key__startswith", "pool__pool_id__exact", "agent_id__exact")
    search_help_text = "Search for the beginning of a key, or for a complete pool or agent."
    fields = (
        "named", "pool_page", "agent", "value_json", "hit_count", "ttl_seconds", "expiry", "account", "created_at",
        "id",
    )  # fmt: skip
    long_columns = ("value",)
    list_annotations = {"value_excerpt": json_excerpt("value"), "pool_name": F("pool__pool_id")}
    allow_delete = True
    deletion_note = ""

    named = text_column("Key", "key", empty="")
    value_json = json_column("Value", "value")

    @admin.display(description="Expires")
    def expiry(self, entry: ToolCacheEntry) -> str:
        expires_at = f"{entry.expires_at:{SECOND}}"
        return f"{expires_at} (expired)" if entry.expires_at <= datetime.now(UTC) else expires_at

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        owner, now = staff_owner(request, obj.account_id), datetime.now(UTC)
        if obj.expires_at <= now:
            delete_audited_row(owner, obj, memory_type="pool")
        else:
            delete_cached_result(owner, obj.pool.pool_id, obj.key, now=now)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        super().delete_queryset(request, queryset.select_related("pool"))
