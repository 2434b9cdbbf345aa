"""What all pages of the admin share: bounded lists, audited writes, sentences instead of tracebacks."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from memory.admin.fields import JSONObjectField
from memory.errors import MemoryServiceError
from memory.models import Account
from memory.owner import Owner
from memory.services.audit.staff_writes import change_row, create_row, delete_row
from memory_project.admin_lists import BoundedPaginator
from memory_project.http.problems import REDIS_ERRORS

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
else:
    # Django's class has no parameter at run time
    Admin = admin.ModelAdmin

ACTOR_CHARACTERS = 150
REFUSAL = "_refusal"
"""Where a request keeps why it was not saved."""

REDIS_IS_DOWN = "Redis gives no answer, and has a part in it. Nothing was changed; try again in a moment."


def staff_name(request: HttpRequest) -> str:
    """Who is answerable, for the audit log."""
    return f"staff:{request.user.get_username()}"[:ACTOR_CHARACTERS]


def staff_owner(request: HttpRequest, account_id: UUID, **columns: str) -> Owner:
    """Staff act for the account: they see and write all of it."""
    return Owner(account_id=account_id, actor=staff_name(request), **columns)


def by_account(rows: QuerySet[Any]) -> dict[UUID, list[UUID]]:
    """The ids of the rows by their account: services work within one."""
    found: dict[UUID, list[UUID]] = {}
    for account_id, row_id in rows.order_by().values_list("account_id", "pk"):
        found.setdefault(account_id, []).append(row_id)
    return found


class ServedForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form whose service knows the rules of the row: the model's own would only say them less well, or too soon."""

    def _get_validation_exclusions(self) -> set[str]:
        return {field.name for field in self.instance._meta.fields}


class RefusedForm(forms.BaseForm):
    """Before a form that a service has refused: it says why, and is not saved again."""

    refusal = ""

    def clean(self) -> Any:
        cleaned = super().clean()
        self.add_error(None, self.refusal)
        return cleaned


class BoundedAdmin(Admin):
    """A list that costs the same few queries whatever the table holds: newest first, counted to a limit."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    # ids are ordered by time, and sorting by anything else would sort the whole table
    ordering: ClassVar[Any] = ("-pk",)
    sortable_by: ClassVar[Any] = ()
    fixed_fields: ClassVar[tuple[str, ...]] = ()
    """Chosen when a row is added, and never changed."""

    formfield_overrides = {models.JSONField: {"form_class": JSONObjectField}}

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        fixed = self.fixed_fields if obj is not None else ()
        return (*super().get_readonly_fields(request, obj), *fixed)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # PostgreSQL refuses NUL in any value, filters included
        if any("\x00" in value for _, values in request.GET.lists() for value in values):
            return HttpResponseRedirect(request.path)
        try:
            return super().changelist_view(request, extra_context)
        except MemoryServiceError as err:
            if request.method != "POST":
                raise
            self.message_user(request, f"Not all of it was done: {err}.", messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """What a service refuses to save comes back as it was typed, with the reason."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except IntegrityError:
            refusal = "Not saved: there is such a row already, or what it names is gone."
        except MemoryServiceError as err:
            refusal = f"Not saved: {err}."
        except REDIS_ERRORS:
            refusal = REDIS_IS_DOWN
        if request.method != "POST":
            self.message_user(request, refusal, messages.ERROR)
            return HttpResponseRedirect(reverse("admin:index"))
        setattr(request, REFUSAL, refusal)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except MemoryServiceError as err:
            self.message_user(request, f"Not deleted: {err}.", messages.ERROR)
            return HttpResponseRedirect(request.path)

    def get_form(self, request: HttpRequest, obj: Any | None = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        refusal = getattr(request, REFUSAL, "")
        return type(form.__name__, (RefusedForm, form), {"refusal": refusal}) if refusal else form

    def unless_redis_is_down(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """The page, or one that says what is down: for views over what lives in Redis."""
        try:
            return view()
        except REDIS_ERRORS:
            context = {**self.admin_site.each_context(request), "title": "Redis is not reachable", "opts": self.opts}
            return TemplateResponse(request, "admin/memory/live/unavailable.html", context, status=503)


class ReadOnlyAdmin(BoundedAdmin):
    """A record: nobody adds to it, edits it or deletes from it here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False


class AuditedAdmin(BoundedAdmin):
    """Plain rows: written by the service that audits them. `memory_type` is their name in the audit log."""

    memory_type = ""

    def owner_of(self, request: HttpRequest, row: Any) -> Owner:
        return staff_owner(request, row.id if isinstance(row, Account) else row.account_id)

    def save_model(self, request: HttpRequest, obj: Any, form: "forms.ModelForm[Any]", change: bool) -> None:
        owner = self.owner_of(request, obj)
        if not change:
            create_row(owner, obj, memory_type=self.memory_type)
        elif form.changed_data:
            change_row(owner, obj, columns=form.changed_data, memory_type=self.memory_type)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_row(self.owner_of(request, obj), obj, memory_type=self.memory_type)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)


def describe_deletion(rows: Iterable[Any], also: str = "") -> tuple[list[str], dict[str, int], set[str], list[str]]:
    """What a page that asks for confirmation lists: the rows themselves, not the many that go with them."""
    named = [str(row) for row in rows]
    return [*named, also] if also else named, {"rows": len(named)}, set(), []


def refuse_taken(model: type[models.Model], instance: Any, **values: Any) -> None:
    """ValidationError when another row has these values: forms leave out constraints over fields they do not show."""
    if model._default_manager.filter(**values).exclude(pk=instance.pk).exists():
        raise ValidationError("There is one already.")
