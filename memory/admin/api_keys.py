"""API keys: made here, shown once, revoked, and deleted once they have ended."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import BoundedAdmin, adopt_row, staff_name, staff_owner
from memory.admin.columns import change_url, column
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField
from memory.admin.text import error_sentence
from memory.errors import MemoryServiceError, Unprocessable
from memory.models import ApiKey
from memory.owner import Owner
from memory.services.accounts.register import check_key_scopes, delete_key, issue_key, revoke_keys, rotate_key
from memory.services.audit import update_audited_row
from memory.services.bulk.actions import BulkAction, BulkResult
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup

OVERLAPS = [(0, "revoke it immediately"), (1, "1 hour"), (24, "1 day"), (168, "7 days")]
"""Hours for which the old key stays valid."""


class RotateForm(forms.Form):
    overlap = forms.TypedChoiceField(coerce=int, choices=OVERLAPS, initial=24, label="The old key stays valid for")


def show_rotation(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Ask for how long the old key stays valid; then issue the new one, which is shown in this answer only."""
    key = pages.find_row(request, object_id)
    if not (pages.has_add_permission(request) and pages.has_change_permission(request, key)):
        raise PermissionDenied
    form = RotateForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return pages.render_page(request, "apikey/rotate.html", "Rotate the key", key=key, form=form)
    overlap = timedelta(hours=form.cleaned_data["overlap"])
    try:
        issued = rotate_key(staff_owner(request, key.account_id), key.pk, overlap=overlap, now=datetime.now(UTC))
    except MemoryServiceError as err:
        pages.message_user(request, f"Not rotated. {error_sentence(err)}", messages.ERROR)
        return HttpResponseRedirect(change_url("apikey", key.pk))
    pages.log_change(request, key, f"Rotated. The new key is {issued.key.prefix}.")
    return pages.render_page(request, "apikey/issued.html", "New API key", key=issued.key, secret=issued.secret)


SECRET = "_issued_secret"  # noqa: S105 - the name of an attribute


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    agent_id = ExternalIdField(
        required=False, label="Agent", help_text="The only agent that may use the key. If it is empty, any agent may."
    )
    user_id = ExternalIdField(
        required=False,
        label="User",
        help_text="The only user whose memories the key may see and change. If it is empty, those of any user.",
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[ApiKey.Scope.READ, ApiKey.Scope.WRITE],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding and "name" in self.fields:
            # keys that programs made may have none
            self.fields["name"].required = True
            self.fields["name"].help_text = "Who or what uses the key, so that it is known which one to revoke."

    def clean_scopes(self) -> list[str]:
        scopes: list[str] = self.cleaned_data["scopes"]
        try:
            check_key_scopes(scopes, user_id=self.cleaned_data.get("user_id", self.instance.user_id))
        except Unprocessable as err:
            raise forms.ValidationError(f"{err}.") from err
        return scopes


def revoke_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    keys = ApiKey.objects.filter(account_id=owner.account_id, id__in=row_ids, revoked_at=None)
    valid = list(keys.order_by("id").values_list("id", flat=True))
    revoke_keys(owner, valid, now=now)
    return BulkResult(changed=valid)


@admin.register(ApiKey)
class ApiKeyAdmin(ListExportAdmin):
    """The pages of API keys. The hash of a key's secret is on none of them."""

    row_pages = {"rotate": show_rotation}
    form = ApiKeyForm
    changed_by = StaffGroup.OPERATOR
    list_display = (
        "prefix",
        "name",
        "account",
        "agent_id",
        "user_id",
        "scope_names",
        "state",
        "last_used_at",
        "expires_at",
    )
    list_filter = (AccountFilter, ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("prefix__startswith", "name", "agent_id__exact", "user_id__exact")
    search_help_text = "Search for the beginning of a key, its name, or its complete agent or user."
    autocomplete_fields = ("account",)
    fields = ("account", "agent_id", "user_id", "name", "scopes", "expires_at")
    detail_fields = ("prefix", "created_at", "last_used_at", "rotated_at", "revoked_at")
    fixed_fields = ("account", "agent_id", "user_id", *detail_fields)
    bulk_actions = (
        BulkAction(
            name="revoke",
            label="Revoke selected keys",
            done="Revoked",
            apply=revoke_rows,
            explanation="Requests with these keys are refused from now on.",
            is_destructive=True,
        ),
    )
    deletion_note = "Answers that are kept for repeated requests go too. Keys that are still valid are refused."

    scope_names = column("Scopes", lambda key: ", ".join(key.scopes))

    def get_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return self.fields if obj is None else (*self.fields, *self.detail_fields)

    @admin.display(description="State")
    def state(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return "revoked"
        is_expired = key.expires_at is not None and key.expires_at <= datetime.now(UTC)
        return "expired" if is_expired else "usable"

    def save_model(self, request: HttpRequest, obj: ApiKey, form: "forms.ModelForm[Any]", change: bool) -> None:
        if change:
            if form.changed_data:
                owner = staff_owner(request, obj.account_id)
                update_audited_row(owner, obj, columns=form.changed_data, memory_type="api_key")
            return
        issued = issue_key(
            obj.account,
            scopes=obj.scopes,
            agent_id=obj.agent_id,
            user_id=obj.user_id,
            name=obj.name,
            expires_at=obj.expires_at,
            actor=staff_name(request),
        )
        adopt_row(obj, issued.key)
        # for this response only: a message would be kept in a cookie or in the session
        setattr(request, SECRET, issued.secret)

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        """Return whether the user may delete keys. One that is still valid has no page for it."""
        return super().has_delete_permission(request, obj) and (obj is None or self.state(obj) != "usable")

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_key(owner, row.pk, now=datetime.now(UTC))

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        return self.render_page(request, "apikey/issued.html", "New API key", key=obj, secret=getattr(request, SECRET))
