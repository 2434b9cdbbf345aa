"""Rotating an API key: a new key with the same rights, while the old one stays valid as long as clients need."""

from datetime import UTC, datetime, timedelta
from functools import partial

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.columns import change_url
from memory.admin.text import error_sentence
from memory.errors import MemoryServiceError
from memory.services.accounts.register import rotate_key

OVERLAPS = [(0, "revoke it immediately"), (1, "1 hour"), (24, "1 day"), (168, "7 days")]
"""Hours for which the old key stays valid."""


class RotateForm(forms.Form):
    overlap = forms.TypedChoiceField(coerce=int, choices=OVERLAPS, initial=24, label="The old key stays valid for")


class KeyRotationAdmin(BoundedAdmin):
    """Pages of keys that can be rotated by those who may issue and change keys."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(partial(show_rotation, self))
        return [path("<path:object_id>/rotate/", view, name="memory_apikey_rotate"), *super().get_urls()]


def show_rotation(pages: KeyRotationAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
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
