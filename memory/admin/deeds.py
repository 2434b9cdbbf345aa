"""What may be done on a row's own page beside correcting it: each deed has a form, and a button that sends it.

To add one: a `Deed` in the page's `deeds`, and its form in the page's template, with its name in a field `deed`.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.fields import PlainTextField
from memory.admin.text import shorten
from memory.errors import MemoryServiceError
from memory.owner import Owner

if TYPE_CHECKING:
    Pages = BoundedAdmin
else:
    # mixed into pages of any sort
    Pages = object


class NothingForm(forms.Form):
    """A deed that needs no more than its name."""


class ClaimField(PlainTextField):
    """A sentence or two."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField", "dir": "auto"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """`run` gets the row and what was typed, and answers the sentence to show; MemoryServiceError says why not.

    `may` names the permission that it takes.
    """

    run: Callable[[Owner, Any, dict[str, Any]], str]
    form: type[forms.Form] = NothingForm
    may: str = "change"


def holder_owner(request: HttpRequest, row: Any) -> Owner:
    """Staff in the place of who holds the row: what is written beside it is held by the same."""
    return staff_owner(request, row.account_id, agent_id=row.agent_id, user_id=row.user_id, channel=row.channel)


def say_refusal(err: MemoryServiceError) -> str:
    """As a sentence. What it quotes may be anything."""
    told = shorten(str(err), characters=500)
    return f"{told[:1].upper()}{told[1:]}."


class DeedPages(Pages):
    """Pages with deeds: those do not run in the page's transaction, so that they may embed first."""

    deeds: ClassVar[Mapping[str, Deed]] = {}

    def describe(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """What the page's template shows beside the form."""
        return {}

    def heading(self, row: Any) -> str:
        """What the page is headed with."""
        return shorten(row.text)

    def deed_owner(self, request: HttpRequest, row: Any) -> Owner:
        return holder_owner(request, row)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None or not self.has_view_permission(request, row):
            return super().change_view(request, object_id, form_url, extra_context)
        tried: forms.Form | None = None
        asked = request.POST.get("deed", "") if request.method == "POST" else ""
        if asked:
            tried = self.do(request, row, asked)
            if tried is None:
                return HttpResponseRedirect(request.get_full_path())
            # shown again as it was typed, beside the row as it is
            request = copy(request)
            request.method = "GET"
        if request.method == "GET":
            forms_of_deeds = {
                name: tried if tried is not None and name == asked else self.form_of(name, row) for name in self.deeds
            }
            extra_context = {
                "subtitle": self.heading(row),
                **self.describe(request, row),
                "deeds": forms_of_deeds,
                "tried": tried,
                **(extra_context or {}),
            }
        return super().change_view(request, object_id, form_url, extra_context)

    def form_of(self, name: str, row: Any) -> forms.Form:
        return self.deeds[name].form(auto_id=f"id_{name}_%s")

    def may(self, request: HttpRequest, row: Any, deed: Deed) -> bool:
        checks = {"change": self.has_change_permission, "delete": self.has_delete_permission}
        return bool(checks[deed.may](request, row))

    def do(self, request: HttpRequest, row: Any, name: str) -> forms.Form | None:
        """Do what was posted. Answers the form when there is something to mend in it, after saying what."""
        if name not in self.deeds:
            raise Http404("no such deed")
        deed = self.deeds[name]
        if not self.may(request, row, deed):
            raise PermissionDenied
        form = deed.form(request.POST, auto_id=f"id_{name}_%s")
        if not form.is_valid():
            self.message_user(request, "Not done: see what is said beside it.", messages.ERROR)
            return form
        try:
            done = deed.run(self.deed_owner(request, row), row, form.cleaned_data)
        except MemoryServiceError as err:
            form.add_error(None, say_refusal(err))
            self.message_user(request, f"Not done: {say_refusal(err)}", messages.ERROR)
            return form
        self.log_change(request, row, f"{name.replace('_', ' ').capitalize()}.")
        self.message_user(request, done, messages.SUCCESS)
        return None
