"""Memory pools: their data in a JSON editor, their access and their use. Services do every write.

Some pools of workflow runs have rows instead: postings of blackboards, and cached results of tools.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory import conf
from memory.admin.base import REFUSAL, ReadOnlyAdmin, ServiceForm, VersionedForm, adopt_row, staff_owner
from memory.admin.columns import (
    MINUTE,
    SECOND,
    agent_column,
    column,
    json_column,
    list_link,
    row_link,
    text_column,
    time_column,
)
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, JSONDocumentField
from memory.admin.filters import ConditionFilter
from memory.admin.grants import GrantsForm, render_grants
from memory.admin.text import excerpt_of, json_excerpt, mark_invisible, render_json
from memory.models import AccessControl, BlackboardPosting, MemoryPool, ToolCacheEntry
from memory.owner import Owner
from memory.services.audit import delete_audited_row
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.pools.data import TYPES_WITHOUT_DATA, delete_cached_result, write_data
from memory.services.pools.manage import (
    DEFAULT_SCOPES,
    PoolDraft,
    change_pool,
    create_pool,
    delete_expired_pools,
    delete_pool,
)
from memory_project.admin_lists import AccountFilter
from memory_project.ids import version_tag

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

    def remove_row(self, owner: Owner, row: Any) -> None:
        now = datetime.now(UTC)
        if row.expires_at <= now:
            delete_audited_row(owner, row, memory_type="pool")
        else:
            delete_cached_result(owner, row.pool.pool_id, row.key, now=now)

    def rows_of(self, owner: Owner, row_ids: Sequence[UUID]) -> QuerySet[Any]:
        return super().rows_of(owner, row_ids).select_related("pool")


OWN_TYPES = [(name, label) for name, label in MemoryPool.PoolType.choices if name in DEFAULT_SCOPES]
"""Types that staff may add. Pools of workflow runs are made by their agents."""

GRACE = timedelta(seconds=1)
"""Time until a pool expires that staff let expire, since services refuse a time in the past."""


class PoolForm(ServiceForm, VersionedForm, GrantsForm):
    pool_id = ExternalIdField(required=False, help_text="If it is empty, an id is generated.")
    pool_type = forms.ChoiceField(choices=OWN_TYPES, initial=MemoryPool.PoolType.SHARED)
    scope = forms.ChoiceField(
        required=False, choices=[("", "the default scope of its type"), *MemoryPool.Scope.choices]
    )
    agent_id = ExternalIdField(
        required=False, label="Owner", help_text="An agent. If it is empty, the account owns the pool."
    )
    task_id = ExternalIdField(required=False, help_text="Required for the scope “task”.")
    data = JSONDocumentField()  # type: ignore[assignment]  # taken out of the class

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding and "seen_version" in self.fields:
            self.accept_stored_version()

    def accept_stored_version(self) -> None:
        """Count the stored version as seen after a refusal, since the page shows it: saving again overwrites it."""
        form: Any = self
        name, stored = self.add_prefix("seen_version"), str(self.instance.version)
        if getattr(form, "refusal", "") and form.data.get(name) != stored:
            form.refusal += " The page shows below the data what is stored now. Saving again replaces it."
            form.data = form.data.copy()
            form.data[name] = stored


class PoolExpiryFilter(ConditionFilter):
    title = "expiry"
    parameter_name = "expiry"
    options = {
        "live": ("Live", lambda now: Q(expires_at=None) | Q(expires_at__gt=now)),
        "expired": ("Expired", lambda now: Q(expires_at__lte=now)),
        "never": ("Never expires", Q(expires_at=None)),
    }


def render_rows_link(pool: MemoryPool) -> SafeString:
    is_board = pool.pool_type == MemoryPool.PoolType.BLACKBOARD
    model, name = ("blackboardposting", "postings") if is_board else ("toolcacheentry", "cached results")
    query = {"account": pool.account_id, "pool__id__exact": pool.pk}
    return list_link(model, f"{pool.entry_count} {name}", **query)


def render_stored(pool: MemoryPool) -> SafeString:
    """Render the row as another write left it. It is read again, since the form has changed its own instance."""
    stored = MemoryPool.objects.get(account_id=pool.account_id, pk=pool.pk)
    access = AccessControl.parse(stored.access_control).model_dump()
    return render_json({"version": stored.version, "data": stored.data, "access_control": access})


def expire_pools(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Let those of the pools expire that have not expired yet."""

    def expire(pool: MemoryPool) -> None:
        # services refuse a time in the past
        at = datetime.now(UTC)
        change_pool(owner, pool.pool_id, changes={"expires_at": at + GRACE}, expected=None, now=at)

    rows = MemoryPool.objects.filter(account_id=owner.account_id, pk__in=row_ids).live(now)
    return change_each(rows.order_by("-pk").only("id", "account_id", "pool_id"), expire)


