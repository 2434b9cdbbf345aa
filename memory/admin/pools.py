"""Memory pools: their data in a JSON editor, who is let in, how they are used. Services do every write."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory import conf
from memory.admin.base import REFUSAL, BoundedAdmin, ServedForm, describe_deletion, staff_owner
from memory.admin.documents import show_json
from memory.admin.fields import ExternalIdField, JSONDocumentField
from memory.admin.grants import GrantsField, show_grants
from memory.admin.text import mark_invisible
from memory.errors import MemoryServiceError
from memory.models import AccessControl, MemoryPool
from memory.services.pools.data import OF_ROWS, write_data
from memory.services.pools.manage import SCOPE_OF, PoolDraft, change_pool, create_pool, delete_expired, delete_pool
from memory_project.admin_lists import AccountFilter
from memory_project.ids import version_tag

OWN_TYPES = [(name, label) for name, label in MemoryPool.PoolType.choices if name in SCOPE_OF]
"""Pools of workflow runs are made by their agents."""

GRACE = timedelta(seconds=1)
"""How long a pool lives that staff let expire: no service takes an end that is over."""


class PoolForm(ServedForm):
    """What may be changed, with the version that was seen when the page was opened; and all that a new pool has."""

    pool_id = ExternalIdField(required=False, help_text="Made up where you name none.")
    pool_type = forms.ChoiceField(choices=OWN_TYPES, initial=MemoryPool.PoolType.SHARED)
    scope = forms.ChoiceField(required=False, choices=[("", "that of its type"), *MemoryPool.Scope.choices])
    agent_id = ExternalIdField(required=False, label="Owner", help_text="An agent. Empty: the account itself.")
    task_id = ExternalIdField(required=False, help_text="Scope task needs it.")
    data = JSONDocumentField()  # type: ignore[assignment]  # taken out of the class
    access_control = GrantsField()
    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        grants = self.fields.get("access_control")
        if isinstance(grants, GrantsField):
            grants.know_agents(self.instance.account_id)
        if not self.instance._state.adding and "seen_version" in self.fields:
            self.note_version()

    def note_version(self) -> None:
        """As seen by whoever opens the page. After a refusal the page shows what is stored by now: that is seen, then,
        and saving once more is saving over it."""
        form: Any = self
        name, stored = self.add_prefix("seen_version"), str(self.instance.version)
        form.fields["seen_version"].initial = stored
        if getattr(form, "refusal", "") and form.data.get(name) != stored:
            form.refusal += " What is stored by now stands below the data; saving once more replaces it."
            form.data = form.data.copy()
            form.data[name] = stored


class ExpiryFilter(admin.SimpleListFilter):
    title = "expiry"
    parameter_name = "expiry"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return (("live", "Live"), ("expired", "Expired"), ("never", "Never expires"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        now = datetime.now(UTC)
        conditions = {
            "live": Q(expires_at=None) | Q(expires_at__gt=now),
            "expired": Q(expires_at__lte=now),
            "never": Q(expires_at=None),
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


class PoolChangeList(ChangeList):
    """Data may be megabytes: a list reads none."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows.defer("data", "access_control")


