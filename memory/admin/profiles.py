"""User profiles: how users want to be served. Extraction does not change what staff save here."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from memory.admin.base import ServiceForm, VersionedForm, adopt_row, staff_owner
from memory.admin.columns import column, excerpt_column, json_column, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, JSONObjectField, JSONTextsField
from memory.admin.text import json_excerpt, mark_invisible, render_json
from memory.models import UserProfile
from memory.owner import Owner
from memory.services.profiles import DOCUMENTS, ProfileChanges, delete_profile, write_profile
from memory.tiers.json_documents import comparable_json
from memory_project.admin_lists import AccountFilter

CHANGEABLE = ("preferences", "expertise_areas", "communication_style", "metadata")
STORED = tuple(f"stored_{name}" for name in CHANGEABLE)
"""Columns that take the place of CHANGEABLE on pages of users who may not change profiles."""


class ProfileForm(ServiceForm, VersionedForm):
    user_id = ExternalIdField(label="User")
    preferences = JSONObjectField(required=False)
    expertise_areas = JSONTextsField(required=False)
    communication_style = JSONObjectField(required=False)
    metadata = JSONObjectField(required=False)


@admin.register(UserProfile)
class UserProfileAdmin(ListExportAdmin):
    """The pages of profiles. A user has one profile, which all agents share."""

    form = ProfileForm
    list_display = ("user", "account", "preferences_excerpt", "expertise_excerpt", "version", "updated_at")
    list_filter = (AccountFilter,)
    search_fields = ("user_id__exact",)
    search_help_text = "Search for a complete user."
    autocomplete_fields = ("account",)
    long_columns = (*CHANGEABLE, "provenance")
    list_annotations = {
        "preferences_start": json_excerpt("preferences"),
        "expertise_start": json_excerpt("expertise_areas"),
    }
    detail_fields = ("account", "user", "sources", "version", "created_at", "updated_at", "id")
    deletion_note = ""

    user = text_column("User", "user_id")
    preferences_excerpt = excerpt_column("Preferences", "preferences_start", empty="")
    expertise_excerpt = excerpt_column("Expertise", "expertise_start", empty="")
    sources = column(
        "Learned from",
        lambda profile: render_json(profile.provenance) if profile.provenance else "Everything was set by hand.",
    )
    stored_preferences = json_column("Preferences", "preferences")
    stored_expertise_areas = json_column("Expertise areas", "expertise_areas")
    stored_communication_style = json_column("Communication style", "communication_style")
    stored_metadata = json_column("Metadata", "metadata")

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": ("account", "user_id", *CHANGEABLE)}),)
        content = (*CHANGEABLE, "seen_version") if self.has_change_permission(request, obj) else STORED
        return (("Content", {"fields": content}), ("Details", {"fields": self.detail_fields}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the user is shown as `user`, and the form does not edit it
        return () if obj is None else (*self.detail_fields, *STORED, "user_id")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given, before = form.cleaned_data, form.initial if change else {}
        changed = {name: given[name] for name in form.changed_data if name in CHANGEABLE}
        for name in DOCUMENTS:
            if name in changed:
                changed[name] = merge_patch(before.get(name) or {}, changed[name])
        if change and not changed:
            return
        account_id = obj.account_id if change else given["account"].pk
        user_id = obj.user_id if change else given["user_id"]
        expected = frozenset({given["seen_version"] or 0}) if change else None
        owner, now = staff_owner(request, account_id, user_id=user_id), datetime.now(UTC)
        written = write_profile(owner, user_id, ProfileChanges(**changed), expected=expected, now=now)
        adopt_row(obj, written.profile)

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_profile(owner, row.user_id, now=datetime.now(UTC))

    def name_row(self, row: Any) -> str:
        return mark_invisible(row.user_id)

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return {"subtitle": mark_invisible(row.user_id)}


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes from one document to the other, by name. A removed name has the value None."""
    removed: dict[str, Any] = {name: None for name in before if name not in after}
    known = {name: comparable_json(value) for name, value in before.items()}
    return removed | {name: value for name, value in after.items() if known.get(name) != comparable_json(value)}
