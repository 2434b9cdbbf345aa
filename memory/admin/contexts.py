"""Persistent contexts: what they are called, who is let in, what they hold (on pages of its own). Services write."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.documents import show_json
from memory.admin.fields import ExternalIdField, JSONObjectField, PlainTextField
from memory.admin.grants import GrantsField, show_grants
from memory.admin.text import mark_invisible, shorten
from memory.errors import MemoryServiceError
from memory.models import AccessControl, ContextSnapshot, Memory, PersistentContext
from memory.services.contexts.delete import delete_context
from memory.services.contexts.manage import (
    CHANGEABLE,
    ContextDraft,
    archive_context,
    change_context,
    create_context,
    unarchive_context,
)
from memory_project.admin_lists import MOST_COUNTED, AccountFilter, read_uuid

HELD = {
    "Entries": ("contextentry", ""),
    "Learnings": ("learning", ""),
    "Snapshots": ("contextsnapshot", ""),
    "Access log": ("contextaccesslog", "&since=ever"),
}
"""What a context holds, as its page calls it: the model whose list can be narrowed to a context, and more for that."""

LONG_COLUMNS = ("description", "metadata", "access_control")
SETTERS = {"archive": archive_context, "unarchive": unarchive_context}


class ContextFilter(admin.SimpleListFilter):
    """What one context holds. Chosen by a link on its page; offered here is only the chosen one."""

    title = "context"
    parameter_name = "context"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        context_id = read_uuid(request.GET.get(self.parameter_name, ""))
        rows = PersistentContext.objects.filter(id=context_id) if context_id else PersistentContext.objects.none()
        self.chosen = rows.only("account_id", "name").first()
        return [(str(self.chosen.id), shorten(self.chosen.name))] if self.chosen else []

    def has_output(self) -> bool:
        return self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.chosen is None:
            return queryset.none()
        # every index begins with the account
        return queryset.filter(account_id=self.chosen.account_id, context_id=self.chosen.id)


def link_to_context(context: PersistentContext) -> SafeString:
    url = reverse("admin:memory_persistentcontext_change", args=[context.pk])
    return format_html('<a href="{}">{}</a>', url, shorten(context.name))


class NameField(forms.CharField):
    """One line, spaces kept. Browsers drop line ends from it: without an edit, that is none."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(str(initial or "").replace("\r", "").replace("\n", "") != (data or ""))


class ContextForm(forms.ModelForm):  # type: ignore[type-arg]
    """What may be changed, with the version that was seen when the page was opened; and all that a new one has."""

    name = NameField(max_length=200, strip=False, widget=forms.TextInput(attrs={"class": "vTextField", "dir": "auto"}))
    description = PlainTextField(required=False)
    agent_id = ExternalIdField(required=False, label="Owner", help_text="An agent. Empty: the account itself.")
    access_control = GrantsField()
    metadata = JSONObjectField(required=False, initial=dict)
    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        grants = self.fields.get("access_control")
        if isinstance(grants, GrantsField):
            grants.know_agents(self.instance.account_id)
        if not self.instance._state.adding and "seen_version" in self.fields:
            self.fields["seen_version"].initial = self.instance.version

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.strip():
            raise forms.ValidationError("A context has a name.")
        return name

    def _get_validation_exclusions(self) -> set[str]:
        """The service knows the rules, such as whose names have to differ."""
        return {field.name for field in self.instance._meta.fields}


class ContextChangeList(ChangeList):
    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows.defer(*LONG_COLUMNS)


