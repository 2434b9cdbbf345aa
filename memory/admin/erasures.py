"""Erasures of users, filters and accounts: requested with a preview, followed while they run, kept as receipts."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.views.decorators.csrf import csrf_protect

from memory.admin.account_choice import AccountChoiceForm
from memory.admin.base import ReadOnlyAdmin, staff_owner
from memory.admin.columns import MINUTE, change_url
from memory.admin.exports import USER
from memory.admin.fields import ExternalIdField
from memory.admin.row_names import name_table
from memory.admin.text import error_sentence, mark_invisible
from memory.errors import MemoryServiceError
from memory.models import AuditEntry, Erasure
from memory.services.custody.account_steps import DELETE_OPERATION
from memory.services.custody.subjects import (
    ERASE_JOB,
    MAX_REASON_CHARACTERS,
    STEPS,
    preview_subject,
    request_subject,
)
from memory.tasks import run_soon
from memory_project.admin_lists import AccountFilter, read_uuid
from memory_project.staff import StaffGroup, is_limited

CONFIRMED = "yes"
PREVIEW_SALT = "erasure preview"
RECEIPT_SHOWN = timedelta(days=1)
"""Time for which the page of a deleted account leads to the audit log. Older partitions are not looked at."""
SCOPES = {
    Erasure.Scope.SUBJECT: "a user",
    Erasure.Scope.FILTER: "what a filter found",
    Erasure.Scope.ACCOUNT: "the account itself",
}


class EraseUserForm(AccountChoiceForm):
    """A user of an account. `reason` is needed to erase, and stays in the receipt."""

    user = ExternalIdField(help_text="The complete id of the user, as agents send it.")
    reason = forms.CharField(
        max_length=MAX_REASON_CHARACTERS,
        required=False,
        help_text="It stays in the receipt and must not name the user, such as “request 4711 of 3 May”.",
        widget=forms.TextInput(attrs={"class": "vTextField", "dir": "auto"}),
    )


@admin.register(Erasure)
class ErasureAdmin(ReadOnlyAdmin):
    """The list of erasures, the page that requests one, and the page of each with its progress and its receipt."""

    changed_by = StaffGroup.OPERATOR
    change_list_template = "admin/memory/erasure/change_list.html"
    list_display = (
        "__str__", "account", "scope", "status", "step", "passes", "reason", "requested_by", "requested_at",
        "completed_at", "lifted_at",
    )  # fmt: skip
    list_filter = (AccountFilter, "scope", "status")
    list_select_related = ("account",)
    search_fields = ("id__exact", "subject_digest__exact")
    search_help_text = "Search for a complete id or subject digest."
    exclude = ("selection",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(csrf_protect(self.erase_view))
        return [path("erase/", view, name="memory_erasure_erase"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        may_erase = {"may_erase": may_erase_users(request)}
        return super().changelist_view(request, {**may_erase, **(extra_context or {})})

    def erase_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a user, show what would be erased, and request the erasure once that is confirmed with a reason.

        An erasure is requested only for the account and the user that the page before has shown.
        """
        if not may_erase_users(request):
            raise PermissionDenied
        # the inbox leads here from a request of a user
        given = {name: request.GET[name].replace("\x00", "") for name in ("account", "user") if name in request.GET}
        form = EraseUserForm(request, request.POST if request.method == "POST" else None, initial=given)
        counts: dict[str, int] | None = None
        if form.is_bound and form.is_valid():
            asked = form.cleaned_data
            owner = staff_owner(request, asked["account"].pk)
            is_confirmed = request.POST.get("post") == CONFIRMED and is_previewed(request, asked)
            try:
                # first, so that a refused reason does not hide it
                counts = preview_subject(owner, asked["user"], with_names=False)
                if is_confirmed and asked["reason"].strip():
                    erasure = request_subject(owner, asked["user"], reason=asked["reason"], now=datetime.now(UTC))
                    run_soon(ERASE_JOB)
                    return HttpResponseRedirect(change_url("erasure", erasure.pk))
                if is_confirmed:
                    form.add_error("reason", "Say why the user is erased.")
                elif request.POST.get("post") == CONFIRMED:
                    form.add_error(
                        None, "Nothing was erased: the account or the user is another one than was previewed."
                    )
            except MemoryServiceError as err:
                form.add_error("reason" if counts is not None else None, error_sentence(err))
        return self.render_page(
            request,
            "erasure/erase.html",
            "Erase a user",
            form=form,
            counts=sorted((name_table(name), count) for name, count in counts.items()) if counts else [],
            previewed=sign_preview(request, form.cleaned_data) if counts is not None else "",
            account_name=mark_invisible(form.cleaned_data["account"].name) if counts is not None else "",
            export_url=export_url(form) if counts and request.user.has_perm("memory.view_memory") else "",
            user_name=mark_invisible(form.cleaned_data["user"]) if counts is not None else "",
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the progress and the receipt instead of a form; with `?progress=1` the progress as JSON."""
        if entry_url := find_deleted_account(request, object_id):
            if request.GET.get("progress"):
                return JsonResponse({"state": "completed", "is_running": False})
            return HttpResponseRedirect(entry_url)
        erasure: Erasure = self.find_row(request, object_id)
        is_running = erasure.status in Erasure.UNFINISHED
        steps = list(STEPS[erasure.scope])
        done = steps.index(erasure.step) if erasure.step in steps else 0
        state = format_state(erasure)
        if request.GET.get("progress"):
            return JsonResponse({"examined": done, "state": state, "is_running": is_running})
        return self.render_page(
            request,
            "erasure/change_form.html",
            str(erasure).capitalize(),
            erasure=erasure,
            is_running=is_running,
            done=done if is_running else len(steps),
            total=len(steps),
            state=state,
            properties=list_properties(erasure),
            counts=sorted((name_table(name), count) for name, count in erasure.counts.items()),
            receipt=mark_invisible(json.dumps(erasure.receipt, indent=2, ensure_ascii=False))
            if erasure.receipt
            else "",
        )

    def receipt_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the receipt and its signature as a file, as the API verifies it."""
        erasure: Erasure = self.find_row(request, object_id)
        if erasure.receipt is None:
            raise Http404("The erasure is not completed.")
        answer = JsonResponse({"receipt": erasure.receipt, "signature": erasure.signature})
        answer.headers["Content-Disposition"] = f'attachment; filename="erasure-{erasure.pk}.json"'
        return answer

    row_pages = {"receipt": receipt_view}


def find_deleted_account(request: HttpRequest, erasure_id: str) -> str:
    """Return the address of the audit entry that has the receipt of a deleted account; "" for any other erasure.

    The row of such an erasure is gone with its account.
    """
    if is_limited(request) or not request.user.has_perm("memory.view_auditentry"):
        return ""
    if read_uuid(erasure_id) is None or Erasure.objects.filter(pk=erasure_id).exists():
        return ""
    since = datetime.now(UTC) - RECEIPT_SHOWN
    entries = AuditEntry.objects.filter(operation=DELETE_OPERATION, timestamp__gte=since)
    found = entries.filter(affected_ids__contains=[erasure_id]).values_list("pk", flat=True).first()
    return change_url("auditentry", found) if found else ""


def may_erase_users(request: HttpRequest) -> bool:
    return bool(request.user.has_perm("memory.add_erasure"))


def preview_value(request: HttpRequest, asked: dict[str, Any]) -> list[str]:
    return [str(request.user.pk), str(asked["account"].pk), asked["user"]]


def sign_preview(request: HttpRequest, asked: dict[str, Any]) -> str:
    """Return the account and the user that the page shows, signed, for the confirmation to send back."""
    return signing.dumps(preview_value(request, asked), salt=PREVIEW_SALT)


def is_previewed(request: HttpRequest, asked: dict[str, Any]) -> bool:
    """Return True if the page that was confirmed has shown this account and this user to this member of staff."""
    try:
        shown = signing.loads(request.POST.get("previewed", ""), salt=PREVIEW_SALT)
    except signing.BadSignature:
        return False
    return bool(shown == preview_value(request, asked))


def export_url(form: EraseUserForm) -> str:
    """Return the address of the export of all memories of the user, without the format."""
    query = {AccountFilter.parameter_name: form.cleaned_data["account"].pk, USER: form.cleaned_data["user"]}
    return f"{reverse('admin:memory_memory_export')}?{urlencode(query)}"


def format_state(erasure: Erasure) -> str:
    """Format where an erasure is: its status, and while it runs its pass and its step."""
    if erasure.status != Erasure.Status.RUNNING:
        return erasure.status
    where = f"step {erasure.step.replace('_', ' ')}" if erasure.step else "waiting for requests that had begun before"
    return f"running, pass {erasure.passes + 1}, {where}"


def list_properties(erasure: Erasure) -> list[tuple[str, str]]:
    """Return what the page says about an erasure, by name."""
    lifted = erasure.lifted_at
    completed = erasure.completed_at
    return [
        ("Account", mark_invisible(erasure.account.name)),
        ("Scope", SCOPES[Erasure.Scope(erasure.scope)]),
        *([("Subject digest", erasure.subject_digest)] if erasure.subject_digest else []),
        ("Reason", mark_invisible(erasure.reason) or "none was given"),
        ("Requested", f"{erasure.requested_at:{MINUTE}} UTC by {mark_invisible(erasure.requested_by)}"),
        ("Completed", f"{completed:{MINUTE}} UTC after {erasure.passes} passes" if completed else "not yet"),
        *([("Mark lifted", f"{lifted:{MINUTE}} UTC")] if lifted else []),
    ]
