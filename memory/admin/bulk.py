"""Actions on many rows of a list: a page that asks for confirmation and a reason, then a bulk change that does it.

A list declares `BulkAction`s (`memory.services.bulk.actions`); `BulkActionAdmin.bulk_actions` says how. All of them are
carried out by `memory.services.bulk.run`, within one account: a selection that reaches across accounts is narrowed to
one of them first. A page of rows is changed by the request itself, more by the job `change_in_bulk`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import lookup_field
from django.contrib.auth import get_permission_codename
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.text import error_sentence, excerpt_of
from memory.errors import MemoryServiceError
from memory.maintenance.bulk_jobs import change_in_bulk
from memory.models import Account, BulkChange
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each, register_action
from memory.services.bulk.run import MAX_BULK_ROWS, PAGE_ROWS, changed_ids, continue_bulk_change, request_bulk_change
from memory.tasks import run_soon
from memory_project.admin_lists import read_uuid
from memory_project.http.problems import REDIS_ERRORS

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
else:
    # Django's class has no parameter at run time
    Admin = admin.ModelAdmin

MAX_EXAMPLES = 10
MAX_ACCOUNTS_OFFERED = 30
CONFIRMED = "yes"


class ReasonForm(forms.Form):
    """The reason of a bulk change, which its audit entry keeps."""

    reason = forms.CharField(
        max_length=500,
        widget=forms.TextInput(attrs={"size": 60, "dir": "auto"}),
        help_text="It is stored with the change and in the audit log.",
    )


NORMAL_STATE = "live"
SAID_OF_EXAMPLES = {"state": "", "user_id": "user", "agent_id": "agent"}
"""Columns of which the confirmation tells the values, and what stands before these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSelection:
    """The rows that staff have chosen: those of one account that existed when the page was shown."""

    rows: QuerySet[Any]
    account: Account
    count: int
    until: UUID
    """The newest of the rows. Rows that are added later were not seen by anybody."""

    @property
    def is_too_large(self) -> bool:
        return self.count > MAX_BULK_ROWS


def start_bulk_change(
    pages: Any, request: HttpRequest, queryset: QuerySet[Any], action: BulkAction
) -> HttpResponse | None:
    """Ask for an account if there are several, then for confirmation and a reason, then start the change."""
    account, accounts = choose_account(request, queryset)
    if account is None:
        if not accounts:
            pages.message_user(request, "Nothing was changed: no rows are left of those selected.", messages.WARNING)
            return None
        return render_accounts(pages, request, queryset, action, accounts)
    selection = read_selection(request, queryset.filter(account_id=account.pk), account)
    if selection is None:
        pages.message_user(request, "Nothing was changed: no rows are left of those selected.", messages.WARNING)
        return None
    if selection.is_too_large:
        message = f"Nothing was changed. An action covers at most {MAX_BULK_ROWS:,} rows: search or filter for fewer."
        pages.message_user(request, message, messages.ERROR)
        return None
    obstacle = pages.find_bulk_obstacle(request, action, selection.rows[:MAX_EXAMPLES])
    if obstacle:
        pages.message_user(request, f"Nothing was changed. {obstacle}", messages.ERROR)
        return None
    form = ReasonForm(request.POST if request.POST.get("post") == CONFIRMED else None)
    if not form.is_valid():
        return render_confirmation(pages, request, selection, action, form)
    change = request_bulk_change(
        pages.bulk_owner(request, account.pk),
        selection.rows.order_by("-pk").values_list("pk", flat=True).iterator(10_000),
        model=str(pages.opts.model_name),
        action=action.name,
        reason=form.cleaned_data["reason"],
    )
    return perform(pages, request, change, action)


def choose_account(request: HttpRequest, queryset: QuerySet[Any]) -> tuple[Account | None, list[Account]]:
    """Return the account to act in, or None and the accounts of the rows to choose from."""
    chosen = read_uuid(request.POST.get("bulk_account", ""))
    ids = queryset.order_by().values_list("account_id", flat=True).distinct()[: MAX_ACCOUNTS_OFFERED + 1]
    accounts = list(Account.objects.filter(id__in=[chosen] if chosen else list(ids)).order_by("name"))
    return (accounts[0], []) if len(accounts) == 1 else (None, accounts)


