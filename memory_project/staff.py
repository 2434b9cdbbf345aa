"""Staff: the shipped groups, and the accounts whose rows a member of staff sees in the admin.

Pages of rows of accounts derive from `AccountLimitedAdmin`, and every other query of a page that is not about a row
already found goes through `limit_rows`. `tests/memory/admin/test_staff_limits.py` walks all pages of the admin.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.widgets import ForeignKeyRawIdWidget
from django.db.models import ForeignKey, Model, QuerySet
from django.http import Http404, HttpRequest

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
else:
    # Django's class has no parameters at run time
    Admin = admin.ModelAdmin

CHOSEN_ACCOUNT = "admin_account"
"""The key of the session that holds the account to which a member of staff has narrowed all pages."""

CACHED = "_visible_accounts"

STAFF_ACTOR = "staff:"
"""What the names of staff begin with in the audit log."""


class StaffGroup(StrEnum):
    """The groups that every installation has. Who is in two of them may do what either may."""

    VIEWER = "viewer"
    CURATOR = "curator"
    OPERATOR = "operator"


def limit_of(user: Any) -> frozenset[UUID] | None:
    """Return the accounts that a member of staff is limited to; None for those who are not, such as superusers."""
    if user.is_superuser:
        return None
    limits = apps.get_model("memory", "StaffLimit")._default_manager.filter(user_id=user.pk)
    found = limits.values_list("account_ids", flat=True).first()
    return None if found is None else frozenset(found)


def visible_accounts(request: HttpRequest) -> frozenset[UUID] | None:
    """Return the accounts whose rows this request may see: those of the limit, or the chosen one. None for all."""
    limit, chosen = limit_and_choice(request)
    if chosen is None:
        return limit
    return frozenset({chosen}) if limit is None or chosen in limit else limit


def is_limited(request: HttpRequest) -> bool:
    """Return True if the member of staff is limited to some accounts, whatever account is chosen."""
    return limit_and_choice(request)[0] is not None


def limit_and_choice(request: HttpRequest) -> tuple[frozenset[UUID] | None, UUID | None]:
    if not hasattr(request, CACHED):
        chosen = request.session.get(CHOSEN_ACCOUNT) if hasattr(request, "session") else None
        setattr(request, CACHED, (limit_of(request.user), chosen and UUID(chosen)))
    found: tuple[frozenset[UUID] | None, UUID | None] = getattr(request, CACHED)
    return found


def limit_rows(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    """Filter accounts, or rows of accounts, to what the request may see. Other models raise FieldError."""
    accounts = visible_accounts(request)
    if accounts is None:
        return rows
    column = "pk" if issubclass(rows.model, apps.get_model("memory", "Account")) else "account_id"
    return rows.filter(**{f"{column}__in": accounts})


class LimitedRawIdWidget(ForeignKeyRawIdWidget):
    """A box for an id that names the row only if the `field` accepts it."""

    field: Any

    def label_and_url_for_value(self, value: Any) -> tuple[str, str]:
        try:
            self.field.clean(value)
        except forms.ValidationError:
            return "", ""
        return super().label_and_url_for_value(value)


class AccountLimitedAdmin(Admin):
    """Pages of rows of accounts, which show a limited member of staff nothing of other accounts.

    A row of another account is answered like one that does not exist, with 404.
    """

    changed_by: ClassVar[StaffGroup] = StaffGroup.CURATOR
    """The shipped group that may add, change and delete these rows; all groups may look at them."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return limit_rows(super().get_queryset(request), request)

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> QuerySet[Any] | None:
        rows: QuerySet[Any] | None = super().get_field_queryset(db, db_field, request)
        if visible_accounts(request) is None:
            return rows
        target: type[Model] = db_field.remote_field.model
        return limit_rows(target._default_manager.all() if rows is None else rows, request)

    def formfield_for_foreignkey(self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_foreignkey(db_field, request, **kwargs)
        accounts = visible_accounts(request)
        if field is None or accounts is None:
            return field
        if db_field.name in self.raw_id_fields:
            widget: Any = LimitedRawIdWidget(db_field.remote_field, self.admin_site)
            widget.field, widget.is_required = field, field.required
            field.widget = widget
        if db_field.name == "account":
            # without an account it would be for all of them
            field.required = True
            field.initial = next(iter(accounts)) if len(accounts) == 1 else None
        return field

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> Any:
        if visible_accounts(request) is not None:
            raise Http404(f"There is no such {opts.verbose_name}.")
        return super()._get_obj_does_not_exist_redirect(request, opts, object_id)  # type: ignore[misc]
