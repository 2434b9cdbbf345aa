"""Base classes of the admin's pages: bounded lists, audited writes, and errors shown as sentences."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, models
from django.db.models import Q, QuerySet
from django.db.models.expressions import DatabaseDefault
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode

from memory.admin.bulk import BulkActionAdmin
from memory.admin.change_lists import LeanChangeList
from memory.admin.fields import JSONObjectField
from memory.admin.row_names import NamedRowAdmin
from memory.admin.text import error_sentence, mark_invisible
from memory.errors import MemoryServiceError
from memory.models import Account
from memory.owner import Owner
from memory.services.audit import create_audited_row, delete_audited_row, update_audited_row
from memory.services.row_changes import RowChanges, model_named, watch_rows
from memory_project.admin_lists import BoundedPaginator, read_uuid
from memory_project.http.problems import REDIS_ERRORS
from memory_project.staff import STAFF_ACTOR, AccountLimitedAdmin

if TYPE_CHECKING:
    Inline = admin.TabularInline[Any, Any]
else:
    # Django's classes have no parameters at run time
    Inline = admin.TabularInline

MAX_ACTOR_CHARACTERS = 150
MAX_INLINE_ROWS = 100
"""A form takes only so many fields: rows beyond this number are edited in a list of their own."""

REASON = "_reason"
"""The field of all forms of pages that has the reason of a change."""

MAX_REASON_CHARACTERS = 500

WATCHED = "_watched_changes"
"""The attribute of a request that holds what the audit log is to say of its change."""

REFUSAL = "_refusal"
"""The attribute of a request that holds why its form was not saved."""

REDIS_IS_DOWN = "Redis does not answer, and this change needs it. Nothing was changed. Try again in a moment."


def staff_name(request: HttpRequest) -> str:
    """Return the name of the signed-in staff user for the audit log."""
    return f"{STAFF_ACTOR}{request.user.get_username()}"[:MAX_ACTOR_CHARACTERS]


def staff_owner(request: HttpRequest, account_id: UUID, **columns: Any) -> Owner:
    """Return the owner for staff, who act for the account and therefore read and write all of it."""
    return Owner(
        account_id=account_id, actor=staff_name(request), changes=watch_request(request, account_id), **columns
    )


def watching_owner(request: HttpRequest, account_id: UUID, model: type[models.Model], row_ids: Sequence[UUID]) -> Owner:
    """Return the owner for staff who change these rows on a page that is not of one row."""
    changes = watch_rows(account_id, model, row_ids, reason=posted_reason(request))
    return Owner(account_id=account_id, actor=staff_name(request), changes=changes)


def posted_reason(request: HttpRequest) -> str:
    given = (request.POST.get(name, "").replace("\x00", "").strip() for name in (REASON, "reason"))
    return next(filter(None, given), "")[:MAX_REASON_CHARACTERS]


def watch_request(request: HttpRequest, account_id: UUID) -> RowChanges | None:
    """Return what the audit log is to say of the change that a request makes; None for one that only reads.

    It watches the row of the page, as it is when this is first called.
    """
    if request.method != "POST":
        return None
    changes: RowChanges | None = getattr(request, WATCHED, None)
    if changes is None or changes.account_id != account_id:
        match = request.resolver_match
        _, model, *_ = [*((match and match.url_name) or "").split("_"), ""]
        row_id = read_uuid(str(match.kwargs.get("object_id", ""))) if match else None
        rows = [row_id] if row_id else []
        changes = watch_rows(account_id, model_named(model), rows, reason=posted_reason(request))
        setattr(request, WATCHED, changes)
    return changes


def holder_owner(request: HttpRequest, row: Any) -> Owner:
    """Return the owner of a row, so that what staff write next to it belongs to the same agent and user."""
    return staff_owner(request, row.account_id, agent_id=row.agent_id, user_id=row.user_id, channel=row.channel)


def adopt_row(instance: Any, stored: Any) -> None:
    """Give the form's instance the values that the service stored, for what follows in the request."""
    instance.__dict__.update(stored.__dict__)


def unset_database_defaults(new: models.Model) -> None:
    """Set the columns of a new row that the database will fill to None, which pages show as empty."""
    for column in new._meta.concrete_fields:
        if isinstance(getattr(new, column.attname), DatabaseDefault):
            setattr(new, column.attname, None)


