"""Single values of an account: texts by key in Redis, listed by SCAN, edited and deleted one by one."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import staff_owner
from memory.admin.fields import PlainTextField
from memory.admin.live import WIDE_BOX, ListedRow, LiveAdmin, NameForm, collect_page, describe_deletion, show_expiry
from memory.admin.object_actions import ObjectAction
from memory.admin.text import mark_invisible
from memory.models import Account, ValueAccount
from memory.owner import Owner
from memory.services.working_memory import correct_single_value, delete_single_value
from memory.tiers.base import MAX_NAME_CHARACTERS
from memory.tiers.key_values import KeyValues
from memory_project.redis import scan_values

MAX_SHOWN_CHARACTERS = 200
MAX_EDITED_CHARACTERS = 100_000
MAX_TTL_SECONDS = 10 * 366 * 86_400


class SingleValueForm(NameForm):
    """A text with its key. Without seconds to live, it is kept until it is deleted."""

    name = forms.CharField(max_length=MAX_NAME_CHARACTERS, strip=False, widget=WIDE_BOX, label="Key")
    value = PlainTextField(label="Text", max_length=MAX_EDITED_CHARACTERS, required=False)
    ttl_seconds = forms.IntegerField(
        label="Seconds to live", min_value=1, max_value=MAX_TTL_SECONDS, required=False,
        help_text="If it is empty, the value is kept until it is deleted.",
    )  # fmt: skip


def save_single_value(owner: Owner, account: Account, data: dict[str, Any]) -> str:
    correct_single_value(owner, key=data["name"], value=data["value"], ttl_seconds=data["ttl_seconds"])
    return f"Saved {mark_invisible(data['name'])}."


def remove_single_value(owner: Owner, account: Account, data: dict[str, Any]) -> str:
    return describe_deletion(data["name"], delete_single_value(owner, key=data["name"]))


@admin.register(ValueAccount)
class ValueAccountAdmin(LiveAdmin):
    """The single values of accounts: a list for each account, and a page for each value."""

    contents = "Single values"
    object_actions = {
        "save": ObjectAction(run=save_single_value, form=SingleValueForm),
        "delete": ObjectAction(run=remove_single_value, form=NameForm),
    }

    def show_account(self, request: HttpRequest, account: Account) -> HttpResponse:
        """List the values, a page at a time."""
        names, context = collect_page(request, partial(scan_values, account_id=account.id))
        stored = KeyValues(Owner(account_id=account.id)).describe(names, characters=MAX_SHOWN_CHARACTERS)
        rows = [
            ListedRow(
                name=value.name,
                url=self.page_url("value", account.id, name=value.name),
                beginning=mark_invisible(value.beginning),
                size=value.size_bytes,
                ttl_seconds=value.ttl_seconds,
            )
            for value in stored
        ]
        may_write = self.has_change_permission(request)
        context |= {"rows": rows, "new_url": self.page_url("value", account.id), "may_write": may_write}
        return self.render_account_page(request, account, "values_of_account", account.name, context)

    def value_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        account = self.find_row(request, object_id)
        return self.unless_redis_is_down(request, lambda: self.show_value(request, account))

    row_pages = {"value": value_view}

    def show_value(self, request: HttpRequest, account: Account) -> HttpResponse:
        """Show the value that the address names, or an empty form; perform what was posted."""
        failed: forms.Form | None = None
        if request.method == "POST":
            failed = self.perform_action(request, account, owner=staff_owner(request, account.id))
            if failed is None:
                return HttpResponseRedirect(self.page_url("change", account.id))
        named = NameForm(request.GET)
        name = named.cleaned_data["name"] if named.is_valid() else ""
        found = KeyValues(Owner(account_id=account.id)).find(name) if name else None
        initial = {"name": name} | ({"value": found.text, "ttl_seconds": found.ttl_seconds} if found else {})
        form = failed if isinstance(failed, SingleValueForm) else SingleValueForm(initial=initial)
        form.fields["name"].widget.attrs["readonly"] = found is not None
        context = {
            "form": form,
            "name": name,
            "shown_name": mark_invisible(name),
            "is_missing": bool(name) and found is None,
            "is_long": found is not None and len(found.text) > MAX_EDITED_CHARACTERS,
            "text": found.text[:MAX_EDITED_CHARACTERS] if found else "",
            "expires_in": show_expiry(found.ttl_seconds) if found else "",
            "may_write": self.has_change_permission(request),
        }
        return self.render_account_page(request, account, "value", mark_invisible(name) or account.name, context)
