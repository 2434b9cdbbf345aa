"""User profiles: how a user wants to be served. What is saved here is set by hand: extraction leaves it alone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, ServedForm, describe_deletion, staff_owner
from memory.admin.documents import beginning_of, show_json
from memory.admin.fields import ExternalIdField, JSONObjectField, JSONTextsField
from memory.admin.text import mark_invisible, shorten
from memory.models import UserProfile
from memory.services.profiles import DOCUMENTS, ProfileChanges, delete_profile, write_profile
from memory.tiers.json_documents import comparable_json
from memory_project.admin_lists import AccountFilter

CHANGEABLE = ("preferences", "expertise_areas", "communication_style", "metadata")


class ProfileForm(ServedForm):
    """The documents, and the version that was seen when the page was opened."""

    user_id = ExternalIdField(label="User")
    preferences = JSONObjectField(required=False)
    expertise_areas = JSONTextsField(required=False)
    communication_style = JSONObjectField(required=False)
    metadata = JSONObjectField(required=False)
    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding and "seen_version" in self.fields:
            self.fields["seen_version"].initial = self.instance.version


class ProfileChangeList(ChangeList):
    """Documents may be long: a list asks the database for their beginnings only."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        beginnings = {f"{name}_beginning": beginning_of(name) for name in ("preferences", "expertise_areas")}
        lean: QuerySet[Any] = rows.defer(*CHANGEABLE, "provenance").annotate(**beginnings)
        return lean


@admin.register(UserProfile)
class UserProfileAdmin(BoundedAdmin):
    """One a user; whichever agent asks, it is the same."""

    form = ProfileForm
    list_display = ("of_user", "account", "prefers", "knows", "version", "updated_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("user_id__exact",)
    search_help_text = "A user, in full."
    autocomplete_fields = ("account",)
    shown = ("account", "of_user", "learnt_from", "version", "created_at", "updated_at", "id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ProfileChangeList

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": ("account", "user_id", *CHANGEABLE)}),)
        may_change = self.has_change_permission(request, obj)
        changeable = (*CHANGEABLE, "seen_version") if may_change else tuple(f"stored_{name}" for name in CHANGEABLE)
        return (("How the user wants to be served", {"fields": changeable}), ("What it is", {"fields": self.shown}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the user is shown marked (`of_user`), and no field of the form
        return () if obj is None else (*self.shown, *(f"stored_{name}" for name in CHANGEABLE), "user_id")

    @admin.display(description="User")
    def of_user(self, profile: UserProfile) -> str:
        return mark_invisible(profile.user_id)

    @admin.display(description="Preferences")
    def prefers(self, profile: Any) -> str:
        return shorten(profile.preferences_beginning)

    @admin.display(description="Expertise")
    def knows(self, profile: Any) -> str:
        return shorten(profile.expertise_areas_beginning)

    @admin.display(description="Learnt from")
    def learnt_from(self, profile: UserProfile) -> SafeString | str:
        return show_json(profile.provenance) if profile.provenance else "All of it was set by hand."

    @admin.display(description="Preferences")
    def stored_preferences(self, profile: UserProfile) -> SafeString:
        return show_json(profile.preferences)

    @admin.display(description="Expertise areas")
    def stored_expertise_areas(self, profile: UserProfile) -> SafeString:
        return show_json(profile.expertise_areas)

    @admin.display(description="Communication style")
    def stored_communication_style(self, profile: UserProfile) -> SafeString:
        return show_json(profile.communication_style)

    @admin.display(description="Metadata")
    def stored_metadata(self, profile: UserProfile) -> SafeString:
        return show_json(profile.metadata)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given, before = form.cleaned_data, form.initial if change else {}
        changed = {name: given[name] for name in form.changed_data if name in CHANGEABLE}
        for name in DOCUMENTS:
            if name in changed:
                changed[name] = changes_between(before.get(name) or {}, changed[name])
        if change and not changed:
            return
        account_id = obj.account_id if change else given["account"].pk
        user_id = obj.user_id if change else given["user_id"]
        expected = frozenset({given["seen_version"] or 0}) if change else None
        owner, now = staff_owner(request, account_id, user_id=user_id), datetime.now(UTC)
        written = write_profile(owner, user_id, ProfileChanges(**changed), expected=expected, now=now)
        # what follows in this request speaks of the row that the service stored
        obj.__dict__.update(written.profile.__dict__)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_profile(staff_owner(request, obj.account_id), obj.user_id, now=datetime.now(UTC))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for profile in queryset:
            self.delete_model(request, profile)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(mark_invisible(profile.user_id) for profile in objs)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        profile: Any = kwargs["obj"]
        headed = {**context, "subtitle": mark_invisible(profile.user_id)} if profile else context
        return super().render_change_form(request, headed, *args, **kwargs)


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the one document of the other, by name; None for a name that is gone."""
    gone: dict[str, Any] = {name: None for name in before if name not in after}
    known = {name: comparable_json(value) for name, value in before.items()}
    return gone | {name: value for name, value in after.items() if known.get(name) != comparable_json(value)}