@admin.register(PersistentContext)
class PersistentContextAdmin(BoundedAdmin):
    """Type, scope, owner and team stay what they were."""

    form = ContextForm
    change_form_template = "admin/memory/persistentcontext/change_form.html"
    list_display = (
        "named", "account", "context_type", "reach", "owned_by", "archived", "updated_at",
    )  # fmt: skip
    list_filter = (AccountFilter, "context_type", "scope", "archived")
    list_select_related = ("account", "team")
    search_fields = ("name", "agent_id__exact")
    search_help_text = "Part of a name; or an owner or an id, in full."
    autocomplete_fields = ("account", "team")
    actions = ("archive", "unarchive")
    added_fields = (
        "account", "name", "description", "context_type", "scope", "team", "agent_id", "access_control", "metadata",
    )  # fmt: skip
    shown = (
        "account", "context_type", "scope", "owned_by", "of_team", "archived", "version", "created_at", "updated_at",
        "id",
    )  # fmt: skip
    told = ("holds", "let_in", "stored_metadata")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ContextChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        context_id = read_uuid(search_term)
        if context_id is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(id=context_id), False

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": self.added_fields}),)
        may_change = self.has_change_permission(request, obj)
        metadata = ("metadata", "seen_version") if may_change else ("stored_metadata",)
        return (
            ("What it is for", {"fields": ("name", "description", *metadata)}),
            ("What it holds", {"fields": ("holds",)}),
            ("Who is let in", {"fields": ("access_control" if may_change else "let_in",)}),
            ("What it is", {"fields": self.shown}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the owner is shown marked (`owned_by`), and no field of the form
        return () if obj is None else (*self.shown, *self.told, "agent_id")

    @admin.display(description="Context", ordering="name")
    def named(self, context: PersistentContext) -> str:
        return shorten(context.name)

    @admin.display(description="Owner")
    def owned_by(self, context: PersistentContext) -> str:
        return mark_invisible(context.agent_id) or "the account"

    @admin.display(description="Scope")
    def reach(self, context: PersistentContext) -> str:
        return f"team {self.of_team(context)}" if context.team else str(context.scope)

    @admin.display(description="Team")
    def of_team(self, context: PersistentContext) -> str:
        return mark_invisible(context.team.name) if context.team else "-"

    @admin.display(description="Lists")
    def holds(self, context: PersistentContext) -> SafeString:
        links = [
            (reverse(f"admin:memory_{model}_changelist"), context.pk, more, name)
            for name, (model, more) in HELD.items()
        ]
        return format_html_join(" · ", '<a href="{}?context={}{}">{}</a>', links)

    @admin.display(description="Agents")
    def let_in(self, context: PersistentContext) -> SafeString:
        return show_grants(context.account_id, context.access_control)

    @admin.display(description="Metadata")
    def stored_metadata(self, context: PersistentContext) -> SafeString:
        return show_json(context.metadata)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        context: PersistentContext | None = self.get_object(request, object_id)
        if request.method == "POST" and context is not None and request.POST.get("set") in SETTERS:
            return self.set_archived(request, context, request.POST["set"])
        return super().change_view(request, object_id, form_url, extra_context)

    def set_archived(self, request: HttpRequest, context: PersistentContext, setting: str) -> HttpResponse:
        if not self.has_change_permission(request, context):
            raise PermissionDenied
        seen = request.POST.get("seen_version", "")
        expected = frozenset({int(seen)}) if seen.isascii() and seen.isdigit() and len(seen) < 10 else frozenset[int]()
        owner, now = staff_owner(request, context.account_id), datetime.now(UTC)
        try:
            SETTERS[setting](owner, context.pk, expected=expected, now=now)
        except MemoryServiceError as err:
            self.message_user(request, f"Not done: {err}.", messages.ERROR)
        else:
            self.log_change(request, context, f"{setting.capitalize()}d.")
            self.message_user(request, f"Done: {setting}.", messages.SUCCESS)
        return HttpResponseRedirect(request.path)

    @admin.action(description="Archive selected %(verbose_name_plural)s", permissions=["change"])
    def archive(self, request: HttpRequest, queryset: QuerySet[PersistentContext]) -> None:
        self.set_all(request, queryset.filter(archived=False), "archive")

    @admin.action(description="Unarchive selected %(verbose_name_plural)s", permissions=["change"])
    def unarchive(self, request: HttpRequest, queryset: QuerySet[PersistentContext]) -> None:
        self.set_all(request, queryset.filter(archived=True), "unarchive")

    def set_all(self, request: HttpRequest, contexts: QuerySet[PersistentContext], setting: str) -> None:
        changed, now = 0, datetime.now(UTC)
        for context in contexts.defer(*LONG_COLUMNS):
            SETTERS[setting](staff_owner(request, context.account_id), context.pk, expected=None, now=now)
            self.log_change(request, context, f"{setting.capitalize()}d.")
            changed += 1
        self.message_user(request, f"Changed: {changed}.", messages.SUCCESS)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            add_context(request, obj, form.cleaned_data)
            return
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in CHANGEABLE}
        if changes:
            owner, version = staff_owner(request, obj.account_id), form.cleaned_data["seen_version"] or 0
            now = datetime.now(UTC)
            change_context(owner, obj.pk, changes=changes, expected=frozenset({version}), now=now)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_context(staff_owner(request, obj.account_id), obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for context in queryset.defer(*LONG_COLUMNS):
            self.delete_model(request, context)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The contexts, and how much goes with them. Who may not delete entries may not do it this way."""
        contexts = list(objs)
        named = [mark_invisible(str(context)) for context in contexts]
        entries = count_up(Memory.objects.filter(**held_by(contexts)))
        snapshots = count_up(ContextSnapshot.objects.filter(**held_by(contexts)))
        also = f"and what they hold, for good: entries and learnings ({entries}) with all versions, vectors, links and "
        also += f"votes; snapshots ({snapshots}); the access log. Archiving keeps all of it, out of searches"
        may_delete = request.user.has_perm("memory.delete_contextentry")
        return (
            [*named, also],
            {"contexts": len(named), "entries": entries, "snapshots": snapshots},
            set() if may_delete else {"context entry"},
            [],
        )


def held_by(contexts: Iterable[PersistentContext]) -> dict[str, Any]:
    """The condition on what they hold, beginning with the account as indexes do."""
    rows = list(contexts)
    return {"account_id__in": {row.account_id for row in rows}, "context_id__in": [row.pk for row in rows]}


def count_up(rows: QuerySet[Any]) -> str:
    """How many there are, to a limit."""
    counted = rows.order_by().values("pk")[: MOST_COUNTED + 1].count()
    return f"more than {MOST_COUNTED:,}" if counted > MOST_COUNTED else f"{counted:,}"


def add_context(request: HttpRequest, context: PersistentContext, given: dict[str, Any]) -> None:
    draft = ContextDraft(
        name=given["name"],
        description=given["description"],
        context_type=given["context_type"],
        scope=given["scope"],
        access_control=AccessControl.parse(given["access_control"]),
        team_id=given["team"].pk if given["team"] else None,
        metadata=given["metadata"],
    )
    made = create_context(staff_owner(request, given["account"].pk, agent_id=given["agent_id"]), draft)
    # what follows in this request speaks of the row that the service made
    context.__dict__.update(made.__dict__)
