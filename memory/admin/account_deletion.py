"""The page that deletes an account: what would go, its name typed again, and a reason. The job of erasures does it."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.columns import change_url
from memory.admin.row_names import name_table
from memory.admin.text import error_sentence
from memory.errors import MemoryServiceError
from memory.models import Account
from memory.services.custody.accounts import MAX_COUNTED, preview_account, request_account_deletion
from memory.services.custody.subjects import ERASE_JOB, MAX_REASON_CHARACTERS
from memory.tasks import run_soon
from memory_project.staff import is_limited


class DeletionForm(forms.Form):
    """The name of the account, typed again, and why it is deleted."""

    name = forms.CharField(
        label="Name of the account",
        strip=False,
        help_text="Type it again, so that no other account is deleted by mistake.",
        widget=forms.TextInput(attrs={"class": "vTextField", "dir": "auto", "autocomplete": "off"}),
    )
    reason = forms.CharField(
        max_length=MAX_REASON_CHARACTERS,
        help_text="It stays in the audit log, with the receipt.",
        widget=forms.TextInput(attrs={"class": "vTextField", "dir": "auto"}),
    )

    def __init__(self, account: Account, data: Any = None) -> None:
        super().__init__(data)
        self.account = account

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.account.name:
            raise forms.ValidationError("This is not the name of the account.")
        return name


def may_delete_accounts(request: HttpRequest) -> bool:
    return request.user.has_perm("memory.delete_account") and not is_limited(request)


def show_deletion(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show what deleting the account would delete; then request it, and show how far it is."""
    account = pages.find_row(request, object_id)
    if not may_delete_accounts(request):
        raise PermissionDenied
    form = DeletionForm(account, request.POST if request.method == "POST" else None)
    owner = staff_owner(request, account.pk)
    if form.is_bound and form.is_valid():
        try:
            erasure = request_account_deletion(owner, reason=form.cleaned_data["reason"], now=datetime.now(UTC))
        except MemoryServiceError as err:
            form.add_error(None, f"Nothing was deleted. {error_sentence(err)}")
        else:
            run_soon(ERASE_JOB)
            return HttpResponseRedirect(change_url("erasure", erasure.pk))
    counts = preview_account(owner)
    return pages.render_page(
        request,
        "account/delete.html",
        "Delete the account",
        account=account,
        form=form,
        counts=sorted((name_table(name), format_count(count)) for name, count in counts.items()),
    )


def format_count(count: int) -> str:
    return f"more than {MAX_COUNTED:,}" if count > MAX_COUNTED else f"{count:,}"