@admin.register(MemoryPool)
class MemoryPoolAdmin(BoundedAdmin):
    """An expired pool is as good as none: it may be looked at and deleted, no more."""

    form = PoolForm
    list_display = (
        "named", "account", "pool_type", "scope", "owned_by", "team", "version", "entries_and_bytes",
        "reads_and_writes", "last_access", "ends",
    )  # fmt: skip
    list_filter = (AccountFilter, "pool_type", "scope", ExpiryFilter)
    list_select_related = ("account", "team")
    search_fields = ("pool_id__startswith", "agent_id__exact", "task_id__exact")
    search_help_text = "The beginning of a pool's id; or its owner or task, in full."
    autocomplete_fields = ("account", "team")
    actions = ("expire",)
    added_fields = (
        "account", "pool_id", "pool_type", "scope", "agent_id", "team", "task_id", "data", "access_control",
        "expires_at",
    )  # fmt: skip
    shown = (
        "account", "pool_id", "pool_type", "scope", "owned_by", "team", "task_id", "workflow_run", "version", "size",
        "read_count", "write_count", "last_accessed_at", "created_at", "updated_at", "id",
    )  # fmt: skip
    told = ("stored_data", "let_in", "stored_now", "rows")

    class Media:
        js = ("memory/json_editor.js",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return PoolChangeList

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        is_over = obj is not None and obj.is_expired(datetime.now(UTC))
        return super().has_change_permission(request, obj) and not is_over

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": self.added_fields}),)
        return (
            ("What it holds", {"fields": self.choose_content(request, obj)}),
            ("Who is let in", {"fields": self.choose_access(request, obj)}),
            ("What it is", {"fields": self.shown}),
        )

    def choose_content(self, request: HttpRequest, pool: MemoryPool) -> tuple[str, ...]:
        if pool.pool_type in OF_ROWS:
            return ("rows",)
        if not self.has_change_permission(request, pool):
            return ("stored_data",)
        return ("data", "stored_now") if is_overtaken(request, pool) else ("data",)

    def choose_access(self, request: HttpRequest, pool: MemoryPool) -> tuple[str, ...]:
        may_change = self.has_change_permission(request, pool)
        return ("access_control", "expires_at", "seen_version") if may_change else ("let_in", "expires_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the form's own field of the owner has no place on a page that shows it: it would seem emptied
        return () if obj is None else (*self.shown, *self.told, "agent_id")

    @admin.display(description="Pool", ordering="pool_id")
    def named(self, pool: MemoryPool) -> str:
        return mark_invisible(pool.pool_id)

    @admin.display(description="Owner")
    def owned_by(self, pool: MemoryPool) -> str:
        return mark_invisible(pool.agent_id) or "the account"

    @admin.display(description="Expires")
    def ends(self, pool: MemoryPool) -> str:
        if pool.expires_at is None:
            return "never"
        told = f"{pool.expires_at:%Y-%m-%d %H:%M}"
        return f"{told} (expired)" if pool.is_expired(datetime.now(UTC)) else told

    @admin.display(description="Entries, bytes")
    def entries_and_bytes(self, pool: MemoryPool) -> str:
        return f"{pool.entry_count:,}, {pool.size_bytes:,}"

    @admin.display(description="Reads, writes")
    def reads_and_writes(self, pool: MemoryPool) -> str:
        return f"{pool.read_count:,}, {pool.write_count:,}"

    @admin.display(description="Last access")
    def last_access(self, pool: MemoryPool) -> str:
        return f"{pool.last_accessed_at:%Y-%m-%d %H:%M}" if pool.last_accessed_at else "never"

    @admin.display(description="Size")
    def size(self, pool: MemoryPool) -> str:
        return f"{pool.entry_count:,} entries, {pool.size_bytes:,} of {conf.POOL_LIMIT_BYTES:,} bytes"

    @admin.display(description="Data")
    def stored_data(self, pool: MemoryPool) -> SafeString:
        return show_json(pool.data)

    @admin.display(description="Stored now")
    def stored_now(self, pool: MemoryPool) -> SafeString:
        """The row as another write left it, beside what was typed; the form's own instance is not saved."""
        stored = MemoryPool.objects.get(pk=pool.pk)
        access = AccessControl.parse(stored.access_control).model_dump()
        return show_json({"version": stored.version, "data": stored.data, "access_control": access})

    @admin.display(description="Agents")
    def let_in(self, pool: MemoryPool) -> SafeString:
        return show_grants(pool.account_id, pool.access_control)

    @admin.display(description="Rows")
    def rows(self, pool: MemoryPool) -> SafeString:
        is_board = pool.pool_type == MemoryPool.PoolType.BLACKBOARD
        model, name = ("blackboardposting", "postings") if is_board else ("toolcacheentry", "cached results")
        query = urlencode({"account": str(pool.account_id), "pool__id__exact": str(pool.pk)})
        url = reverse(f"admin:memory_{model}_changelist")
        return format_html('<a href="{}?{}">Its {} {}</a>', url, query, pool.entry_count, name)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        save = change_stored if change else add_pool
        save(request, obj, form)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        owner, now = staff_owner(request, obj.account_id), datetime.now(UTC)
        if obj.is_expired(now):
            delete_expired(owner, MemoryPool.objects.filter(pk=obj.pk), now=now)
        else:
            delete_pool(owner, obj.pool_id, expected=None, now=now)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for pool in queryset:
            self.delete_model(request, pool)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(objs, "and what they hold")

    @admin.action(description="Let selected pools expire", permissions=["change"])
    def expire(self, request: HttpRequest, queryset: QuerySet[MemoryPool]) -> None:
        outcomes = [self.expire_pool(request, pool) for pool in queryset.live(datetime.now(UTC))]  # type: ignore[attr-defined]
        refused = sorted({outcome for outcome in outcomes if outcome})
        self.message_user(request, f"Expired: {outcomes.count('')}.", messages.SUCCESS)
        for refusal in refused:
            self.message_user(request, f"Not all: {refusal}.", messages.WARNING)

    def expire_pool(self, request: HttpRequest, pool: MemoryPool) -> str:
        """Why it could not be; empty where it was."""
        now = datetime.now(UTC)
        owner, changes = staff_owner(request, pool.account_id), {"expires_at": now + GRACE}
        try:
            change_pool(owner, pool.pool_id, changes=changes, expected=None, now=now)
        except MemoryServiceError as err:
            return str(err)
        return ""


def is_overtaken(request: HttpRequest, pool: MemoryPool) -> bool:
    """What was typed was refused, and somebody else has written since the page was opened."""
    return bool(getattr(request, REFUSAL, "")) and request.POST.get("seen_version") != str(pool.version)


def add_pool(request: HttpRequest, pool: MemoryPool, form: Any) -> None:
    given = form.cleaned_data
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
    made = create_pool(owner, draft, now=datetime.now(UTC))
    # what follows in this request speaks of the row that the service made
    pool.__dict__.update(made.__dict__)


def change_stored(request: HttpRequest, pool: MemoryPool, form: Any) -> None:
    """Each of the two writes only where there is something to write, and both or none."""
    owner, now = staff_owner(request, pool.account_id), datetime.now(UTC)
    version = form.cleaned_data["seen_version"] or 0
    if "data" in form.changed_data:
        data = form.cleaned_data["data"]
        written = write_data(
            owner, pool.pool_id, data=data, expected=frozenset({version_tag(version, pool.pk)}), now=now
        )
        version = written.version
    changes = {name: form.cleaned_data[name] for name in ("access_control", "expires_at") if name in form.changed_data}
    if changes:
        change_pool(owner, pool.pool_id, changes=changes, expected=frozenset({version_tag(version, pool.pk)}), now=now)
