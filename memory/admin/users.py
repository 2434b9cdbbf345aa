"""Users and groups of the admin itself. A member of staff who is limited to accounts sees neither."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from memory.admin.fields import PlainTextField
from memory.admin.text import excerpt_of
from memory.models import Account, StaffLimit
from memory_project.staff import Admin, is_limited

if TYPE_CHECKING:
    UserForm = UserChangeForm[User]
else:
    UserForm = UserChangeForm


class AccountNamesField(PlainTextField):
    """Ids of accounts, edited as names, one per line."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return "\n".join(Account.objects.filter(pk__in=value).order_by("name").values_list("name", flat=True))

    def clean(self, value: Any) -> Any:
        names = {line.strip() for line in (super().clean(value) or "").split("\n")} - {""}
        ids: dict[str, UUID] = dict(Account.objects.filter(name__in=names).values_list("name", "id"))
        if unknown := sorted(names - set(ids)):
            raise forms.ValidationError(f"There is no account with this name: {excerpt_of(unknown[0])}.")
        return sorted(ids.values())

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial or []), data)


class StaffForm(UserForm):
    """The form of a user with the accounts to which the user is limited."""

    limited = forms.BooleanField(
        required=False,
        label="Limited to accounts",
        help_text="The user sees only the accounts below, and none if there is none. A superuser is never limited.",
    )
    limited_to = AccountNamesField(
        rows=4, required=False, label="Accounts", help_text="Names of accounts, one per line."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limit = StaffLimit.objects.filter(user_id=self.instance.pk).first()
        self.initial.update(limited=limit is not None, limited_to=limit.account_ids if limit else [])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("limited_to") and not cleaned.get("limited"):
            self.add_error("limited", "Check this box as well, or name no account below.")
        return cleaned


class UnlimitedStaffAdmin(Admin):
    """Pages that a member of staff who is limited to accounts cannot open, whatever the permissions."""

    def has_view_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return not is_limited(request) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return not is_limited(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return not is_limited(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return not is_limited(request) and super().has_delete_permission(request, obj)


admin.site.unregister((User, Group))


@admin.register(User)
class StaffUserAdmin(UnlimitedStaffAdmin, UserAdmin):  # type: ignore[type-arg]
    form = StaffForm
    fieldsets = (*(UserAdmin.fieldsets or ()), ("Accounts", {"fields": ("limited", "limited_to")}))

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not {"limited", "limited_to"} & set(form.changed_data):
            return
        if form.cleaned_data["limited"]:
            accounts = {"account_ids": form.cleaned_data["limited_to"]}
            StaffLimit.objects.update_or_create(user=obj, defaults=accounts)
        else:
            StaffLimit.objects.filter(user=obj).delete()


@admin.register(Group)
class StaffGroupAdmin(UnlimitedStaffAdmin, GroupAdmin):
    """The pages of groups. The shipped ones get back, with each migration, what they shipped with."""
