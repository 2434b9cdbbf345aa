"""Persistent contexts: their description and access, and links to the lists of what they hold. Services write them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import ServiceForm, VersionedForm, adopt_row, staff_owner
from memory.admin.bulk import describe_count
from memory.admin.columns import (
    agent_column,
    column,
    excerpt_column,
    json_column,
    list_link,
    row_link,
)
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, JSONObjectField, NameField, PlainTextField
from memory.admin.filters import LinkedRowFilter
from memory.admin.grants import GrantsForm, render_grants
from memory.admin.object_actions import ChangeFormActionAdmin, ObjectAction
from memory.admin.text import excerpt_of, mark_invisible
from memory.models import AccessControl, ContextSnapshot, Memory, PersistentContext
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.contexts.manage import (
    CHANGEABLE,
    ContextDraft,
    archive_context,
    change_context,
    create_context,
    delete_context,
    unarchive_context,
)
from memory_project.admin_lists import MAX_COUNTED, AccountFilter

HELD_LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "Entries": ("contextentry", {}),
    "Learnings": ("learning", {}),
    "Snapshots": ("contextsnapshot", {}),
    "Access log": ("contextaccesslog", {"since": "ever"}),
}
"""Lists of what a context holds: the model, and further parameters of the list's address."""

LONG_CONTEXT_COLUMNS = ("description", "metadata", "access_control")
ARCHIVERS = {"archive": archive_context, "unarchive": unarchive_context}
OPPOSITES = {"archive": "unarchive", "unarchive": "archive"}


class ContextFilter(LinkedRowFilter):
    """A filter for what one context holds, set by a link on its page."""

    title = "context"
    parameter_name = "context"
    model = PersistentContext
    column = "context_id"


def context_link(row: Any) -> SafeString | str:
    """Link to the context of a row. Return a dash if it has none."""
    return row_link("persistentcontext", row.context.pk, excerpt_of(row.context.name)) if row.context else "-"


class ContextForm(ServiceForm, VersionedForm, GrantsForm):
    name = NameField(max_length=200, strip=False)
    description = PlainTextField(required=False)
    agent_id = ExternalIdField(
        required=False, label="Owner", help_text="An agent. If it is empty, the account owns the context."
    )
    metadata = JSONObjectField(required=False, initial=dict)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.strip():
            raise forms.ValidationError("A context must have a name.")
        return name


class SeenVersionForm(forms.Form):
    seen_version = forms.IntegerField(widget=forms.HiddenInput)


def archive_or_unarchive(name: str, owner: Owner, context: PersistentContext, data: dict[str, Any]) -> str:
    ARCHIVERS[name](owner, context.pk, expected=frozenset({data["seen_version"]}), now=datetime.now(UTC))
    return f"The context is {name}d."