def describe_origin(row: Any) -> str:
    """Return a sentence on who wrote the row and when, or "" for a row that names no writer."""
    created_at, writer = getattr(row, "created_at", None), getattr(row, "agent_id", None)
    if created_at is None or writer is None:
        return ""
    by = f"the agent {mark_invisible(writer)}" if writer else "the account itself"
    return f"It belongs to {by} and was created on {created_at:%Y-%m-%d} at {created_at:%H:%M} UTC."


def read_number(text: str, *, max_digits: int = 9) -> int | None:
    """Return the natural number that a request sent. Return None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= max_digits else None


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form whose row is validated by a service. The model's own validation is skipped."""

    def _get_validation_exclusions(self) -> set[str]:
        return {field.name for field in self.instance._meta.fields}


class VersionedForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that sends back the version of the row that the page showed, so that later changes are not overwritten."""

    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding and "seen_version" in self.fields:
            self.fields["seen_version"].initial = self.instance.version


class RefusedForm(forms.BaseForm):
    """A mixin for a form that a service has refused: it shows the reason and is not saved again."""

    refusal = ""

    def clean(self) -> Any:
        cleaned = super().clean()
        self.add_error(None, self.refusal)
        return cleaned


def render_page(request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
    """Render a page of our own from `templates/admin/memory/`."""
    shared = {**admin.site.each_context(request), "title": title}
    return TemplateResponse(request, f"admin/memory/{template}", {**shared, **context})


class BoundedAdmin(NamedRowAdmin, BulkActionAdmin, AccountLimitedAdmin):
    """A list that costs the same few queries whatever the size of the table: newest first, counted up to a limit."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    # ids are ordered by time, and sorting by anything else would sort the whole table
    ordering: ClassVar[Any] = ("-pk",)
    sortable_by: ClassVar[Any] = ()
    list_filter: ClassVar[Any] = ()
    list_select_related: ClassVar[Any] = ("account",)
    search_fields: ClassVar[Any] = ()
    formfield_overrides = {models.JSONField: {"form_class": JSONObjectField}}

    allow_add: ClassVar[bool] = True
    allow_change: ClassVar[bool] = True
    allow_delete: ClassVar[bool] = True
    """False if nobody may add, change or delete rows here, whatever their permissions."""

    fixed_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that are chosen when a row is added and never changed."""
    long_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that lists and deletions do not read, since they may be megabytes."""
    list_annotations: ClassVar[Mapping[str, Any]] = {}
    """Expressions that lists read in addition, by name."""
    id_search_fields: ClassVar[tuple[str, ...]] = ()
    """Columns that are compared with the search term if it is an id."""
    deletion_note: ClassVar[str | None] = None
    """A sentence on what else a deletion removes. If it is None, Django lists the related rows."""
    row_pages: ClassVar[Mapping[str, Callable[..., HttpResponse]]] = {}
    """Further pages of a row, by the end of their address. Each is called with this admin, the request and the id."""

    def get_urls(self) -> list[URLPattern]:
        def page(address: str, view: Callable[..., HttpResponse]) -> URLPattern:
            name = f"{self.opts.app_label}_{self.opts.model_name}_{address}"
            return path(f"<path:object_id>/{address}/", self.admin_site.admin_view(partial(view, self)), name=name)

        return [*(page(address, view) for address, view in self.row_pages.items()), *super().get_urls()]

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if isinstance(widget, AdminSplitDateTime):
            # Django labels the two boxes with texts that are not tied to them
            for part, box in zip(("date", "time"), widget.widgets, strict=True):
                box.attrs["aria-label"] = f"{field.label}, {part}"
        return field

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.allow_add and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return self.allow_change and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return self.allow_delete and super().has_delete_permission(request, obj)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        fixed = self.fixed_fields if obj is not None else ()
        return (*super().get_readonly_fields(request, obj), *fixed)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        condition = self.search_condition(request, search_term) if search_term.strip() else None
        if condition is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(condition), False

    def search_condition(self, request: HttpRequest, search_term: str) -> Any:
        """Return the condition on the rows that are found, or None to search in the columns `search_fields`."""
        row_id = read_uuid(search_term) if self.id_search_fields else None
        return row_id and Q(*((name, row_id) for name in self.id_search_fields), _connector=Q.OR)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # PostgreSQL refuses NUL in any value, filters included
        if any("\x00" in value for _, values in request.GET.lists() for value in values):
            return HttpResponseRedirect(request.path)
        try:
            return super().changelist_view(request, extra_context)
        except MemoryServiceError as err:
            if request.method != "POST":
                raise
            message = f"The action stopped before it was complete. {error_sentence(err)}"
            self.message_user(request, message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show a form that a service refused to save again as it was typed, with the reason."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except IntegrityError:
            refusal = "Not saved. Such a row exists already, or a row that it refers to was deleted."
        except MemoryServiceError as err:
            refusal = f"Not saved. {error_sentence(err)}"
        except REDIS_ERRORS:
            refusal = REDIS_IS_DOWN
        if request.method != "POST":
            self.message_user(request, refusal, messages.ERROR)
            return HttpResponseRedirect(reverse("admin:index"))
        setattr(request, REFUSAL, refusal)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def get_form(self, request: HttpRequest, obj: Any | None = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        refusal = getattr(request, REFUSAL, "")
        return type(form.__name__, (RefusedForm, form), {"refusal": refusal}) if refusal else form

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the row's page shows next to its form; `subtitle` replaces the heading."""
        return {}

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        row: Any = kwargs.get("obj")
        if row is None:
            unset_database_defaults(context["adminform"].form.instance)
        else:
            # a refused form has changed its instance: describe what is stored
            stored = self.get_object(request, str(row.pk)) if request.method == "POST" else row
            shown = stored or row
            context = {**context, "subtitle": self.name_row(shown), **self.describe_row(request, shown)}
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Say who wrote the row, and link to the audit log, which also has what agents and jobs did to it."""
        row = self.get_object(request, object_id)
        named = self.name_row(row) if row is not None else ""
        context: dict[str, Any] = {"origin": describe_origin(row) if row is not None else "", "named": named}
        context["title"] = f"History of {named}"
        account_id = getattr(row, "account_id", None)
        if account_id is not None and request.user.has_perm("memory.view_auditentry"):
            query = urlencode({"account": account_id, "affected": object_id, "since": "month"})
            context["audit_url"] = f"{reverse('admin:memory_auditentry_changelist')}?{query}"
        return super().history_view(request, object_id, {**context, **(extra_context or {})})

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except MemoryServiceError as err:
            self.message_user(request, f"Not deleted. {error_sentence(err)}", messages.ERROR)
            return HttpResponseRedirect(request.path)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.remove_row(staff_owner(request, obj.account_id), obj)

    def bulk_owner(self, request: HttpRequest, account_id: UUID) -> Owner:
        return staff_owner(request, account_id)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List the rows themselves and one sentence on what goes with them, not the many related rows."""
        if self.deletion_note is None:
            return super().get_deleted_objects(objs, request)
        named = [self.name_row(row) for row in objs]
        counts = {str(self.opts.verbose_name_plural): len(named)}
        return [*named, *filter(None, [self.deletion_note])], counts, set(), []

    def count_rows(self, count: int) -> str:
        """Return a number of rows in words, such as "2 facts"."""
        return f"{count:,} {self.opts.verbose_name if count == 1 else self.opts.verbose_name_plural}"

    def find_row(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row for a page of our own. Raise PermissionDenied or Http404 if it cannot be shown."""
        row = self.get_object(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            raise Http404(f"There is no such {self.opts.verbose_name}.")
        return row

    def render_page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        return render_page(request, template, title, opts=self.opts, **context)

    def unless_redis_is_down(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """Return the page of `view`, or with status 503 a page that says that Redis is down."""
        try:
            return view()
        except REDIS_ERRORS:
            page = self.render_page(request, "live/unavailable.html", "Redis is not reachable")
            page.status_code = 503
            return page


class ReadOnlyAdmin(BoundedAdmin):
    """A list of records that nobody adds, edits or deletes here."""

    allow_add = allow_change = allow_delete = False


class AuditedAdmin(BoundedAdmin):
    """Pages of plain rows, which the audit service writes. `memory_type` is their name in the audit log."""

    memory_type = ""

    def owner_of(self, request: HttpRequest, row: Any) -> Owner:
        return staff_owner(request, row.id if isinstance(row, Account) else row.account_id)

    def save_model(self, request: HttpRequest, obj: Any, form: "forms.ModelForm[Any]", change: bool) -> None:
        owner = self.owner_of(request, obj)
        if not change:
            create_audited_row(owner, obj, memory_type=self.memory_type)
        elif form.changed_data:
            update_audited_row(owner, obj, columns=form.changed_data, memory_type=self.memory_type)

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_audited_row(owner, row, memory_type=self.memory_type)