def read_selection(request: HttpRequest, rows: QuerySet[Any], account: Account) -> BulkSelection | None:
    until = read_uuid(request.POST.get("until", ""))
    newest = until or rows.order_by("-pk").values_list("pk", flat=True).first()
    if newest is None:
        return None
    seen = rows.filter(pk__lte=newest)
    count = int(seen.order_by().values("pk")[: MAX_BULK_ROWS + 1].count())
    return BulkSelection(rows=seen, account=account, count=count, until=newest) if count else None


def posted_selection(request: HttpRequest) -> list[tuple[str, str]]:
    """Return what the list's form sent, for the pages in between to send again."""
    names = (ACTION_CHECKBOX_NAME, "action", "select_across", "index")
    return [(name, value) for name in names for value in request.POST.getlist(name)]


def render_accounts(
    pages: Any, request: HttpRequest, queryset: QuerySet[Any], action: BulkAction, accounts: list[Account]
) -> HttpResponse:
    offered = [(account, describe_count(queryset.filter(account_id=account.pk), MAX_BULK_ROWS)) for account in accounts]
    more = len(offered) > MAX_ACCOUNTS_OFFERED
    page: HttpResponse = pages.render_page(
        request,
        "bulk/accounts.html",
        action_label(pages, action),
        offered=offered[:MAX_ACCOUNTS_OFFERED],
        has_more=more,
        posted=posted_selection(request),
    )
    return page


def describe_count(rows: QuerySet[Any], limit: int) -> str:
    """Format the number of rows, counted up to a limit."""
    count = int(rows.order_by().values("pk")[: limit + 1].count())
    return f"more than {limit:,}" if count > limit else f"{count:,}"


def render_confirmation(
    pages: Any, request: HttpRequest, selection: BulkSelection, action: BulkAction, form: ReasonForm
) -> HttpResponse:
    examples = [describe_example(pages, row) for row in selection.rows[:MAX_EXAMPLES]]
    page: HttpResponse = pages.render_page(
        request,
        "bulk/confirmation.html",
        action_label(pages, action),
        action=action,
        label=action_label(pages, action),
        explanation=action.explanation or pages.explain_bulk_action(action, selection.rows),
        selection=selection,
        counted=pages.count_rows(selection.count),
        examples=examples,
        more_count=selection.count - len(examples),
        can_undo=action.undo is not None,
        is_job=selection.count > PAGE_ROWS,
        posted=posted_selection(request),
        form=form,
    )
    return page


def action_label(pages: Any, action: BulkAction) -> str:
    return action.label % {"verbose_name_plural": pages.opts.verbose_name_plural}


def describe_example(pages: Any, row: Any) -> str:
    """Return the first column of the row's list, on one line, with its state and whose it is if the list says so."""
    names = [name for name in pages.list_display if name not in ("account", "similarity")]
    texts = {
        name: excerpt_of(str(lookup_field(name, row, pages)[2]))
        for name in (names[0], *SAID_OF_EXAMPLES)
        if name in names
    }
    details = [
        f"{label} {texts[name]}".strip()
        for name, label in SAID_OF_EXAMPLES.items()
        if texts.get(name) not in (None, "", "-", NORMAL_STATE)
    ]
    named = texts[names[0]] or str(row.pk)
    return f"{named} ({', '.join(details)})" if details else named


def perform(pages: Any, request: HttpRequest, change: BulkChange, action: BulkAction) -> HttpResponse:
    """Do a page of rows at once and return to the list. Leave more to the job, and show its progress."""
    if change.total > PAGE_ROWS:
        run_soon(change_in_bulk.__name__)
        return HttpResponseRedirect(change_page(change))
    try:
        change = continue_bulk_change(change.account_id, change.pk, now=timezone.now())
    except REDIS_ERRORS:
        message = "Redis does not answer, and this change needs it. It is queued, and goes on once Redis answers."
        pages.message_user(request, message, messages.WARNING)
        return HttpResponseRedirect(change_page(change))
    log_rows(pages, request, change, action)
    report_change(pages, request, change, action)
    return HttpResponseRedirect(request.get_full_path())


def log_rows(pages: Any, request: HttpRequest, change: BulkChange, action: BulkAction) -> None:
    """Add the change to the history of each row that it changed and did not delete."""
    rows = list(pages.rows_of(Owner(account_id=change.account_id), list(changed_ids(change))))
    if rows:
        message = f"{action.done.rstrip(':')}. Reason: {change.reason}"
        user: Any = request.user
        LogEntry.objects.log_actions(user.pk, rows, CHANGE, change_message=message)


