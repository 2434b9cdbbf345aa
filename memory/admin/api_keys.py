"""API keys: made here, shown once, revoked, never deleted (answers kept for repeated requests hang on them)."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from memory.admin.base import BoundedAdmin, by_account, staff_name, staff_owner
from memory.admin.fields import ExternalIdField
from memory.models import ApiKey
from memory.services.accounts.register import issue_key, revoke_keys
from memory.services.audit.staff_writes import change_row
from memory_project.admin_lists import AccountFilter


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    agent_id = ExternalIdField(required=False, label="Agent", help_text="Bound to this agent; empty: to none.")
    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[ApiKey.Scope.READ, ApiKey.Scope.WRITE],
    )


@admin.register(ApiKey)
class ApiKeyAdmin(BoundedAdmin):
    form = ApiKeyForm
    list_display = ("prefix", "name", "account", "agent_id", "scope_names", "state", "last_used_at", "expires_at")
    list_filter = (AccountFilter, ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("account",)
    search_fields = ("prefix__startswith", "name", "agent_id__exact")
    search_help_text = "The key's beginning, its name, or its agent."
    autocomplete_fields = ("account",)
    fields = ("account", "agent_id", "name", "scopes", "expires_at")
    fixed_fields = ("account", "agent_id", "prefix", "created_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        """The secret's hash is on no page."""
        return self.fields if obj is None else (*self.fields, "prefix", "created_at", "last_used_at", "revoked_at")

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    @admin.display(description="Scopes")
    def scope_names(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description="State")
    def state(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return "revoked"
        is_over = key.expires_at is not None and key.expires_at <= datetime.now(UTC)
        return "expired" if is_over else "usable"

    def save_model(self, request: HttpRequest, obj: ApiKey, form: "forms.ModelForm[Any]", change: bool) -> None:
        owner = staff_owner(request, obj.account_id)
        if change:
            if form.changed_data:
                change_row(owner, obj, columns=form.changed_data, memory_type="api_key")
            return
        issued = issue_key(
            obj.account,
            scopes=obj.scopes,
            agent_id=obj.agent_id,
            name=obj.name,
            expires_at=obj.expires_at,
            actor=staff_name(request),
        )
        # what follows in this request speaks of the row that the service made
        obj.__dict__.update(issued.key.__dict__)
        # for this answer alone: kept neither in a cookie nor in a session, as a message would be
        setattr(request, SECRET, issued.secret)

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "The new API key",
            "opts": self.opts,
            "key": obj,
            "secret": getattr(request, SECRET),
        }
        return TemplateResponse(request, "admin/memory/apikey/issued.html", context)

    @admin.action(description="Revoke selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        revoked = sum(
            revoke_keys(staff_owner(request, account_id), ids, now=datetime.now(UTC))
            for account_id, ids in by_account(queryset).items()
        )
        self.message_user(request, f"Revoked: {revoked}.", messages.SUCCESS)


SECRET = "_issued_secret"  # noqa: S105 - the name of an attribute