def archive_rows(name: str, owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Archive or unarchive those of the contexts that are not yet."""
    rows = PersistentContext.objects.filter(account_id=owner.account_id, pk__in=row_ids)
    others = rows.filter(archived=name == "unarchive").defer(*LONG_CONTEXT_COLUMNS).order_by("-pk")
    return change_each(others, lambda context: ARCHIVERS[name](owner, context.pk, expected=None, now=now))


@admin.register(PersistentContext)
class PersistentContextAdmin(ListExportAdmin, ChangeFormActionAdmin):
    """The pages of contexts. Type, scope, owner and team of a context cannot be changed."""

    form = ContextForm
    change_form_template = "admin/memory/persistentcontext/change_form.html"
    list_display = ("named", "account", "context_type", "scope_text", "owned_by", "archived", "updated_at")
    list_filter = (AccountFilter, "context_type", "scope", "archived")
    list_select_related = ("account", "team")
    search_fields = ("name", "agent_id__exact")
    search_help_text = "Search for a part of the name, or for a complete owner or id."
    id_search_fields = ("id",)
    autocomplete_fields = ("account", "team")
    bulk_actions = tuple(
        BulkAction(
            name=name,
            label=f"{name.capitalize()} selected %(verbose_name_plural)s",
            done=f"{name.capitalize()}d",
            apply=partial(archive_rows, name),
            undo=partial(archive_rows, OPPOSITES[name]),
        )
        for name in ARCHIVERS
    )
    object_actions = {
        name: ObjectAction(run=partial(archive_or_unarchive, name), form=SeenVersionForm) for name in ARCHIVERS
    }
    long_columns = LONG_CONTEXT_COLUMNS
    added_fields = (
        "account", "name", "description", "context_type", "scope", "team", "agent_id", "access_control", "metadata",
    )  # fmt: skip
    detail_fields = (
        "account", "context_type", "scope", "owned_by", "team_name", "archived", "version", "created_at", "updated_at",
        "id",
    )  # fmt: skip
    readonly_extras = ("held_lists", "grants", "metadata_json")

    named = excerpt_column("Context", "name", empty="", ordering="name")
    owned_by = agent_column("Owner")
    team_name = column("Team", lambda context: mark_invisible(context.team.name) if context.team else "-")
    grants = column("Agents", lambda context: render_grants(context.account_id, context.access_control))
    metadata_json = json_column("Metadata", "metadata")

    @admin.display(description="Scope")
    def scope_text(self, context: PersistentContext) -> str:
        return f"team {self.team_name(context)}" if context.team else str(context.scope)

    @admin.display(description="Lists")
    def held_lists(self, context: PersistentContext) -> SafeString:
        links = ((list_link(model, name, context=context.pk, **more),) for name, (model, more) in HELD_LISTS.items())
        return format_html_join(" · ", "{}", links)

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": self.added_fields}),)
        may_change = self.has_change_permission(request, obj)
        metadata = ("metadata", "seen_version") if may_change else ("metadata_json",)
        return (
            ("Description", {"fields": ("name", "description", *metadata)}),
            ("Contents", {"fields": ("held_lists",)}),
            ("Access", {"fields": ("access_control" if may_change else "grants",)}),
            ("Details", {"fields": self.detail_fields}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the owner is shown as `owned_by`, and the form does not edit it
        return () if obj is None else (*self.detail_fields, *self.readonly_extras, "agent_id")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            adopt_row(obj, add_context(request, form.cleaned_data))
            return
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in CHANGEABLE}
        if changes:
            owner, expected = staff_owner(request, obj.account_id), frozenset({form.cleaned_data["seen_version"] or 0})
            change_context(owner, obj.pk, changes=changes, expected=expected, now=datetime.now(UTC))

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_context(owner, row.pk)

    def explain_bulk_action(self, action: BulkAction, rows: QuerySet[Any]) -> str:
        if action.permission != "delete":
            return ""
        return "What they hold is deleted for good: entries, learnings and snapshots. Archiving keeps all of it."

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List the contexts and how much goes with them. It takes the permission to delete entries as well."""
        contexts = list(objs)
        entries = describe_count(Memory.objects.filter(**held_condition(contexts)), MAX_COUNTED)
        snapshots = describe_count(ContextSnapshot.objects.filter(**held_condition(contexts)), MAX_COUNTED)
        note = (
            f"What they hold is deleted for good: entries and learnings ({entries}) with all versions, vectors, links "
            f"and votes; snapshots ({snapshots}); the access log. Archiving keeps all of it, but out of searches."
        )
        return (
            [*(mark_invisible(str(context)) for context in contexts), note],
            {"contexts": len(contexts), "entries": entries, "snapshots": snapshots},
            set() if request.user.has_perm("memory.delete_contextentry") else {"context entry"},
            [],
        )


def held_condition(contexts: Iterable[PersistentContext]) -> dict[str, Any]:
    """Return the condition on rows that the contexts hold. It begins with the account, as indexes do."""
    rows = list(contexts)
    return {"account_id__in": {row.account_id for row in rows}, "context_id__in": [row.pk for row in rows]}


def add_context(request: HttpRequest, given: dict[str, Any]) -> PersistentContext:
    draft = ContextDraft(
        name=given["name"],
        description=given["description"],
        context_type=given["context_type"],
        scope=given["scope"],
        access_control=AccessControl.parse(given["access_control"]),
        team_id=given["team"].pk if given["team"] else None,
        metadata=given["metadata"],
    )
    return create_context(staff_owner(request, given["account"].pk, agent_id=given["agent_id"]), draft)