def report_change(pages: Any, request: HttpRequest, change: BulkChange, action: BulkAction) -> None:
    done = f"{action.done} {pages.count_rows(change.changed)}."
    undo = " It can be undone there." if action.undo is not None and change.changed else ""
    message: SafeString = format_html('{} <a href="{}">Details</a>.{}', done, change_page(change), undo)
    pages.message_user(request, message, messages.SUCCESS)
    for refusal in change.refusals:
        sentence = error_sentence(MemoryServiceError(refusal))
        pages.message_user(request, f"Some rows were not changed. {sentence}", messages.WARNING)


def change_page(change: BulkChange) -> str:
    return reverse("admin:memory_bulkchange_change", args=[change.pk])


class BulkActionAdmin(Admin):
    """A list with actions on many rows."""

    long_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that lists and deletions do not read, since they may be megabytes."""
    deletion_note: ClassVar[str | None] = None
    """A sentence on what else a deletion removes. If it is None, Django lists the related rows."""
    allow_delete: ClassVar[bool] = True
    bulk_actions: ClassVar[tuple[BulkAction, ...]] = ()
    """Actions on many rows (`memory.admin.bulk`). Lists whose rows can be deleted have one that deletes as well."""
    bulk_deletion: ClassVar[bool] = True
    """False if rows are deleted one by one only, on their own pages."""

    def __init__(self, model: type[Any], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        for action in self.find_bulk_actions():
            # a permission of a page, such as to erase, is one to change for Django
            verb = "delete" if action.permission == "delete" else "change"
            codename = f"{model._meta.app_label}.{get_permission_codename(verb, model._meta)}"
            register_action(str(model._meta.model_name), replace(action, codename=codename))

    def find_bulk_actions(self) -> Sequence[BulkAction]:
        """Return the actions of the list, in the order in which it offers them."""
        if not (self.allow_delete and self.bulk_deletion):
            return self.bulk_actions
        deletion = BulkAction(
            name="delete_selected",
            label="Delete selected %(verbose_name_plural)s",
            done="Deleted",
            apply=self.delete_rows,
            permission="delete",
            is_destructive=True,
        )
        return (deletion, *self.bulk_actions)

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the bulk actions that the user may do, each of which asks for confirmation first."""
        actions = {name: each for name, each in super().get_actions(request).items() if name != "delete_selected"}
        if IS_POPUP_VAR in request.GET:
            return actions
        for action in self.find_bulk_actions():
            if getattr(self, f"has_{action.permission}_permission")(request):
                actions[action.name] = (bulk_view(action), action.name, action.label)
        return actions

    def rows_of(self, owner: Owner, row_ids: Sequence[UUID]) -> QuerySet[Any]:
        """Return those of the account's rows that have these ids, for a bulk action."""
        rows: QuerySet[Any] = self.model._default_manager.filter(account_id=owner.account_id, pk__in=row_ids)
        return rows.defer(*self.long_columns).order_by("-pk")

    def delete_rows(self, owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
        """Delete rows one by one, for a bulk action."""
        return change_each(self.rows_of(owner, row_ids), lambda row: self.remove_row(owner, row))

    def remove_row(self, owner: Owner, row: Any) -> None:
        """Delete a row with what belongs to it, through a service."""
        row.delete()

    def bulk_owner(self, request: HttpRequest, account_id: UUID) -> Owner:
        """Return the owner for staff in an account."""
        raise NotImplementedError

    def find_bulk_obstacle(self, request: HttpRequest, action: BulkAction, examples: QuerySet[Any]) -> str:
        """Return why the user may not do the action to such rows, or "" if nothing is in the way."""
        if action.permission != "delete":
            return ""
        _, _, needed, protected = self.get_deleted_objects(list(examples), request)
        if needed:
            return f"You may not delete what would go with them: {', '.join(sorted(map(str, needed)))}."
        return "Some of them cannot be deleted." if protected else ""

    def explain_bulk_action(self, action: BulkAction, rows: QuerySet[Any]) -> str:
        """Return a sentence on what the action does besides what its name says."""
        return (self.deletion_note or "") if action.permission == "delete" else ""


def bulk_view(action: BulkAction) -> Callable[..., Any]:
    """Return the action as Django's lists call it."""

    def run(pages: BulkActionAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return start_bulk_change(pages, request, queryset, action)

    return run