@admin.register(MemoryPool)
class MemoryPoolAdmin(ListExportAdmin):
    """The pages of pools. An expired pool may only be looked at and deleted."""

    form = PoolForm
    list_display = (
        "named", "account", "pool_type", "scope", "owned_by", "team", "version", "entries_and_bytes",
        "reads_and_writes", "last_access", "expiry",
    )  # fmt: skip
    list_filter = (AccountFilter, "pool_type", "scope", PoolExpiryFilter)
    list_select_related = ("account", "team")
    search_fields = ("pool_id__startswith", "agent_id__exact", "task_id__exact")
    search_help_text = "Search for the beginning of a pool's id, or for a complete owner or task."
    autocomplete_fields = ("account", "team")
    bulk_actions = (BulkAction(name="expire", label="Let selected pools expire", done="Expired", apply=expire_pools),)
    long_columns = ("data", "access_control")
    added_fields = (
        "account", "pool_id", "pool_type", "scope", "agent_id", "team", "task_id", "data", "access_control",
        "expires_at",
    )  # fmt: skip
    detail_fields = (
        "account", "pool_id", "pool_type", "scope", "owned_by", "team", "task_id", "workflow_run", "version", "size",
        "read_count", "write_count", "last_accessed_at", "created_at", "updated_at", "id",
    )  # fmt: skip
    readonly_extras = ("stored_data", "grants", "stored_now", "rows")
    deletion_note = "What they hold is deleted too."

    class Media:
        js = ("memory/json_editor.js",)

    named = text_column("Pool", "pool_id", empty="", ordering="pool_id")
    owned_by = agent_column("Owner")
    entries_and_bytes = column("Entries, bytes", lambda pool: f"{pool.entry_count:,}, {pool.size_bytes:,}")
    reads_and_writes = column("Reads, writes", lambda pool: f"{pool.read_count:,}, {pool.write_count:,}")
    last_access = time_column("Last access", "last_accessed_at", empty="never")
    size = column(
        "Size", lambda row: f"{row.entry_count:,} entries, {row.size_bytes:,} of {conf.POOL_LIMIT_BYTES:,} bytes"
    )
    stored_data = json_column("Data", "data")
    stored_now = column("Stored now", render_stored)
    grants = column("Agents", lambda pool: render_grants(pool.account_id, pool.access_control))
    rows = column("Rows", render_rows_link)

    @admin.display(description="Expires")
    def expiry(self, pool: MemoryPool) -> str:
        if pool.expires_at is None:
            return "never"
        expires_at = f"{pool.expires_at:{MINUTE}}"
        return f"{expires_at} (expired)" if pool.is_expired(datetime.now(UTC)) else expires_at

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        is_expired = obj is not None and obj.is_expired(datetime.now(UTC))
        return super().has_change_permission(request, obj) and not is_expired

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": self.added_fields}),)
        may_change = self.has_change_permission(request, obj)
        access = ("access_control", "expires_at", "seen_version") if may_change else ("grants", "expires_at")
        return (
            ("Content", {"fields": self.choose_content(request, obj)}),
            ("Access", {"fields": access}),
            ("Details", {"fields": self.detail_fields}),
        )

    def choose_content(self, request: HttpRequest, pool: MemoryPool) -> tuple[str, ...]:
        if pool.pool_type in TYPES_WITHOUT_DATA:
            return ("rows",)
        if not self.has_change_permission(request, pool):
            return ("stored_data",)
        # somebody else has written since the page was opened, and therefore this form was refused
        is_stale = bool(getattr(request, REFUSAL, "")) and request.POST.get("seen_version") != str(pool.version)
        return ("data", "stored_now") if is_stale else ("data",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the owner is shown as `owned_by`; in the form it would appear to be empty
        return () if obj is None else (*self.detail_fields, *self.readonly_extras, "agent_id")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            save_changes(request, obj, form)
        else:
            adopt_row(obj, add_pool(request, form.cleaned_data))

    def remove_row(self, owner: Owner, row: Any) -> None:
        now = datetime.now(UTC)
        if row.is_expired(now):
            delete_expired_pools(owner, MemoryPool.objects.filter(account_id=row.account_id, pk=row.pk), now=now)
        else:
            delete_pool(owner, row.pool_id, expected=None, now=now)


def add_pool(request: HttpRequest, given: dict[str, Any]) -> MemoryPool:
    draft = PoolDraft(
        pool_id=given["pool_id"],
        pool_type=given["pool_type"],
        scope=given["scope"],
        data=given["data"],
        access_control=AccessControl.parse(given["access_control"]),
        expires_at=given["expires_at"],
        team_id=given["team"].pk if given["team"] else None,
        task_id=given["task_id"],
    )
    owner = staff_owner(request, given["account"].pk, agent_id=given["agent_id"])
    return create_pool(owner, draft, now=datetime.now(UTC))


def save_changes(request: HttpRequest, pool: MemoryPool, form: Any) -> None:
    """Write the data and the other fields, each only if it changed."""
    owner, now, given = staff_owner(request, pool.account_id), datetime.now(UTC), form.cleaned_data
    version = given["seen_version"] or 0
    if "data" in form.changed_data:
        expected = frozenset({version_tag(version, pool.pk)})
        version = write_data(owner, pool.pool_id, data=given["data"], expected=expected, now=now).version
    changes = {name: given[name] for name in ("access_control", "expires_at") if name in form.changed_data}
    if changes:
        expected = frozenset({version_tag(version, pool.pk)})
        change_pool(owner, pool.pool_id, changes=changes, expected=expected, now=now)
