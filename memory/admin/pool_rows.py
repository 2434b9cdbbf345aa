"""What pools of workflow runs hold as rows: postings of blackboards, to read in order, and cached results of tools."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin, describe_deletion, staff_owner
from memory.admin.documents import beginning_of, show_json
from memory.admin.text import mark_invisible, shorten
from memory.models import BlackboardPosting, ToolCacheEntry
from memory.services.audit.staff_writes import delete_row
from memory.services.pools.share import forget_cached
from memory_project.admin_lists import AccountFilter

OF_POOL = "pool__id__exact"


class PoolRowChangeList(ChangeList):
    """Values may be long: a list asks the database for their beginnings, and for the names of their pools."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        column = self.model_admin.value_column  # type: ignore[attr-defined]
        lean: QuerySet[Any] = rows.defer(column).annotate(beginning=beginning_of(column), pool_name=F("pool__pool_id"))
        return lean


class PoolRowPages(ReadOnlyAdmin):
    """Rows of pools; those of one pool by the link on its page."""

    value_column = ""
    list_select_related = ("account",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return PoolRowChangeList

    @admin.display(description="Pool")
    def of_pool(self, row: Any) -> SafeString:
        name = getattr(row, "pool_name", None) or row.pool.pool_id
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:memory_memorypool_change", args=[row.pool_id]), mark_invisible(name)
        )

    @admin.display(description="By")
    def written_by(self, row: Any) -> str:
        return mark_invisible(row.agent_id) or "the account"

    @admin.display(description="Value")
    def excerpt(self, row: Any) -> str:
        return shorten(getattr(row, "beginning", None) or "null")

    @admin.display(description="Value")
    def whole(self, row: Any) -> SafeString:
        return show_json(getattr(row, self.value_column))


@admin.register(BlackboardPosting)
class BlackboardPostingAdmin(PoolRowPages):
    """Appended only: nobody changes one, and none goes without its pool."""

    value_column = "content"
    list_display = ("position", "of_pool", "written_by", "excerpt", "account", "created_at")
    list_filter = (AccountFilter,)
    search_fields = ("pool__pool_id__exact", "agent_id__exact")
    search_help_text = "A pool or an author, in full."
    fields = ("of_pool", "position", "written_by", "whole", "account", "created_at", "id")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Of one board as they were posted; of all the newest first."""
        return ("position", "pk") if OF_POOL in request.GET else ("-pk",)


class FreshnessFilter(admin.SimpleListFilter):
    title = "expiry"
    parameter_name = "expiry"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return (("live", "Live"), ("expired", "Expired"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        now = datetime.now(UTC)
        conditions = {"live": Q(expires_at__gt=now), "expired": Q(expires_at__lte=now)}
        return queryset.filter(conditions.get(self.value() or "", Q()))


@admin.register(ToolCacheEntry)
class ToolCacheEntryAdmin(PoolRowPages):
    """May be deleted, so that the tool is asked again."""

    value_column = "value"
    list_display = ("named", "of_pool", "written_by", "excerpt", "hit_count", "ends", "account")
    list_filter = (AccountFilter, FreshnessFilter)
    search_fields = ("key__startswith", "pool__pool_id__exact", "agent_id__exact")
    search_help_text = "The beginning of a key; or a pool or an agent, in full."
    fields = (
        "named", "of_pool", "written_by", "whole", "hit_count", "ttl_seconds", "ends", "account", "created_at", "id",
    )  # fmt: skip

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return bool(request.user.has_perm("memory.delete_toolcacheentry"))

    @admin.display(description="Key")
    def named(self, entry: ToolCacheEntry) -> str:
        return mark_invisible(entry.key)

    @admin.display(description="Expires")
    def ends(self, entry: ToolCacheEntry) -> str:
        told = f"{entry.expires_at:%Y-%m-%d %H:%M:%S}"
        return f"{told} (expired, unreadable)" if entry.expires_at <= datetime.now(UTC) else told

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        owner, now = staff_owner(request, obj.account_id), datetime.now(UTC)
        if obj.expires_at <= now:
            delete_row(owner, obj, memory_type="pool")
        else:
            forget_cached(owner, obj.pool.pool_id, obj.key, now=now)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for entry in queryset.select_related("pool"):
            self.delete_model(request, entry)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(objs)
