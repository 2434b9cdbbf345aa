"""Actions on one object's own page: each has a form and a button that sends it.

To add one, put an `ObjectAction` into the page's `object_actions` and its form into the page's template, with the
action's name as the value of the field `action` (`templates/admin/memory/action.html` renders such a form). Pages with
an edit form derive from `ChangeFormActionAdmin`, pages of their own from `ObjectActionAdmin`.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.text import error_sentence, mark_invisible
from memory.errors import MemoryServiceError
from memory.owner import Owner


class EmptyForm(forms.Form):
    """The form of an action that needs only its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAction:
    """An action that staff can do to one object.

    `run` gets the owner, the object and the form's data, and returns the sentence to show. If it raises one of the
    page's `refusals`, nothing was changed and the message is shown.
    """

    run: Callable[[Owner, Any, dict[str, Any]], str]
    form: type[forms.Form] = EmptyForm


class ObjectActionAdmin(BoundedAdmin):
    """Pages that perform posted actions, outside of any transaction, so that these can embed before they write."""

    object_actions: ClassVar[Mapping[str, ObjectAction]] = {}
    refusals: ClassVar[tuple[type[Exception], ...]] = (MemoryServiceError,)

    def action_owner(self, request: HttpRequest, row: Any) -> Owner:
        return staff_owner(request, row.account_id)

    def may_act(self, request: HttpRequest, row: Any) -> bool:
        return self.has_change_permission(request, row)

    def perform_action(
        self, request: HttpRequest, row: Any, *, target: Any = None, owner: Owner | None = None, log_suffix: str = ""
    ) -> forms.Form | None:
        """Perform the posted action on `target` (default: the row) and say so. Return its form if it was not done.

        Raise PermissionDenied if the user may not do it and Http404 if there is no such action.
        """
        if not self.may_act(request, row):
            raise PermissionDenied
        name = request.POST.get("action", "")
        if name not in self.object_actions:
            raise Http404("There is no such action.")
        action = self.object_actions[name]
        form = action.form(request.POST, auto_id=f"id_{name}_%s")
        if form.is_valid():
            try:
                done = action.run(owner or self.action_owner(request, row), target or row, form.cleaned_data)
            except self.refusals as err:
                form.add_error(None, error_sentence(err))
            else:
                self.log_change(request, row, f"{name.replace('_', ' ').capitalize()}{log_suffix}.")
                self.message_user(request, done, messages.SUCCESS)
                return None
        errors = [*form.non_field_errors(), *(f"{field.label}: {error}" for field in form for error in field.errors)]
        message = " ".join(["Nothing was changed.", *map(str, errors)])
        self.message_user(request, mark_invisible(message), messages.ERROR)
        return form

    def action_forms(self, failed: forms.Form | None) -> dict[str, forms.Form]:
        """Return an empty form for each action, and for the one that failed the form as it was typed."""
        forms_by_name = {name: action.form(auto_id=f"id_{name}_%s") for name, action in self.object_actions.items()}
        return forms_by_name | ({failed.data["action"]: failed} if failed is not None else {})


class ChangeFormActionAdmin(ObjectActionAdmin):
    """Pages that show actions next to the form that edits the row."""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Perform a posted action, or show the page; after a failure with the form as it was typed."""
        failed: forms.Form | None = None
        row = self.get_object(request, object_id) if request.POST.get("action") else None
        if row is not None and self.has_view_permission(request, row):
            failed = self.perform_action(request, row)
            if failed is None:
                return HttpResponseRedirect(request.get_full_path())
            request = copy(request)
            request.method = "GET"
        context = {"action_forms": self.action_forms(failed), "failed_form": failed}
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})
